from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from symdual.common.atomic_files import write_atomically
from symdual.common.package_folders import locked
from symdual.paper import checking


@pytest.fixture(scope="session")
def results(packages: Path) -> tuple[checking.Result, ...]:
    """One run over the whole paper, shared by the tests that only read it, in whichever process they run."""
    folder = packages.with_name("paper")
    folder.mkdir(exist_ok=True)
    with locked(folder, wait=True):
        kept = folder / "results.pickle"
        if not kept.exists():
            write_atomically(kept, pickle.dumps(checking.run()))
        found: tuple[checking.Result, ...] = pickle.loads(kept.read_bytes())
    return found
