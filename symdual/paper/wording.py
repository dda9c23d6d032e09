"""Words that the reports on the paper share: names of sections, meanings of verdicts, numbers of a counterexample."""

from __future__ import annotations

import html
import re

from symdual.paper.comparison import Counterexample
from symdual.paper.equation import Equation
from symdual.paper.verdict import Verdict

SECTIONS = {
    "2": "2 Model and Notation",
    "3": "3 Bayesian RL and Dual Control",
    "4": "4 Approximate Dual Control for Linear Systems",
    "5": "5 Extension to Contemporary Machine Learning Models",
    "6": "6 Experiments",
    "A": "Appendix A: Nonparametric EKF Form",
    "B": "Appendix B: Gradients and Hessians of Dynamics Functions",
}

MEANINGS = {
    Verdict.DEFINITION: "introduces a symbol; sizes and ranges are right",
    Verdict.CORRECT: "gives what the derivation gives",
    Verdict.CONVENTION: "right under a reading that is stated here",
    Verdict.TYPO: "not right as printed, but the paper prints the right form elsewhere, or one bracket repairs it",
    Verdict.WRONG: "not right as printed, and the paper prints the right form nowhere",
    Verdict.UNDEFINED: "a constant or range that the paper does not supply, or gives twice",
    Verdict.UNDECIDED: "no computation here decides it",
}

FAULTS = (Verdict.WRONG, Verdict.TYPO, Verdict.UNDEFINED)
"""The verdicts of formulas that cannot be copied as they stand."""


def chapter(equation: Equation) -> str:
    """The section, without its subsection."""
    return equation.section.split(".")[0]


def place(equation: Equation) -> str:
    """Where the formula stands."""
    name = f"Appendix {equation.section}" if equation.section[0] in "AB" else f"Section {equation.section}"
    label = f", {equation.label}" if equation.label else ""
    kind = ", in the text" if equation.inline else ""
    return f"{name}, line {equation.line}{label}{kind}"


_LETTERS = {
    "Omega": "\u03a9",
    "Sigma": "\u03a3",
    "Xi": "\u039e",
    "Lambda": "\u039b",
    "Phi": "\u03a6",
    "alpha": "\u03b1",
    "eps": "\u03b5",
    "gamma": "\u03b3",
    "kappa": "\u03ba",
    "lambda": "\u03bb",
    "mu": "\u03bc",
    "omega": "\u03c9",
    "phi": "\u03c6",
    "tau": "\u03c4",
    "theta": "\u03b8",
    "xi": "\u03be",
}
_GREEK = re.compile(r"(?<![A-Za-z])(" + "|".join(_LETTERS) + r")(?![A-Za-z])")
_INDEX = re.compile(r"_(?:\{([^{}]*)\}|([A-Za-z0-9]+))")
_POWER = re.compile(r"\^(?:\{([^{}]*)\}|\(([^()]*)\)|(-?[A-Za-z0-9*]+))")


def prose(text: str) -> str:
    """A sentence with plain formulas (x_{k+1}, F^-1, theta) as HTML with indices, powers and Greek letters."""
    safe = _GREEK.sub(lambda found: _LETTERS[found[1]], html.escape(text, quote=False))
    indexed = _INDEX.sub(lambda found: f"<sub>{found[1] or found[2]}</sub>", safe)
    return _POWER.sub(lambda found: f"<sup>{found[1] or found[2] or found[3]}</sup>", indexed)


def numbers(example: Counterexample) -> str:
    """The values of a counterexample: ``a = 1, b = 2``."""
    return ", ".join(f"{name} = {value}" for name, value in example.values)
