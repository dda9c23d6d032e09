"""The paper's formulas as printed, section by section; data only."""

from __future__ import annotations

from symdual.paper.equation import Equation
from symdual.paper.equations import section2

EQUATIONS: tuple[Equation, ...] = (*section2.EQUATIONS,)
