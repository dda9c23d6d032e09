"""The numbers of a model as tables: indices and priors, known numbers, noise, operations, worst errors."""

# ruff: noqa: RUF001  (the page's text is typography: Greek letters, true minus signs)

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from symdual.checks.kernels import TOLERANCE, BlockResult
from symdual.common.arrays import Array
from symdual.derive.derivation import Derivation
from symdual.emit.kernels import KernelFunction
from symdual.report.html import element, join, table
from symdual.report.mathml import Typesetter, brackets, math, number, operator, row
from symdual.report.names import identifier
from symdual.spec.noise import lower, places
from symdual.spec.symbols import Unknown, WeightArray


def augmented_state(derivation: Derivation, typesetter: Typesetter) -> Markup:
    """z = (x, theta): where each name stands and what is believed about it at first."""
    d = derivation
    rows: list[tuple[str | Markup, ...]] = [
        (str(i), math(typesetter.name(s.name)), "state", "belief at the start") for i, s in enumerate(d.states)
    ]
    start = len(d.states)
    for i, unknown in enumerate(d.model.unknowns):
        name = math(typesetter.name(unknown.name))
        prior = math(_normal(unknown.mean, unknown.variance)) if not unknown.transform else _bounded(unknown)
        rows.append((str(start + i), name, "unknown", prior))
    arrays = [(family, weight) for family in d.model.families for weight in family.weights]
    for block, (family, weight) in zip(d.weights, arrays, strict=True):
        first, last = start + block.start, start + block.start + block.count - 1
        place = str(first) if first == last else f"{first} … {last}"
        name = math(typesetter.name(block.symbol.name, typesetter.index))
        if family.process is None:
            kind = f"{block.count} weights of {family.name} ({family.kind})"
            rows.append((place, name, kind, _prior(weight)))
        else:
            kind = f"{block.count} coefficients of the covariances of {family.name} with its remembered values"
            rows.append((place, name, kind, "a Gaussian process; kept relative to it, from zero on"))
    return table(("index", "name", "what it is", "prior"), rows, numeric=(0,))


def _bounded(unknown: Unknown) -> Markup:
    """The prior of an unknown with bounds, and what of it is normal."""
    kind = "logistic-normal" if unknown.transform.two_sided else "log-normal"
    moments = join([kind, ", mean ", _rounded(unknown.mean), ", variance ", _rounded(unknown.variance)])
    return join([moments, f", {unknown.transform}; in z by {unknown.transform.formula(unknown.name)}"])


def _prior(weight: WeightArray) -> Markup:
    if weight.covariance.ndim == 2:
        size = len(weight.mean)
        return join(["mean ", span(weight.mean), f", full covariance {size} × {size}"])
    if np.all(weight.mean == weight.mean[0]) and np.all(weight.covariance == weight.covariance[0]):
        return join([math(_normal(float(weight.mean[0]), float(weight.covariance[0]))), " each"])
    return join(["mean ", span(weight.mean), ", variance ", span(weight.covariance)])


def _normal(mean: float, variance: float) -> Markup:
    inside = row(number(mean), operator(","), number(variance))
    return row(element("mi", "N", mathvariant="normal"), brackets(inside))


def span(values: Array) -> Markup:
    """A few numbers in full, one number for all of them when they are equal, otherwise their range."""
    flat = np.ravel(values)
    if np.all(flat == flat[0]):
        return _rounded(flat[0])
    if len(flat) <= 4:
        return join((_rounded(v) for v in flat), ", ")
    return join([f"{len(flat)} numbers from ", _rounded(flat.min(), 4), " to ", _rounded(flat.max(), 4)])


def _rounded(value: float, digits: int = 6) -> Markup:
    return math(number(float(f"{value:.{digits}g}")))


def inputs(derivation: Derivation, typesetter: Typesetter) -> Markup:
    """The inputs with their bounds."""
    model = derivation.model
    rows = []
    for i, symbol in enumerate(model.inputs):
        low, high = float(model.lower[i]), float(model.upper[i])
        rows.append((str(i), math(typesetter.name(symbol.name)), _bounds(low, high)))
    return table(("index", "input", "bounds"), rows, numeric=(0,))


