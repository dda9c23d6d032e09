from __future__ import annotations

import pytest

from symdual.paper import checking


@pytest.fixture(scope="session")
def results() -> tuple[checking.Result, ...]:
    """One run over the whole paper, shared by the tests that only read it."""
    return checking.run()
