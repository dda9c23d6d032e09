"""What explanations ask about a decision: the costs of other inputs, and how sure the filter will be along a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from symdual.common.arrays import Array
from symdual.entries.types import Records
from symdual.runtime.belief import Belief
from symdual.runtime.evaluate import observation
from symdual.runtime.objective import constraints_of
from symdual.runtime.solver import Solver


def prices(solver: Solver, k: int, belief: Belief, candidates: Array, form: str, order: int) -> Array:
    """Jbar, w Jd if nothing more were learned, and what learning takes off w Jd, of each first input, (N, 3).

    With constraints all three are those of one plan, with the back-offs that the controller keeps on it.
    """
    package, workspace, (start, end) = solver.package, solver.workspace, solver.times(k)
    calls, held, weight = package.calls, solver.hold(belief), float(solver.settings["weight"][0])
    calls.certainty_equivalent(start, end, held, workspace, np.zeros(package.NU))
    found, constrained = np.full((len(candidates), 3), np.nan), bool(constraints_of(package))
    for row, u in zip(found, candidates, strict=True):
        if constrained:
            row[0], status, buffer, _ = calls.plan_with_backoff(start, end, u, held, workspace)
        else:
            row[0], status, buffer, _ = calls.plan_through(start, end, u, workspace)
        if status >= package.nominal.NOT_FINITE:
            continue
        row[1] = weight * _uncertain(solver, (start, end, buffer), form, order, held, 0.0)
        row[2] = weight * _uncertain(solver, (start, end, buffer), form, order, held, 1.0) - row[1]
    return found


def _uncertain(
    solver: Solver, plan: tuple[int, int, int], form: str, order: int, held: Records, learning: float
) -> float:
    """Jd of a plan (begin, end, its buffer), with learning about the parameters or without."""
    calls, workspace = solver.package.calls, solver.workspace
    with solver.changed(learning=learning):
        if form == "lowrank":
            return calls.jd_lowrank(*plan, held, workspace)
        return calls.jd_structured(*plan, order, held, workspace)[0]


def outlook(solver: Solver, k: int, belief: Belief, inputs: Array, measuring: bool) -> Array:
    """Standard deviations of z along planned inputs, (S+1, NZ): with expected measurements or without any."""
    package, held = solver.package, solver.package.records.make_belief(belief.mean, belief.covariance)
    filter_workspace = package.filter.make_filter_workspace(solver.settings.copy())
    settings = filter_workspace.settings
    if belief.memory is not None:
        settings["numbers"][0] = belief.memory
    if package.SQUARE_ROOT:
        package.filter.factorise(held)
    variances = [belief.covariance.diagonal()]
    for j, u in enumerate(inputs, start=k):
        solver.set_signals(j, settings)
        package.filter.predict(j, held, u, filter_workspace)
        if measuring:
            solver.set_signals(j + 1, settings)
            expected = replace(package, numbers={**package.numbers, "data": settings["numbers"][0]})
            y = observation(expected, held["z"][0, : package.NX], held["z"][0, package.NX :], j + 1)
            package.filter.update(j + 1, held, y, filter_workspace, np.zeros(3))
        if package.SQUARE_ROOT:
            package.filter.complete(held)
        variances.append(package.records.read_covariance(held).diagonal())
    return np.sqrt(np.maximum(variances, 0.0))
