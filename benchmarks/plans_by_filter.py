"""What plans cost that count what each filter counts: ce, dual, dual at order 2 and planned with every filter.

    python benchmarks/plans_by_filter.py [--runs 400] [--seconds 60] [--filter NAME] [--store FILE] [--table] [SYSTEM]

Every example, gallery system and model of belief_models on which filters differ. Truth, drift and noise are drawn, the
same for all filters and controllers. A row has the mean cost with the first filter; the rows below it have the
difference to that, run by run, with its standard error in percent, and how many episodes failed.

What is done is kept in the store, a JSON file, in parts of PART episodes: the command goes on where it was interrupted.
A system gets as many runs as its seconds of processor time allow, one part at least.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from filters import GALLERY, model_file, shown, systems

from symdual import api
from symdual.backends.loading import load
from symdual.checks.filters import filters_of, with_filter
from symdual.common.errors import SymdualError
from symdual.generation import generated, wanted
from symdual.runtime import problem as problems
from symdual.runtime.closed_loop import Settings
from symdual.runtime.problem import Problem
from symdual.spec.loading import load_model_file

PART = 25  # episodes between two entries in the store, drawn from a seed of their own
CONTROLLERS = {"ce": ("ce", 1), "dual": ("dual", 1), "dual, order 2": ("dual", 2), "planned": ("planned", 1)}
WINDOWS = {"reactor": 8, "stirred_tank": 15}  # moving horizons, as their pages have them

Found = dict[str, dict[str, dict[str, Any]]]  # by filter and controller: costs, null where it failed, and seconds


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("systems", metavar="SYSTEM", nargs="*", help="names of systems [all]")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each system, compilation aside")
    parser.add_argument("--filter", action="append", default=[], help="beside the extended one [all that differ]")
    parser.add_argument("--store", type=Path, default=Path("results/plans_by_filter.json"))
    parser.add_argument("--table", action="store_true", help="only print what is there")
    given = parser.parse_args()
    sys.argv = sys.argv[:1]  # pages of the gallery read their own
    store: dict[str, Found] = json.loads(given.store.read_text()) if given.store.exists() else {}
    sys.path.insert(0, str(GALLERY))  # where pages of the gallery have a module in common
    for file in () if given.table else systems(given.systems):
        place = given.store.parent / "packages" / file.stem
        place.mkdir(parents=True, exist_ok=True)
        try:
            for name, versions in with_each_filter(file, place, given.filter):
                settings = Settings("drift", window=WINDOWS.get(file.stem))
                found = store.setdefault(name, {})
                for _ in run_more(versions, settings, found, given.runs, given.seconds):
                    given.store.write_text(json.dumps(store))
                print("\n".join(rows(name, store[name])), flush=True)
        except SymdualError as failure:
            print(f"{file.stem}: {failure}", file=sys.stderr, flush=True)
    print("\n".join(table(store)))


def with_each_filter(file: Path, place: Path, names: list[str]) -> Iterator[tuple[str, dict[str, Problem]]]:
    """The problems of a file on which filters differ, each with every filter, or the extended one and those named."""
    contents = load_model_file(model_file(file, place))
    packages = {one.name: one for one in wanted(contents)}
    generated(contents, place)
    for name, scenario in contents.scenarios.items():
        asked = packages[scenario.model.name]
        groups = {
            used: same
            for used, same in filters_of(asked)[0].items()
            if not names or {used, *same} & {"extended", *names}
        }
        if len(groups) > 1:
            own = problems.problem(load(place / scenario.model.name), name)
            versions = {}
            for used, same in groups.items():
                mine = asked.specification.filter in (used, *same)
                version = own if mine else with_filter(own, asked, used, place, None)
                versions[used] = api.problem(version, parts="planned")
            yield name, versions


def run_more(
    versions: dict[str, Problem], settings: Settings, found: Found, runs: int, seconds: float
) -> Iterator[None]:
    """Parts of episodes with every filter and controller, as long as there is time for a whole round of them.

    Yields after each part.
    """
    ways = [(used, name) for used in versions for name in CONTROLLERS]
    for used, name in ways:
        found.setdefault(used, {}).setdefault(name, {"costs": [], "seconds": 0.0})
    while True:
        done = min(len(found[used][name]["costs"]) for used, name in ways)
        spent = sum(found[used][name]["seconds"] for used, name in ways)
        if done >= runs or (done and spent * (done + PART) / done > seconds):
            return
        for used, name in ways:
            if len(found[used][name]["costs"]) == done:
                add_part(versions[used], name, done // PART, settings, found[used][name])
                yield


def add_part(problem: Problem, name: str, part: int, settings: Settings, kept: dict[str, Any]) -> None:
    """One part of episodes; what is compiled before is not counted."""
    kind, order = CONTROLLERS[name]
    own = Settings(settings.truth, order, settings.window, settings.length)
    if part == 0:
        api.simulate(problem, kind, 1, seed=0, settings=own)
    start = time.process_time()
    episodes = api.simulate(problem, kind, PART, seed=part, settings=own)[kind]
    kept["seconds"] += time.process_time() - start
    fine = (episodes.outcomes == 0) & np.isfinite(episodes.costs)
    kept["costs"] += [float(cost) if good else None for cost, good in zip(episodes.costs, fine, strict=True)]


def rows(name: str, found: Found) -> Iterator[str]:
    """The rows of a system, over the runs that all have."""
    names = {used: {kind: found[used][kind]["costs"] for kind in CONTROLLERS} for used in found}
    count = min(len(costs) for kinds in names.values() for costs in kinds.values())
    costs = {used: {k: np.array(c[:count], dtype=float) for k, c in kinds.items()} for used, kinds in names.items()}
    first = next(iter(costs.values()))
    for used, kinds in costs.items():
        cells = [shown(kinds[kind], first[kind]) for kind in CONTROLLERS]
        yield f"| {name} | {count} | {used} | " + " | ".join(cells) + " |"


def table(store: dict[str, Found]) -> Iterator[str]:
    """The table of all systems."""
    yield "| system | runs | filter | " + " | ".join(CONTROLLERS) + " |"
    yield "|" + "---|" * (3 + len(CONTROLLERS))
    for name, found in store.items():
        yield from rows(name, found)


if __name__ == "__main__":
    main()
