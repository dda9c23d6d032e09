"""Slips put into transcriptions and derivations on purpose: each of them must change the verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual.derive import calculus
from symdual.paper import checking
from symdual.paper.case import Case, Derivation
from symdual.paper.derivations import (
    DERIVATIONS,
    augmented,
    experiments,
    features,
    filtering,
    generic,
    learning,
    model,
    multistep,
    nominal,
    perturbation,
    toy,
)
from symdual.paper.equation import Equation
from symdual.paper.equations import EQUATIONS
from symdual.paper.matrices import Matrix
from symdual.paper.verdict import judge
from symdual.paper.words import Blocks, Polynomial, letter

BY_ID = {equation.id: equation for equation in EQUATIONS}
RECORDED = checking.recorded_verdicts()
CLAIMS = [i for i, verdict in RECORDED.items() if verdict in ("correct", "convention")]

RULES = (
    ("plus to minus", r" \+ ", " - "),
    ("minus to plus", r" - ", " + "),
    ("no transpose", r"\.T\b", ""),
    ("factor", r"\b0\.5 \*", "1.0 *"),
    ("factor", r"(?<![\w.*])2\*(?!\*)", "3*"),
    ("power", r"\*\*2", "**3"),
    ("index", r"\[(j|k) \+ 1\]", r"[\1]"),
    ("index", r"\[1\]", "[0]"),
    ("index", r"\bg10\b", "g01"),
    ("order", r"(\w+) @ (Sww|Lambda|Stt)\b", r"\2 @ \1"),
    ("range", r"T - 1", "T - 2"),
    ("range", r"total\(1,", "total(2,"),
    ("range", r"span\(k \+ 1", "span(k"),
    ("dropped term", r" \+ calK", ""),
    ("dropped term", r" \+ calQ", ""),
)

EQUIVALENT = {
    ("2.expected-cost", "no transpose", 51),  # the input is a single number
    ("4.augmented-map", "plus to minus", 105),  # the disturbance is zero there
    ("A.1.one-step", "no transpose", 98),  # a symmetric matrix
}
"""Changes of the text that do not change the formula."""


def _mutants() -> Iterator[tuple[str, str, int, str]]:
    for identifier in CLAIMS:
        text = BY_ID[identifier].machine
        for name, pattern, change in RULES:
            places = list(re.finditer(pattern, text))
            for place in {places[0].start(): places[0], places[-1].start(): places[-1]}.values() if places else ():
                mutant = text[: place.start()] + place.expand(change) + text[place.end() :]
                if (identifier, name, place.start()) not in EQUIVALENT:
                    yield identifier, name, place.start(), mutant


MUTANTS = list(_mutants())


def _verdict(equation: Equation, derivation: Any = None) -> str:
    return judge(equation, derivation or DERIVATIONS[equation.id], frozenset()).verdict.value


def test_there_are_enough_mutants_of_each_kind() -> None:
    kinds = {name for _, name, _, _ in MUTANTS}
    assert len(MUTANTS) >= 150
    assert kinds == {name for name, _, _ in RULES}


@pytest.mark.parametrize("identifier", sorted({mutant[0] for mutant in MUTANTS}))
def test_a_slip_in_a_transcription_changes_the_verdict(identifier: str) -> None:
    for name, at, text in [(name, at, text) for i, name, at, text in MUTANTS if i == identifier]:
        found = _verdict(replace(BY_ID[identifier], machine=text))
        assert found not in (RECORDED[identifier], "definition"), f"{name} at {at}: {text}"


@pytest.mark.parametrize("identifier", sorted(EQUIVALENT))
def test_equivalent_mutants_are_really_equivalent(identifier: tuple[str, str, int]) -> None:
    name, rule, at = identifier
    pattern, change = next((p, c) for r, p, c in RULES if r == rule)
    place = next(m for m in re.finditer(pattern, BY_ID[name].machine) if m.start() == at)
    text = BY_ID[name].machine
    mutant = text[:at] + place.expand(change) + text[place.end() :]
    assert _verdict(replace(BY_ID[name], machine=mutant)) == RECORDED[name]


FAULTS_REPAIRED = {
    "4.1.offset": "A.T @ (p[j+1] - K[j+1] @ B @ inv(B.T @ K[j+1] @ B + U[j]) @ B.T @ p[j+1]) - W[j] @ r[j]",
    "4.2.overall": "Jbar + Jd + Jd",
    "A.1.prior-block": "corner(A[0] @ P0 @ A[0].T)",
    "B.1.activation": "w[i]*x - w[i]*b[i]",
    "B.3.hessian-xv": "exp(-(x - c[i])**2 / (2*lam**2))*(c[i] - x)/lam/lam",
    "6.4.order-of-parameters": "(2, 1)",
    "2.past-inputs": "span(0, k - 1)",
}


@pytest.mark.parametrize("identifier", FAULTS_REPAIRED)
def test_a_repaired_transcription_is_found_correct(identifier: str) -> None:
    assert _verdict(replace(BY_ID[identifier], machine=FAULTS_REPAIRED[identifier])) == "correct"


GAPS_FILLED = {
    "6.2.weights": "[(0, 4, 'W11 = 10'), (5, 10, 'W11 = 0'), (11, 20, 'W11 = 100')]",
    "6.3.reference": "[(0, 11, (0, 0)), (12, 17, (10, 0)), (18, 20, (0, 0))]",
}


@pytest.mark.parametrize("identifier", GAPS_FILLED)
def test_a_repaired_schedule_is_a_definition(identifier: str) -> None:
    assert _verdict(replace(BY_ID[identifier], machine=GAPS_FILLED[identifier])) == "definition"


# ------------------------------------------------------------------ derivations


def _spoiled(value: Any) -> Any:
    """A value that is slightly wrong."""
    if isinstance(value, Matrix):
        return Matrix(value.array * 1.001 + 0.001)
    if isinstance(value, bool):
        return not value
    if isinstance(value, float | int):
        return value * 1.001 + 0.001
    if isinstance(value, sp.MatrixBase):
        return value + sp.ones(*value.shape) / 1000
    if isinstance(value, sp.Basic):
        return value + sp.Rational(1, 1000)
    if isinstance(value, str):
        return value + "?"
    if isinstance(value, frozenset):
        return value ^ {min(value)}
    if isinstance(value, Polynomial):
        return value + letter("A0") * Fraction(1, 1000)  # type: ignore[operator]
    if isinstance(value, Blocks):
        return Blocks([[_spoiled(entry) for entry in row] for row in value.rows])
    raise TypeError(type(value))


@pytest.mark.parametrize("identifier", [i for i, verdict in RECORDED.items() if verdict == "correct"])
def test_a_slightly_wrong_derivation_changes_the_verdict(identifier: str) -> None:
    derivation = DERIVATIONS[identifier]
    assert isinstance(derivation, Derivation)

    def cases() -> Iterator[Case]:
        for case in derivation.cases():
            yield Case(case.where, case.symbols, _spoiled(case.expected))

    assert _verdict(BY_ID[identifier], replace(derivation, cases=cases, conventions=())) != "correct"


def _scaled(function: Callable[..., Any], factor: float) -> Callable[..., Any]:
    return lambda *args, **keywords: function(*args, **keywords) * factor


def _without_noise(belief: Any, c: Any, noise: Any, measured: Any) -> Any:
    return filtering.update(belief, c, 0.5 * noise, measured)


def _without_drift(belief: Any, transition: Any, drift: Any, offset: Any = None) -> Any:
    return filtering.predict(belief, transition, 0.5 * drift, offset)


def _other_tail(problem: Any, step: int) -> Any:
    k, p, g = nominal_tail(problem, step)
    return k, -p, g


nominal_tail = nominal.tail

SPOILED_ORACLES = [
    ("A.1.one-step", multistep, "update", _without_noise),
    ("A.1.predicted", multistep, "predict", _without_drift),
    ("A.1.covariance-compact", multistep, "run", lambda *a: filtering.run(a[0], a[1], 2 * a[2], *a[3:])),
    ("A.2.weight-covariance", augmented, "update", _without_noise),
    ("A.2.covariance", augmented, "predict", _without_drift),
    ("5.2.prediction", augmented, "predict", _without_drift),
    ("4.1.offset-end", nominal, "tail", _other_tail),
    ("4.1.control", nominal, "best_inputs", lambda *a: (0.9 * perturbation.best_inputs(*a)[0], 0.0)),
    ("4.2.dual-cost", perturbation, "feedback_cost", _scaled(perturbation.feedback_cost, 1.01)),
    (
        "4.2.overall",
        perturbation,
        "expected_cost",
        lambda p, n, m: nominal.best_inputs(p, m)[1] + 0.5 * perturbation.feedback_cost(p, n),
    ),
    ("3.1.cautious", toy, "gaussian_moment", lambda order, mean, variance: mean**order),
    ("3.1.second-input", toy, "posterior", lambda weight, seen: (toy.MU, toy.S2)),
    ("3.1.oracle", toy, "best_input", lambda cost: -sp.solve(sp.diff(cost, toy.U), toy.U)[0]),
    ("2.optimal-cost", model, "scalar_expectation", lambda f, mean, variance, count=5: f(mean)),
    ("5.2.mercer", learning, "square_exponential", lambda x, other: float(np.exp(-abs(x - other)))),
    ("B.1.curvature", features, "sigma", sp.tanh),
    ("6.3.strong-feature", experiments, "logistic_pair", lambda x: (1 / (1 + np.exp(-x)), 0.0)),
    ("6.4.order-of-parameters", experiments, "bump_pair", lambda x: (float(x < 0), float(x > 0))),
]


@pytest.mark.parametrize(
    ("identifier", "place", "name", "wrong"), SPOILED_ORACLES, ids=[f"{i}-{n}" for i, _, n, _ in SPOILED_ORACLES]
)
def test_a_slip_in_an_oracle_changes_the_verdict(
    identifier: str, place: Any, name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _verdict(BY_ID[identifier]) == RECORDED[identifier]
    monkeypatch.setattr(place, name, wrong)
    if identifier == "B.1.curvature":
        # The transcription is evaluated with the true logistic function; only the derivation is spoiled.
        derivation = Derivation("spoiled", partial(_true_sigma, features.DERIVATIONS[identifier].cases))
        assert _verdict(BY_ID[identifier], derivation) != RECORDED[identifier]
    else:
        assert _verdict(BY_ID[identifier]) != RECORDED[identifier]


def _true_sigma(cases: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    for case in cases():
        yield Case(case.where, {**case.symbols, "sigma": lambda a: 1 / (1 + sp.exp(-a))}, case.expected)


def test_a_slip_in_the_derivation_for_users_models_changes_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = calculus._diff
    monkeypatch.setattr(calculus, "_diff", lambda expression, symbol: 2 * honest(expression, symbol))
    for family in (generic.network, generic.fourier, generic.radial):
        family.cache_clear()
    try:
        for identifier in ("B.1.gradient-w", "B.1.hessian-vw", "B.2.hessian-xx", "B.3.gradient-v"):
            assert _verdict(BY_ID[identifier]) != RECORDED[identifier], identifier
    finally:
        for family in (generic.network, generic.fourier, generic.radial):
            family.cache_clear()
