"""What a belief says about the unknown functions of a model: families of features and Gaussian processes.

For a family g(a) = sum_i s(a; w_i), with the mean m and the covariance S of its weights,

    E g = g(a; m),    var g = (dg/dw)' S (dg/dw)            (exact where g is linear in its weights)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, did_you_mean
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.posterior import posterior
from symdual.spec.numeric import as_numpy
from symdual.spec.symbols import Family, FeatureSum
from symdual.spec.system import System


class Believed(NamedTuple):
    """Mean and standard deviation (N,) of a function at points (N,)."""

    mean: Array
    deviation: Array


class Subject(NamedTuple):
    """An unknown function of one argument as it stands in a model: its family, output and argument."""

    family: Family
    output: int
    argument: sp.Expr

    @property
    def title(self) -> str:
        """How it is called."""
        several = len(self.family.summands) > 1
        return f"{self.family.name}{f'_{self.output}' if several else ''}({self.argument})"


def functions_of(model: System) -> list[Subject]:
    """The unknown functions of one argument in the equations of a model."""
    found = {part for e in (*model.dynamics, *model.observation) for part in e.atoms(FeatureSum)}
    ordered = sorted(found, key=lambda part: (part.family.name, part.output, str(part)))
    subjects: dict[tuple[str, int], Subject] = {}
    for part in ordered:
        if len(part.points) == 1 and not part.points[0].has(FeatureSum):
            subjects.setdefault((part.family.name, part.output), Subject(part.family, part.output, part.points[0]))
    return list(subjects.values())


def chosen(model: System, name: str | None) -> Subject:
    """The function of this name, or the only one."""
    known = functions_of(model)
    if not known:
        raise SymdualError(f"the model {model.name} has no unknown function of one argument")
    own = [s for s in known if name is None or s.family.name == name]
    if not own:
        names = [s.family.name for s in known]
        raise SymdualError(f'there is no unknown function "{name}"{did_you_mean(str(name), names)}')
    return own[0]


def believed(model: System, package: LoadedPackage, belief: Belief, subject: Subject, points: Array) -> Believed:
    """What a belief says about a function at some points."""
    family = subject.family
    if family.process is not None:
        found = posterior(package, belief, points, family.name, subject.output)
        return Believed(found.mean, found.deviation)
    weights = [w.symbol for w in family.weights]
    slopes = [sp.diff(family.summands[subject.output], w) for w in weights]
    symbols = [*family.arguments, *weights, *(a.symbol for a in family.data), *family.constants]
    evaluate = as_numpy(symbols, [family.summands[subject.output], *slopes])
    places = [package.UNKNOWNS[w.name] for w in weights]
    spans = [slice(package.NX + start, package.NX + start + count) for start, count in places]
    own = [belief.mean[span] for span in spans]
    constants = [np.float64(c.value) for c in family.constants]
    value, *derivatives = evaluate(points[:, None], *own, *(a.values for a in family.data), *constants)
    shape = (len(points), family.count)
    mean = np.broadcast_to(value, shape).sum(axis=1)
    rows = np.concatenate([np.broadcast_to(d, shape) for d in derivatives], axis=1)
    index = np.concatenate([np.arange(span.start, span.stop) for span in spans])
    variance = np.einsum("ni,ij,nj->n", rows, belief.covariance[np.ix_(index, index)], rows)
    return Believed(mean, np.sqrt(np.maximum(variance, 0.0)))


def true_function(model: System, theta: Array, subject: Subject, points: Array) -> Array | None:
    """The function with the true parameters of a plant that is the model itself."""
    family = subject.family
    if family.process is not None:
        return None
    start = len(model.unknowns)
    places = {}
    for other in model.families:
        for weight in other.weights:
            places[weight.symbol.name] = slice(start, start + other.count)
            start += other.count
    weights = [theta[places[w.symbol.name]] for w in family.weights]
    symbols = [*family.arguments, *(w.symbol for w in family.weights), *(a.symbol for a in family.data)]
    symbols += family.constants
    constants = [np.float64(c.value) for c in family.constants]
    (value,) = as_numpy(symbols, [family.summands[subject.output]])(
        points[:, None], *weights, *(a.values for a in family.data), *constants
    )
    return np.asarray(np.broadcast_to(value, (len(points), family.count)).sum(axis=1))
