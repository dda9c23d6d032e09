"""Figures in one call: an episode with bands of the belief, a plan, the cost of a decision, an unknown function.

Every function returns a matplotlib figure, which notebooks show, and writes it where a path is given. They need
matplotlib: pip install matplotlib.

>>> figure = symdual.plot.episode(symdual.simulate(problem, "dual", runs=2), path=folder / "episode.png")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.common.transforms import moments_of, values_of
from symdual.controllers import knows_truth
from symdual.report.drawing import new_figure, save
from symdual.report.palette import BELIEVED, LOOKS, PARTS, TRUE
from symdual.runtime.belief import Belief
from symdual.runtime.explained import Curve, Decision
from symdual.runtime.labelled import Labelled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from symdual.spec.model import Model
    from symdual.spec.scenario import Scenario

__all__ = ["cost", "episode", "function", "plan"]
WIDTH = 2.0  #: standard deviations of a band
_MOST = 12  # panels; more make a figure that nobody reads


def __dir__() -> list[str]:
    """What is public, for completion."""
    return __all__


def episode(results: Labelled, controller: str | None = None, run: int = 0, path: str | Path | None = None) -> Figure:
    """Draw one episode: true states and inputs, and the belief about states and unknowns with its bands.

    Args:
        results: what `simulate`, `sweep` or `open_results` returns.
        controller: which one; the first by default.

    >>> figure = symdual.plot.episode(symdual.simulate(problem, "dual", runs=2), run=1)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['x', 'b (unknown)', 'u']
    """
    name = results.controllers[0] if controller is None else controller
    if name not in results.controllers:
        raise SymdualError(f'there is no controller "{name}" here; there are {", ".join(results.controllers)}')
    if not 0 <= run < results.description.runs:
        raise SymdualError(f"there is no run {run}: runs are numbered from 0 to {results.description.runs - 1}")
    states, inputs = results.array(name, "states")[run], results.array(name, "inputs")[run]
    means, (lower, upper) = results.array(name, "means")[run], results.band(name, run, WIDTH)
    truths, nx = results.array(name, "truths")[run], states.shape[1]
    same = knows_truth(name) or results.about["model"] == results.about["plant"]
    belief, drivers = results.names(name, "belief"), results.names(name, "input")
    entries = list(range(len(belief)))[:_MOST]
    with new_figure((8.0, 0.6 + 1.5 * -(-(len(entries) + len(drivers)) // 2))) as figure:
        panels = _panels(figure, len(entries) + len(drivers))
        times, colour = np.arange(float(len(states))), LOOKS[name].colour
        for axes, i in zip(panels, entries, strict=False):
            _band(axes, times, means[:, i], lower[:, i], upper[:, i], colour)
            if i < nx:
                axes.plot(times, states[:, i], color=TRUE, lw=1.0, label="true")
            elif same:
                axes.axhline(truths[i - nx], color=TRUE, lw=1.0, ls="--")
            axes.set_title(belief[i] if i < nx else f"{belief[i]} (unknown)")
        for axes, a in zip(panels[len(entries) :], range(len(drivers)), strict=True):
            axes.step(times[:-1], inputs[:, a], where="post", color=colour, lw=1.3)
            axes.set_title(drivers[a])
        rest = f"; {len(entries)} of {len(belief)} entries of the belief" if len(entries) < len(belief) else ""
        title = f"{results.about['scenario']}, {name}, run {run}: mean and {WIDTH:g} standard deviations{rest}"
        figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    return _finished(figure, path)


def plan(decision: Decision, path: str | Path | None = None) -> Figure:
    """Draw the plan of a decision: states and inputs, and how the belief is expected to go on.

    The wide band is where states are expected if nothing were measured, the narrow one what the measurements of the
    plan leave unknown.

    >>> figure = symdual.plot.plan(symdual.explain(problem, "dual")["dual"].decisions[0])
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['x', 'b (unknown)', 'u']
    """
    names, nx = decision.belief.names, decision.plan_states.shape[1]
    means = np.repeat(decision.belief.mean[None], len(decision.plan_states), axis=0)
    means[:, :nx] = decision.plan_states
    wide, narrow = (_bands(decision.belief, means, spread) for spread in (decision.unmeasured, decision.measured))
    entries = range(min(len(names), _MOST))
    with new_figure((8.0, 0.6 + 1.5 * -(-(len(entries) + len(decision.u)) // 2))) as figure:
        panels = _panels(figure, len(entries) + len(decision.u))
        times = decision.k + np.arange(float(len(means)))
        for axes, i in zip(panels, entries, strict=False):
            for (middle, lower, upper), alpha in ((wide, 0.12), (narrow, 0.25)):
                _band(axes, times, middle[:, i], lower[:, i], upper[:, i], BELIEVED, alpha)
            axes.set_title(names[i] if i < nx else f"{names[i]} (unknown)")
        for axes, a in zip(panels[len(entries) :], range(len(decision.u)), strict=True):
            axes.step(times[:-1], decision.plan_inputs[:, a], where="post", color=BELIEVED, lw=1.3)
            axes.plot(times[0], decision.u[a], "o", color=TRUE, ms=4)
            axes.set_title(decision.inputs[a])
        title = f"plan at step {decision.k}: wide band without measurements, narrow band with those that it expects"
        figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    return _finished(figure, path)


def cost(decision: Decision, path: str | Path | None = None) -> Figure:
    """Draw the cost of a decision over the input, split into certainty-equivalent, caution and probing.

    >>> figure = symdual.plot.cost(symdual.explain(problem, "dual")["dual"].decisions[0])
    >>> [line.get_label() for line in figure.axes[0].get_lines()][:4]
    ['cost', 'certainty-equivalent', 'caution', 'probing']
    """
    if not decision.curves:
        raise SymdualError("this decision has no curve: its problem has constraints and its controller does not search")
    with new_figure((4.5 * len(decision.curves), 3.4)) as figure:
        panels = figure.subplots(1, len(decision.curves), squeeze=False)[0]
        for axes, curve, chosen in zip(panels, decision.curves, decision.u, strict=False):
            _cost(axes, curve, float(chosen))
        figure.suptitle(f"cost over the input at step {decision.k}", fontsize=9, x=0.01, ha="left")
    return _finished(figure, path)


def _cost(axes: Axes, curve: Curve, chosen: float) -> None:
    axes.plot(curve.values, curve.cost, color=TRUE, lw=1.8, label="cost")
    for part, colour in PARTS.items():
        label = part.replace("certainty_", "certainty-")
        axes.plot(curve.values, getattr(curve, part), color=colour, lw=1.2, label=label)
    axes.axvline(chosen, color=TRUE, lw=0.9, ls="--", label="chosen")
    axes.set_xlabel(curve.input)
    axes.legend(frameon=False, fontsize=7)


def function(
    source: str | Path | Model | Scenario,
    belief: Belief,
    name: str | None = None,
    points: ArrayLike | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw what a belief says about an unknown function of one argument: a family of features or a Gaussian process.

    Args:
        source: the model, scenario or model file whose unknown function it is.
        belief: of `problem.prior`, `controller.belief`, a decision, or the end of an episode.
        name: which function, where there are several; points: where, by default from -5 to 5.

    >>> x, u = sympy.symbols("x u")
    >>> hill = symdual.features.rbf("hill", x, centres=[-2.0, 0.0, 2.0])
    >>> model = symdual.Model([x], [u], [x + hill + u], name="hills")
    >>> prior = symdual.problem(symdual.Scenario(model, horizon=5)).prior
    >>> symdual.plot.function(model, prior).axes[0].get_title(loc="left")
    'hill(x)'
    """
    from symdual.api import generate, load
    from symdual.report.functions import believed, chosen
    from symdual.spec.loading import contents_of

    contents = contents_of(source)
    models = [m for m in contents.specifications.values() if any(len(f.arguments) == 1 for f in m.families)]
    if not models:
        raise SymdualError(f"{contents.place} has no unknown function of one argument")
    model = models[0]
    subject = chosen(model, name)
    at = np.linspace(-5.0, 5.0, 201) if points is None else np.asarray(points, dtype=np.float64)
    folders = {item.model.name: item.folder for item in generate(source)}
    found = believed(model, load(folders[model.name]), belief, subject, at)
    with new_figure((5.5, 3.2)) as figure:
        axes = figure.subplots()
        reach = WIDTH * found.deviation
        _band(axes, at, found.mean, found.mean - reach, found.mean + reach, BELIEVED)
        axes.set_title(subject.title)
        axes.set_xlabel(str(subject.argument))
    return _finished(figure, path)


def _panels(figure: Figure, count: int) -> Sequence[Any]:
    """Panels in two columns."""
    grid = figure.add_gridspec(-(-count // 2), min(count, 2))
    return [figure.add_subplot(grid[n // 2, n % 2]) for n in range(count)]


def _bands(belief: Belief, means: Array, deviations: Array) -> tuple[Array, Array, Array]:
    """Means and ends of bands in the user's units, for a path of beliefs on z."""
    ends = (values_of(belief.transforms, means + side * WIDTH * deviations) for side in (-1.0, 1.0))
    return moments_of(belief.transforms, means, deviations**2).mean, *ends


def _band(axes: Axes, at: Array, mean: Array, lower: Array, upper: Array, colour: str, alpha: float = 0.2) -> None:
    axes.fill_between(at, lower, upper, color=colour, alpha=alpha, lw=0)
    axes.plot(at, mean, color=colour, lw=1.3)


def _finished(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        save(figure, Path(path))
    return figure
