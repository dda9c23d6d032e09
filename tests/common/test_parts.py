"""Parts of packages: their names, and what is said where one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from symdual.common.errors import PackageError, SymdualError
from symdual.common.parts import PARTS, checked_parts, require_parts


def test_names_of_parts() -> None:
    assert checked_parts("planned") == {"planned"}
    assert checked_parts(PARTS) == set(PARTS)
    with pytest.raises(SymdualError, match='no part "planed"; did you mean "planned"'):
        checked_parts(["planed"])


def test_a_missing_part_is_said_with_the_command_that_adds_it() -> None:
    require_parts("cart", Path("there/cart"), {"planned"}, ["planned"])
    with pytest.raises(
        PackageError,
        match=r"cart in there/cart .* `symdual generate --with likelihood --with planned --with rivals --with thom",
    ):
        require_parts("cart", Path("there/cart"), (), PARTS)