def _bounds(low: float, high: float) -> Markup:
    if np.isinf(low) and np.isinf(high):
        return join(["none"])
    if np.isinf(low):
        return join(["at most ", _rounded(high)])
    return join(["at least ", _rounded(low)]) if np.isinf(high) else join([_rounded(low), " … ", _rounded(high)])


def known_numbers(derivation: Derivation, typesetter: Typesetter) -> Markup:
    """Constants and the families' data: numbers that may change without new code."""
    model = derivation.model
    rows: list[tuple[Markup, Markup]] = []
    if model.step is not None:
        rows.append((math(typesetter.name("step_length")), _rounded(model.step)))
    for known in model.constants:
        usual = ["usually "] if known in model.signals else []
        rows.append((math(typesetter.name(known.name)), join([*usual, _rounded(known.value)])))
    for family in model.families:
        rows += [(math(typesetter.name(a.symbol.name, typesetter.index)), span(a.values)) for a in family.data]
    return table(("known number", "value"), rows) if rows else Markup("")


def noise(derivation: Derivation, typesetter: Typesetter) -> Markup:
    """Q, R and, for the unknowns, D and Xi; of noise that depends, its entries."""
    model = derivation.model
    rows: list[tuple[str | Markup, ...]] = [
        (math(identifier("Q")), "process noise", _matrix(model.process_noise)),
        (math(identifier("R")), "measurement noise", _matrix(model.measurement_noise)),
    ]
    if model.noise is not None:
        rows = [
            (math(element("msub", identifier(letter), element("mn", f"{i}{j}"))), what, math(typesetter.typeset(entry)))
            for letter, what, matrix in (
                ("Q", "process noise", model.noise.process),
                ("R", "measurement noise", model.noise.measurement),
            )
            for (i, j), entry in zip(places(len(matrix)), lower(matrix), strict=True)
            if entry != 0
        ]
    if derivation.theta_size:
        transition = "unit matrix" if model.transition is None else _matrix(model.transition)
        rows.append((math(identifier("D")), "transition of the unknowns", transition))
        rows.append(
            (math(identifier("Ξ")), "drift of the unknowns", "zero" if model.drift is None else _matrix(model.drift))
        )
    return table(("", "", "value"), rows)


def _matrix(values: Array) -> str | Markup:
    if values.ndim == 2 and np.count_nonzero(values - np.diag(np.diagonal(values))):
        return f"full, {values.shape[0]} × {values.shape[1]}"
    diagonal = np.diagonal(values) if values.ndim == 2 else values
    return "zero" if not np.any(diagonal) else join(["diagonal: ", span(diagonal)])


def operations(functions: Sequence[KernelFunction]) -> Markup:
    """What each kernel computes and how many operations that takes."""
    rows = [(element("code", f.name), f.kernel.operations, f.summary) for f in functions]
    return table(("kernel", "operations", "result"), rows, class_="roomy")


def worst_errors(results: Sequence[BlockResult]) -> Markup:
    """The worst relative error against each oracle, then by block, the largest first."""
    misses = [r for r in results if not r.passed]
    worst = max(results, key=lambda r: r.error)
    verdict = (
        element("span", f"{len(misses)} of {len(results)} comparisons miss", class_="bad")
        if misses
        else element("span", f"All {len(results)} comparisons pass", class_="good")
    )
    text = (
        f"; the worst relative error is {worst.error:.1e} ({worst.block}, {worst.oracle}), allowed is {TOLERANCE:.0e}."
    )
    shown = sorted((r for r in results if r.error > 0 or not r.passed), key=lambda r: (r.passed, -r.error))[:12]
    rows = [
        (
            r.block,
            r.oracle,
            str(r.entries),
            f"{r.error:.1e}",
            f"{r.ulps:.1f}",
            element("span", "ok" if r.passed else "miss", class_="good" if r.passed else "bad"),
        )
        for r in shown
    ]
    header = ("block", "oracle", "entries", "relative error", "ulp", "")
    exact = len(results) - sum(r.error > 0 or not r.passed for r in results)
    note = element(
        "p", f"At most the twelve worst are shown; {exact} of {len(results)} agree in every bit.", class_="note"
    )
    return element("p", verdict, text) + (table(header, rows, numeric=(2, 3, 4)) if rows else Markup("")) + note
