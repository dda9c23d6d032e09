"""Which versions of numba are known from inside; with any other, only what numba documents is used."""

from __future__ import annotations

import os

TESTED = ("0.68",)  #: with which the tests of what is private to numba pass
SWITCH = "SYMDUAL_NUMBA"


def is_known(version: str) -> bool:
    """Whether what is private to this version of numba may be used; $SYMDUAL_NUMBA says "plain" where it must not."""
    return version.rpartition(".")[0] in TESTED and os.environ.get(SWITCH, "") != "plain"
