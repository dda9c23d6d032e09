"""The paper's formulas as printed, section by section; data only."""

from __future__ import annotations

from symdual.paper.equation import Equation
from symdual.paper.equations import (
    appendix_a1,
    appendix_a2,
    appendix_b,
    section2,
    section3,
    section4,
    section5,
    section6,
)

EQUATIONS: tuple[Equation, ...] = (
    *section2.EQUATIONS,
    *section3.EQUATIONS,
    *section4.EQUATIONS,
    *section5.EQUATIONS,
    *section6.EQUATIONS,
    *appendix_a1.EQUATIONS,
    *appendix_a2.EQUATIONS,
    *appendix_b.EQUATIONS,
)
