"""Numbers by controller, run and time under the names that the user gave, whether they lie in memory or in a file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symdual.common.arrays import Array
from symdual.common.display import shown
from symdual.common.errors import SymdualError, did_you_mean
from symdual.common.named_arrays import named
from symdual.common.transforms import band_of, between
from symdual.controllers import knows_truth

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from symdual.runtime.results import Description
    from symdual.runtime.summary import Summary

VIEWS = ("steps", "runs")
_NAMED = ("state", "input", "belief", "parameter")
_BY_TIME = {"cost": "step_costs", "NIS": "nis", "log-likelihood": "log_likelihood"}
_BY_RUN = {"cost": "costs", "NEES state": "nees_state", "NEES parameters": "nees_parameters"}


class Labelled(ABC):
    """What `simulate` gives and what a results file holds, to be read in the same way.

    >>> symdual.simulate(problem, "dual", runs=2).names("dual", "belief")
    ['x', 'b']
    """

    about: dict[str, Any]
    description: Description

    @abstractmethod
    def array(self, controller: str, field: str) -> NDArray[Any]:
        """A field of a controller, by its name in `symdual.runtime.results.FIELDS`; the first axis is the run.

        A last axis of states, inputs, beliefs or parameters has their names: `array("dual", "states")["x"]`.
        """

    @abstractmethod
    def problem(self, name: str) -> Array:
        """An array of the problem, `reference`, `state_cost` or `input_cost`; the first axis is the time."""

    @property
    def controllers(self) -> tuple[str, ...]:
        """The names of the controllers."""
        return self.description.controllers

    def names(self, controller: str, axis: str) -> list[str]:
        """The user's names along an axis: "state", "input", "belief" or "parameter"."""
        known = self.about["names"]
        size = self.description.sizes[controller][axis]
        if axis == "belief" and knows_truth(controller):  # which believes in the plant
            names = [*known["states"], *known.get("parameters", [])]
        else:
            key = {"belief": "belief", "parameter": "parameters"}.get(axis, f"{axis}s")
            names = list(known.get(key, []))
        return [str(name) for name in names] if len(names) == size else [f"{axis} {i}" for i in range(size)]

    def band(self, controller: str, run: int, width: float) -> tuple[Array, Array]:
        """The ends of a band of so many deviations around what was believed in a run, (T+1, NZ) each.

        Of an unknown with bounds it is a band of its logarithm or logit, and keeps within them.
        """
        known = self.about.get("bounds", {}).get("plant" if knows_truth(controller) else "model", {})
        transforms = [between(known.get(name, (None, None))) for name in self.names(controller, "belief")]
        means, variances = (self.array(controller, field)[run] for field in ("means", "variances"))
        return band_of(transforms, means, variances, width)

    def _with_names(self, controller: str, axis: str, values: NDArray[Any]) -> NDArray[Any]:
        """A field whose last axis is this one, with the names that it has."""
        return named(values, self.names(controller, axis)) if axis in _NAMED else values

    def to_pandas(self, what: str = "steps") -> pandas.DataFrame:
        """A table of all numbers under the user's names.

        Args:
            what: "steps" for a row for each controller, run and time, with the columns (state, name), (input, name),
                (mean, name) and (deviation, name) of the belief, and (step, ...) for cost and consistency; "runs" for a
                row for each controller and run, with cost, outcome, consistency at the end and true parameters.

        >>> episodes = symdual.simulate(problem, ["ce", "dual"], runs=3)
        >>> frame = episodes.to_pandas()
        >>> frame.loc["dual", 0]["state", "x"].shape
        (3,)
        >>> sorted(set(frame.columns.get_level_values(0)))
        ['deviation', 'input', 'mean', 'state', 'step']
        """
        if what not in VIEWS:
            raise SymdualError(f'there is no table "{what}"{did_you_mean(what, VIEWS)}; known: {", ".join(VIEWS)}')
        try:
            import pandas
        except ImportError as missing:
            raise SymdualError("labelled tables need pandas: pip install 'symdual[pandas]'") from missing
        table = self._steps if what == "steps" else self._runs
        return pandas.concat([table(name) for name in self.controllers])

    def _index(self, controller: str, **levels: int) -> pandas.MultiIndex:
        """Rows of one controller; controllers keep the order in which they were asked for."""
        import pandas

        own = pandas.CategoricalIndex([controller], categories=list(self.controllers), ordered=True)
        return pandas.MultiIndex.from_product([own, *map(range, levels.values())], names=["controller", *levels])

    def _steps(self, controller: str) -> pandas.DataFrame:
        import pandas

        runs, times = self.description.runs, self.description.sizes[controller]["time"]
        inputs = np.full((runs, times, self.description.sizes[controller]["input"]), np.nan)
        inputs[:, :-1] = self.array(controller, "inputs")
        parts = {
            "state": (self.array(controller, "states"), "state"),
            "input": (inputs, "input"),
            "mean": (self.array(controller, "means"), "belief"),
            "deviation": (np.sqrt(self.array(controller, "variances")), "belief"),
        }
        columns = {
            (kind, name): values[:, :, i].ravel()
            for kind, (values, axis) in parts.items()
            for i, name in enumerate(self.names(controller, axis))
        }
        columns |= {("step", name): self.array(controller, field).ravel() for name, field in _BY_TIME.items()}
        return pandas.DataFrame(columns, index=self._index(controller, run=runs, time=times))

    def _runs(self, controller: str) -> pandas.DataFrame:
        import pandas

        reasons = self.about["outcomes"]
        columns: dict[str, Any] = {name: self.array(controller, field) for name, field in _BY_RUN.items()}
        columns["outcome"] = [reasons[code] for code in self.array(controller, "outcomes")]
        truths = self.array(controller, "truths")
        columns |= {f"true {name}": truths[:, i] for i, name in enumerate(self.names(controller, "parameter"))}
        return pandas.DataFrame(columns, index=self._index(controller, run=self.description.runs))

    def summary(self, failure_cost: float | None = None) -> Summary:
        """Costs with standard errors, paired differences, failures, and the consistency of the filter.

        With a `failure_cost`, the cost of episodes that fail, the mean over all episodes is told too.

        >>> symdual.simulate(problem, ["ce", "dual"], runs=3).summary().baseline
        'ce'
        """
        from symdual.runtime.summary import summarise

        return summarise(self, failure_cost)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what each controller does, costs and knows; needs matplotlib. With a path, also write it there.

        >>> figure = symdual.simulate(problem, ["ce", "dual"], runs=3).plot()
        >>> len(figure.subfigs)
        2
        """
        figure: Figure = shown("a sweep as a figure", self, self.summary())
        if path is not None:
            shown("a figure in a file", figure, Path(path))
        return figure

    def _repr_html_(self) -> str:
        """The summary, for notebooks."""
        return self.summary()._repr_html_()
