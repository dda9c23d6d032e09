"""Which filter is honest, and what it costs: every filter on every example, gallery system and model of belief_models.

    python benchmarks/filters.py [--runs 200] [--controller dual] [MODEL ...] | python benchmarks/markdown.py filters -

For each system and each filter that differs on it, over systems that are drawn from the prior: NEES of the unknowns for
each dimension (mean and median), NIS, error at the end in deviations of the prior, runs in which the belief was lost,
and the time of a step relative to the extended filter, as `symdual check --belief` has them, on the same data. Then
the cost of `ce` (and of other controllers) in closed loop with that filter, minus that with the extended one, run by
run, as a share of the latter; with the number of episodes that failed. Costs may be negative: the share is of the size.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from symdual.api import simulate
from symdual.backends.loading import load
from symdual.checks.filters import compare_filters, filters_of, with_filter
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.generation import wanted
from symdual.runtime import problem as problems
from symdual.spec.loading import load_model_file

ROOT = Path(__file__).resolve().parent.parent
GALLERY = ROOT / "examples/gallery"
FOLDERS = (ROOT / "examples", GALLERY, ROOT / "benchmarks/belief_models")
BEGINS_TO_RUN = ("problem = ", "problems = ")  # from here on a page of the gallery is no model file any more
COLUMNS = ("system", "filter", "NEES", "median", "NIS", "error", "lost", "time")


def main() -> None:
    """Print the table, a row for each system and filter."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", metavar="MODEL", nargs="*", help="names of systems [all]")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--episodes", type=int, help="episodes of each controller [as many as runs]")
    parser.add_argument("--controller", action="append", default=[], help="beside ce")
    given = parser.parse_args()
    sys.argv = sys.argv[:1]  # pages of the gallery read their own
    controllers = ["ce", *given.controller]
    print("| " + " | ".join([*COLUMNS, *(f"cost of {name}" for name in controllers)]) + " |")
    print("|" + "---|" * (len(COLUMNS) + len(controllers)), flush=True)
    sys.path.insert(0, str(GALLERY))  # where pages of the gallery have a module in common
    for file in systems(given.models):
        with tempfile.TemporaryDirectory() as place:
            try:
                for row in rows(file, Path(place), given.runs, given.episodes or given.runs, controllers):
                    print("| " + " | ".join(row) + " |", flush=True)
            except SymdualError as failure:
                print(f"{file.stem}: {failure}", file=sys.stderr, flush=True)


def systems(names: Sequence[str]) -> Iterator[Path]:
    """The model files, each system once."""
    seen: set[str] = set()
    for folder in FOLDERS:
        for file in sorted(folder.glob("[!_]*.py")):
            if file.stem not in seen and "Scenario(" in file.read_text() and (not names or file.stem in names):
                seen.add(file.stem)
                yield file


def model_file(file: Path, place: Path) -> Path:
    """A file with the models of another one, without what it does with them."""
    lines = file.read_text().splitlines(keepends=True)
    end = next((i for i, line in enumerate(lines) if line.startswith(BEGINS_TO_RUN)), len(lines))
    copy = place / file.name
    copy.write_text("".join(lines[:end]))
    return copy


def rows(file: Path, place: Path, runs: int, episodes: int, controllers: Sequence[str]) -> Iterator[list[str]]:
    """The rows of a system."""
    contents = load_model_file(model_file(file, place))
    packages = {one.name: one for one in wanted(contents)}
    for name, found in compare_filters(contents, runs, 0, place, None, lambda what, share: None).items():
        asked = packages[found.model]
        own = problems.problem(load(place / found.model), name)
        costs: dict[str, list[Array]] = {}
        for used, same in filters_of(asked)[0].items():
            mine = found.own in (used, *same)
            version = own if mine else with_filter(own, asked, used, place, None)
            costs[used] = closed_loop(version, episodes, controllers)
        for row in found.rows:
            numbers = (row.nees, row.median, row.nis, row.error)
            told = ["-" if n is None else f"{n:.3g}" for n in numbers]
            time = "-" if row.time is None else f"{row.time:.2f}"
            dearer = [
                shown(mine, first) for mine, first in zip(costs[row.name], costs[found.rows[0].name], strict=True)
            ]
            label = " = ".join((row.name, *row.same)) + "*" * (found.own in (row.name, *row.same))
            yield [name, label, *told, str(row.lost), time, *dearer]


def closed_loop(problem: problems.Problem, episodes: int, controllers: Sequence[str]) -> list[Array]:
    """The cost of each episode of each controller, NaN where it failed."""
    truth = "scenario" if problem.package.PROCESSES else "drift"
    found = simulate(problem, controllers, episodes, seed=1, truth=truth)
    return [np.where(found[name].outcomes == 0, found[name].costs, np.nan) for name in controllers]


def shown(costs: Array, first: Array) -> str:
    """The difference to the first filter with its standard error, in percent of the cost, and how many failed."""
    both = np.isfinite(costs) & np.isfinite(first)
    failed = int(np.sum(~np.isfinite(costs)))
    lost = f", {failed} failed" if failed else ""
    if costs is first:
        return f"{np.nanmean(costs):.4g}{lost}" if failed < len(costs) else f"-{lost}"
    if both.sum() < 2:
        return f"-{lost}"
    gap, size = (costs - first)[both], abs(float(np.mean(first[both])))
    mean, error = float(np.mean(gap)), float(np.std(gap, ddof=1) / np.sqrt(both.sum()))
    return f"{100 * mean / size:+.2g} ± {100 * error / size:.1g} %{lost}"


if __name__ == "__main__":
    main()
