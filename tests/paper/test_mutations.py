"""Slips put into transcriptions and derivations on purpose: each of them must change the verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual.derive import calculus
from symdual.paper import checking
from symdual.paper.case import Case, Derivation, Form, Supplies, Within
from symdual.paper.derivations import (
    DERIVATIONS,
    augmented,
    experiments,
    features,
    feedback,
    filtering,
    first_input,
    generic,
    learning,
    model,
    multistep,
    nominal,
    perturbation,
    probing,
    remarks,
    results,
    toy,
    weights,
)
from symdual.paper.derivations.filtering import Belief
from symdual.paper.equations import EQUATIONS
from symdual.paper.lines import Lines
from symdual.paper.matrices import Matrix
from symdual.paper.verdict import judge
from symdual.paper.words import Blocks, Polynomial, letter

BY_ID = {equation.id: equation for equation in EQUATIONS}
RECORDED = checking.recorded_verdicts()
TEXTS = {equation.id: equation.machine for equation in EQUATIONS}


def _one_more(found: re.Match[str]) -> str:
    return f"{float(found[0]) + 1:g}"


RULES: tuple[tuple[str, str, str | Callable[[re.Match[str]], str]], ...] = (
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
    ("name", r"\bvarphi1\b", "varphi2"),
    ("word", r"^'[^']*'$", "'something else'"),
    ("number", r"(?<![\w.\[*])\d+(?![\w.\]])", _one_more),
    ("number", r"(?<![\w.])\d\.\d+(?![\w.])", _one_more),
    ("number", r"\b1e-", "3e-"),
)
"""Slips that a text may have; each is tried where it first and last applies."""


def _slips(text: str) -> Iterator[tuple[str, int, str]]:
    """The kind, the place and the text of every slip."""
    for name, pattern, change in RULES:
        places = list(re.finditer(pattern, text))
        for place in {places[0].start(): places[0], places[-1].start(): places[-1]}.values() if places else ():
            new = place.expand(change) if isinstance(change, str) else change(place)
            yield name, place.start(), text[: place.start()] + new + text[place.end() :]


def _verdict(identifier: str, edits: Mapping[str, str] = MappingProxyType({}), derivation: Any = None) -> str:
    """The verdict on a line when some lines of the paper read otherwise."""
    texts = {**TEXTS, **edits}
    equation = replace(BY_ID[identifier], machine=texts[identifier])
    return judge(equation, derivation or DERIVATIONS[identifier], frozenset(), Lines(texts)).verdict.value


def _finding(identifier: str, edits: Mapping[str, str] = MappingProxyType({})) -> tuple[str, str]:
    """The verdict with what the counterexample says was printed."""
    texts = {**TEXTS, **edits}
    found = judge(BY_ID[identifier], DERIVATIONS[identifier], frozenset(), Lines(texts))
    return found.verdict.value, "" if found.counterexample is None else found.counterexample.printed


def _only_a_size(identifier: str) -> bool:
    """Whether a definition is checked for its size or completeness alone: most slips do not show there."""
    derivation = DERIVATIONS[identifier]
    assert isinstance(derivation, Derivation)
    return isinstance(next(iter(derivation.cases())).expected, Form | Supplies)


CLAIMS = [i for i, verdict in RECORDED.items() if verdict in ("correct", "convention")]
CLAIMS += [i for i, verdict in RECORDED.items() if verdict == "definition" and not _only_a_size(i)]
FAULTS = [i for i, verdict in RECORDED.items() if verdict in ("wrong", "typo")]

EQUIVALENT = {
    ("2.cost", "no transpose", 94),  # the input is a single number
    ("2.expected-cost", "no transpose", 51),  # the same
    ("4.augmented-map", "plus to minus", 105),  # the disturbance is zero there
    ("6.4.passes-both", "name", 30),  # both features are met
    ("A.1.one-step", "no transpose", 98),  # a symmetric matrix
}
"""Changes of the text that do not change the formula."""

EQUIVALENT_CORRECTIONS = {
    ("3.1.two-steps-inserted", "plus to minus", 109),  # the noise has both signs
    ("6.3.good-exploration", "name", 41),  # the other feature has no part in this effect
    ("6.3.ignored-parameter", "name", 41),
    ("6.3.relevant-parameter", "name", 41),
    ("6.4.early-parameter", "name", 41),  # the feature is met all the same
}
"""The same for the texts of corrections."""

MUTANTS = [
    (identifier, name, at, text)
    for identifier in CLAIMS
    for name, at, text in _slips(TEXTS[identifier])
    if (identifier, name, at) not in EQUIVALENT
]


def test_there_are_enough_mutants_of_each_kind() -> None:
    assert len(MUTANTS) >= 300
    assert {name for _, name, _, _ in MUTANTS} == {name for name, _, _ in RULES}


@pytest.mark.parametrize("identifier", sorted({mutant[0] for mutant in MUTANTS}))
def test_a_slip_in_a_transcription_changes_the_verdict(identifier: str) -> None:
    for name, at, text in [(name, at, text) for i, name, at, text in MUTANTS if i == identifier]:
        found = _verdict(identifier, {identifier: text})
        assert found not in (RECORDED[identifier], "definition"), f"{name} at {at}: {text}"


@pytest.mark.parametrize("identifier", sorted(EQUIVALENT))
def test_equivalent_mutants_are_really_equivalent(identifier: tuple[str, str, int]) -> None:
    name, rule, at = identifier
    (text,) = [text for kind, place, text in _slips(TEXTS[name]) if (kind, place) == (rule, at)]
    assert _verdict(name, {name: text}) == RECORDED[name]


@pytest.mark.parametrize("identifier", FAULTS)
def test_a_faulty_line_that_is_corrected_is_found_right_and_a_slip_in_the_correction_is_not(identifier: str) -> None:
    derivation = DERIVATIONS[identifier]
    assert isinstance(derivation, Derivation) and derivation.correction is not None
    right = derivation.correction.machine
    assert _verdict(identifier, {identifier: right}) == "correct"
    for name, at, text in _slips(right):
        if (identifier, name, at) in EQUIVALENT_CORRECTIONS:
            continue
        assert _verdict(identifier, {identifier: text}) != "correct", f"{name} at {at}: {text}"


FAULTS_REPAIRED = {
    "4.1.offset": "A.T @ (p[j+1] - K[j+1] @ B @ inv(B.T @ K[j+1] @ B + U[j]) @ B.T @ p[j+1]) - W[j] @ r[j]",
    "4.2.overall": "Jbar + Jd + Jd",
    "5.2.prior-covariance": "kron(V, Lambda)",
    "A.1.g00": "A[0] @ P0 @ A[0].T + Q",
    "B.1.activation": "w[i]*x - w[i]*b[i]",
    "B.3.hessian-xv": "exp(-(x - c[i])**2 / (2*lam**2))*(c[i] - x)/lam/lam",
}


@pytest.mark.parametrize("identifier", FAULTS_REPAIRED)
def test_a_line_repaired_in_other_words_is_found_correct(identifier: str) -> None:
    assert _verdict(identifier, {identifier: FAULTS_REPAIRED[identifier]}) == "correct"


GAPS_FILLED = {
    "4.3.outer-loop": ("[caption, 'inner']", "undecided"),
    "6.1.setting": ("dict(a=1, b=2, prior_mean=1, prior_variance=10, Q=1e-1, R=0, W=1, U=1, T=2, tau=tau, x0=1)", ""),
    "6.2.setting": ("dict(**noise, U=price, r=reference, W=weights, T=last(reference), features=count, amplitude=1,"
        " prior=prior, theta_true=truth, Sigma0=0, lengthscale=7, tau=10, x0=0)", ""),
    "6.2.weights": ("[(0, 4, ((10, 0), (0, 0))), (5, 10, ((0, 0), (0, 0))), (11, 20, ((100, 0), (0, 0)))]", ""),
    "6.3.reference": ("[(0, 11, (0, 0)), (12, 17, (10, 0)), (18, 20, (0, 0))]", ""),
    "6.3.setting": ("dict(**noise, r=reference, W=weights, T=last(reference), b=places, tau=bonus, prior=prior,"
        " theta_true=truth, Sigma0=0, U=1e-3, prior_v=1, prior_w=1, x0=0)", ""),
    "6.4.setting": ("dict(r=reference, W=weights, T=last(reference), theta_true=truth, Q=1e-2, R=1e-2, Sigma0=0,"
        " U=1e-3, Xi=0.1, prior=1, tau=1, x0=-5)", ""),
}  # fmt: skip


def test_every_gap_is_tried() -> None:
    assert set(GAPS_FILLED) == {i for i, verdict in RECORDED.items() if verdict == "undefined"}


@pytest.mark.parametrize("identifier", GAPS_FILLED)
def test_a_gap_that_is_filled_is_a_definition(identifier: str) -> None:
    text, verdict = GAPS_FILLED[identifier]
    assert _verdict(identifier, {identifier: text}) == (verdict or "definition")


def test_a_schedule_with_another_value_than_the_experiment_uses_is_found() -> None:
    assert _verdict("6.2.weights", {"6.2.weights": GAPS_FILLED["6.2.weights"][0].replace("100", "99")}) == "wrong"


_MIRRORED = "[(0, 11, (0, 0)), (12, 17, (-10, 0)), (18, 20, (0, 0))]"
_TURNED = "[(0, 6, (5, 0)), (7, 7, (4, 0)), (8, 8, (2, 0)), (9, 9, (0, 0)), (10, 20, (-2, 0))]"
_SETTING = TEXTS["6.1.setting"]

EDITS = {
    ("2.density-state", "2.dynamics"): "f(x[k], u[k]) + xi[k] + xi[k]",
    ("2.density-observation", "2.observation"): "C @ x[k] + gamma[k] + gamma[k]",
    ("4.1.linear", "4.1.control"): "-B.T @ K[j + 1] @ x[j] @ x[j].T @ x[j]",
    ("4.2.control-changes", "4.1.control"): "-B.T @ p[j + 1]",
    ("6.prediction-time", "3.1.toy"): "a*x + b + u + xi",
    ("6.prediction-time", "6.2.system"): TEXTS["6.2.system"].replace("[[0], [1]]) @ u", "[[1], [1]]) @ u"),
    ("3.1.narrower", "6.1.setting"): _SETTING.replace("variance=10", "variance=1"),
    ("3.1.more-cautious", "6.1.setting"): _SETTING.replace("variance=10", "variance=1e-2"),
    ("3.1.either-side", "6.1.setting"): _SETTING.replace("variance=10", "variance=1e-2"),
    ("6.1.indifferent", "6.1.setting"): _SETTING.replace("prior_mean=1", "prior_mean=0"),
    ("6.1.bonus-structure", "6.1.setting"): _SETTING.replace("variance=10", "variance=1e-3"),
    ("6.1.bonus-structure", "6.1.bonus-weight"): "0.0",
    ("6.1.noise-free", "6.1.setting"): _SETTING.replace("Q=1e-1", "Q=0"),
    ("6.1.bonus-minimum", "6.1.setting"): _SETTING.replace("Q=1e-1", "Q=3").replace("variance=10", "variance=1000"),
    ("6.1.dual-minimum", "6.1.setting"): _SETTING.replace("variance=10", "variance=1e-9"),
    ("6.1.dual-minimum", "6.1.bonus-weight"): "0.0",
    ("6.2.precise-phase", "6.2.loose-phase"): "(4, 10)",
    ("6.2.cautious-phase", "6.2.loose-phase"): "(4, 10)",
    ("6.2.loose-phase", "6.2.weights"): TEXTS["6.2.weights"].replace("(5, 10", "(6, 10"),
    ("6.2.sides", "6.2.reference"): TEXTS["6.2.reference"].replace("-10", "10"),
    ("6.2.caption", "6.2.reference"): "[(0, 10, (0, 0)), (11, 20, (0, 1))]",
    ("6.2.blind", "6.2.system"): "x + matrix([[0], [1]]) @ u",
    ("6.2.blind", "6.2.weights"): "[(0, 20, ((10, 0), (0, 0)))]",
    ("6.2.out-of-model", "6.2.truth"): "matrix([[0], [0]])",
    ("6.3.strong-feature", "6.3.reference"): _MIRRORED,
    ("6.3.good-exploration", "6.3.reference"): _MIRRORED,
    ("6.3.relevant-parameter", "6.3.reference"): _MIRRORED,
    ("6.3.ignored-parameter", "6.3.reference"): _MIRRORED,
    ("6.3.caption", "6.3.reference"): "[(0, 10, (0, 0)), (11, 20, (0, 1))]",
    ("6.3.perfect-model", "6.3.units"): "1",
    ("6.3.perfect-model", "6.3.locations"): "matrix([[-3], [3]])",
    ("6.3.identification", "6.3.weights"): "[(0, 10, ((10, 0), (0, 0))), (11, 20, ((0, 0), (0, 0)))]",
    ("6.4.passes-both", "6.4.reference"): "[(0, 20, (-2, 0))]",
    ("6.4.passes-both", "6.4.feature-2"): "exp(-(x + 9)**2 / 2)",
    ("6.4.early-parameter", "6.4.reference"): _TURNED,
    ("6.4.second-zone", "6.4.reference"): _TURNED,
    ("6.4.order-of-parameters", "6.4.reference"): _TURNED,
    ("6.4.drops", "6.4.reference"): _TURNED,
    ("6.4.drops", "6.4.feature-1"): "exp(-(x - 9)**2 / 2)",
    ("6.4.drops", "6.4.feature-2"): "exp(-(x - 9)**2 / 2)",
    ("6.4.bonus-cost", "6.5.table"): TEXTS["6.5.table"].replace("84.91", "0.91"),
    ("6.4.straight", "6.4.reference"): TEXTS["6.4.reference"].replace("(-5, 0)", "(-6, 0)"),
    ("6.5.performance", "6.5.table"): TEXTS["6.5.table"].replace("0.77", "0.97"),
    ("6.5.costs", "6.5.table"): TEXTS["6.5.table"].replace("1.75", "0.75"),
    ("6.5.costs", "6.2.weights"): TEXTS["6.2.weights"].replace("100", "1"),
    ("A.2.stable", "A.2.gram"): TEXTS["A.2.gram-compact"],
    ("A.2.stable", "A.2.gram-compact"): TEXTS["A.2.gram"],
    ("A.2.replaced", "A.1.full-measurement-expanded"): TEXTS["A.1.two-steps-block"],
    ("B.1.hessian-vv", "B.1.network"): TEXTS["B.1.network"].replace("v[i]", "v[i]**2"),
    ("B.3.hessian-vv", "B.3.radial"): TEXTS["B.3.radial"].replace("v[i]", "v[i]**2"),
}
"""Edits of a line (second) that change the verdict on another one (first), where no slip of `RULES` does."""

FINDINGS = {(reader, f"6.2.feature-{i}") for reader in TEXTS if reader.startswith("6.3.") for i in (1, 2)}
"""Where the other feature decides the verdict alone: an edit of this one has to change the numbers that are found."""

Reads = Mapping[str, tuple[str, ...]]


@pytest.fixture(scope="module")
def reads(results: tuple[checking.Result, ...]) -> Reads:
    """The lines on which the verdict on each line depends."""
    return {result.equation.id: result.reads for result in results}


def test_the_named_rows_read_what_they_are_about(reads: Reads) -> None:
    for reader, lines in {
        "4.2.expansion": {"2.cost", "4.2.perturbation-cost"},
        "4.2.overall": {"2.cost", "4.2.dual-cost"},
        "5.2.cross-transposed": {"5.2.cross"},
        "6.2.setting": {"6.2.noise", "6.2.control-cost", "6.2.basis"},
        "6.3.strong-feature": {"6.2.feature-1", "6.2.feature-2", "6.3.reference"},
        "6.3.relevant-parameter": {"6.2.feature-1", "6.2.feature-2", "6.3.reference", "6.2.system"},
        "6.4.order-of-parameters": {"6.4.feature-1", "6.4.feature-2", "6.4.reference"},
        "A.2.jacobian": {"A.2.weight-space"},
        "B.1.network": {"5.3.network"},
    }.items():
        assert lines <= set(reads[reader]), reader


@pytest.mark.parametrize("section", sorted({equation.section for equation in EQUATIONS}))
def test_editing_a_line_changes_the_verdicts_that_depend_on_it(section: str, reads: Reads) -> None:
    for reader, line in [(reader, line) for reader, lines in reads.items() for line in lines]:
        if BY_ID[reader].section == section:
            assert _depends(reader, line), f"{reader} on {line}"


def _depends(reader: str, line: str) -> bool:
    """Whether the verdict on a line changes with another one."""
    edits = [EDITS[reader, line]] if (reader, line) in EDITS else [text for _, _, text in _slips(TEXTS[line])]
    if RECORDED[reader] == "undefined":  # that it stays, but more is missing when a line is taken out
        return _finding(reader, {line: "None"}) != _finding(reader)
    if (reader, line) in FINDINGS and RECORDED[reader] == "wrong":
        return any(_finding(reader, {line: text}) != _finding(reader) for text in edits)
    return any(_verdict(reader, {line: text}) != RECORDED[reader] for text in edits)


def test_exchanged_features_turn_the_statements_of_experiment_3_round() -> None:
    first, second = TEXTS["6.2.feature-1"], TEXTS["6.2.feature-2"]
    for reader in ("6.3.strong-feature", "6.3.good-exploration", "6.3.relevant-parameter", "6.3.ignored-parameter"):
        assert _verdict(reader, {"6.2.feature-1": second, "6.2.feature-2": first}) == "correct"


# ------------------------------------------------------------------ derivations


def _spoiled(value: Any) -> Any:
    """A value that is slightly wrong."""
    if isinstance(value, Matrix):
        return Matrix(value.array * 1.001 + 0.001)
    if isinstance(value, bool):
        return not value
    if isinstance(value, Within):
        return Within(
            {
                name: (high + 1.0, high + 2.0) if high < np.inf else (low * 100.0, high)
                for name, (low, high) in value.ranges.items()
            }
        )
    if isinstance(value, tuple):
        return tuple(map(_spoiled, value))
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
        for open_case in derivation.cases():
            case = Lines(TEXTS).filled(open_case, TEXTS[identifier])
            yield Case(case.where, case.symbols, _spoiled(case.expected))

    assert _verdict(identifier, derivation=replace(derivation, cases=cases, conventions=())) != "correct"


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
    ("A.2.weight-covariance", weights, "update", _without_noise),
    ("A.2.covariance", weights, "predict", _without_drift),
    ("5.2.prediction", augmented, "predict", _without_drift),
    ("4.1.offset-end", nominal, "tail", _other_tail),
    ("4.1.control", nominal, "best_inputs", lambda *a: (0.9 * perturbation.best_inputs(*a)[0], 0.0)),
    ("4.2.dual-cost", perturbation, "feedback_cost", _scaled(perturbation.feedback_cost, 1.01)),
    (
        "4.2.overall",
        perturbation,
        "expected_cost",
        lambda p, n, m: nominal.best_inputs(p, m)[1] + 0.5 * feedback.feedback_cost(p, n),
    ),
    ("3.1.cautious", toy, "gaussian_moment", lambda order, mean, variance: mean**order),
    ("3.1.second-input", toy, "posterior", lambda weight, seen: (toy.MU, toy.S2)),
    ("3.1.oracle", toy, "best_input", lambda cost: -sp.solve(sp.diff(cost, toy.U), toy.U)[0]),
    ("2.optimal-cost", model, "scalar_expectation", lambda f, mean, variance, count=5: f(mean)),
    ("5.2.mercer", learning, "square_exponential", lambda x, other: float(np.exp(-abs(x - other)))),
    ("B.1.curvature", features, "sigma", sp.tanh),
    ("6.2.first-move", experiments, "positions", lambda reference: [0.0, 1.0]),
    ("6.4.cost-start", experiments, "weights", lambda schedule: [0.0, 1.0]),
    ("6.5.costs", results, "least_cost", lambda *lines: 0.0),
    ("4.2.benefit", remarks, "feedback_cost", lambda problem, noise: 0.0),
    ("4.2.deterministic", remarks, "run", lambda start, a, q, c, r, y: Belief(y[0], start.cov + np.abs(y[0][0]))),
    ("4.3.dominates", remarks, "minimize_scalar", lambda cost, **keywords: cost(0.0)),
    ("6.prediction-time", probing, "covariances", lambda a, *rest: {(j, j): m for j, m in enumerate([*a, a[-1]])}),
    ("6.2.blind", probing, "best_inputs", lambda problem, x: (np.zeros((problem.horizon, 1)), 0.0)),
    ("6.1.dual-minimum", first_input, "feedback_cost", lambda problem, noise: 0.0),
    ("3.1.either-side", first_input, "_exact", first_input._certain),
    ("3.1.narrower", first_input, "_COSTS", {"ce": first_input._certain, "exact": first_input._certain}),
    ("3.1.more-cautious", first_input, "_COSTS", {"ce": first_input._certain, "exact": first_input._certain}),
]


@pytest.mark.parametrize(
    ("identifier", "place", "name", "wrong"), SPOILED_ORACLES, ids=[f"{i}-{n}" for i, _, n, _ in SPOILED_ORACLES]
)
def test_a_slip_in_an_oracle_changes_the_verdict(
    identifier: str, place: Any, name: str, wrong: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _verdict(identifier) == RECORDED[identifier]
    monkeypatch.setattr(place, name, wrong)
    if identifier == "B.1.curvature":
        # The transcription is evaluated with the true logistic function; only the derivation is spoiled.
        derivation = Derivation("spoiled", partial(_true_sigma, features.DERIVATIONS[identifier].cases))
        assert _verdict(identifier, derivation=derivation) != RECORDED[identifier]
    else:
        assert _verdict(identifier) != RECORDED[identifier]


def _true_sigma(cases: Callable[[], Iterator[Case]]) -> Iterator[Case]:
    for case in cases():
        yield Case(case.where, {**case.symbols, "sigma": lambda a: 1 / (1 + sp.exp(-a))}, case.expected)


def test_a_slip_in_the_derivation_for_users_models_changes_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = calculus.derivative
    monkeypatch.setattr(calculus, "derivative", lambda expression, symbol: 2 * honest(expression, symbol))
    for family in (generic.network, generic.fourier, generic.radial):
        family.cache_clear()
    try:
        for identifier in ("B.1.gradient-w", "B.1.hessian-vw", "B.2.hessian-xx", "B.3.gradient-v"):
            assert _verdict(identifier) != RECORDED[identifier], identifier
    finally:
        for family in (generic.network, generic.fourier, generic.radial):
            family.cache_clear()
