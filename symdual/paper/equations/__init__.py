"""The formulas of the paper as printed, section by section: a table of TOML for each (see `symdual.paper.equation`)."""

from __future__ import annotations

import tomllib
from importlib import resources

from symdual.paper.equation import Equation

_SECTIONS = (*(f"section{number}" for number in range(2, 7)), "appendix_a1", "appendix_a2", "appendix_b")


def _equations(section: str) -> tuple[Equation, ...]:
    text = resources.files(__name__).joinpath(f"{section}.toml").read_text(encoding="utf-8")
    return tuple(Equation.of(name, table) for name, table in tomllib.loads(text).items())


EQUATIONS: tuple[Equation, ...] = tuple(equation for section in _SECTIONS for equation in _equations(section))
