"""The arena.

    python -m benchmarks.arena [--quick] [--runs 200] [--seed 0] [--only SYSTEM ...] [--cluster ADDRESS] [--json FILE]
    python -m benchmarks.arena --tune          # chooses the settings of rivals on seeds of their own
    python -m benchmarks.arena --write         # renews the tables of docs/arena.md from the results that are committed

Goes on where it was interrupted. Writes a page, page.html, beside the episodes in results/arena. The settings of all
controllers are those of settings.json, chosen before the run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # systems import models of examples and tests

from symdual.common.errors import SymdualError
from symdual.runtime.sweep import Execute

from . import page, tables
from .roster import HERE, Chosen, systems
from .scores import Played
from .tournament import Round, play
from .tune import tune

SETTINGS = HERE / "settings.json"
TUNING_SEED = 1
QUICK = ("toy", "unknown_gain", "cart", "offset", "tracking", "light_dark", "drifting_gain", "brim")


def main() -> None:
    """Read the command line and do it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few systems, 16 runs")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=())
    parser.add_argument("--cluster", metavar="ADDRESS", help="run on the Dask cluster with this scheduler")
    parser.add_argument("--jobs", type=int, help="threads, all of the machine by default")
    parser.add_argument("--folder", type=Path, default=Path("results/arena"))
    parser.add_argument("--json", type=Path, help="write scores to this file")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--write", action="store_true")
    told = parser.parse_args()
    if told.write:
        tables.write()
        return
    runs = 16 if told.quick else told.runs
    only = tuple(told.only) or (QUICK if told.quick else ())
    with executor(told.cluster, told.jobs) as execute:
        everyone = systems(told.folder / "packages", only)
        if told.tune:
            tune(everyone, Round(runs, TUNING_SEED, Chosen(), told.folder / "tuning"), execute, SETTINGS)
            return
        round_ = Round(runs, told.seed, Chosen.read(SETTINGS), told.folder / f"seed-{told.seed}")
        played: list[Played] = []
        for system in everyone:
            try:
                played.append(play(system, round_, execute, "numba" if told.cluster else None))
            except SymdualError as failure:
                print(f"{system.name}: {failure}", file=sys.stderr)
                continue
            print(tables.line(played[-1]), flush=True)
    found = {"runs": runs, "seed": told.seed, "systems": [one.to_json() for one in played]}
    file = told.json or round_.folder / "scores.json"
    file.write_text(json.dumps(found, indent=1) + "\n")
    print(f"scores in {file}, page in {page.write(played, runs, told.seed, round_.folder / 'page.html')}")


@contextmanager
def executor(address: str | None, jobs: int | None) -> Iterator[Execute]:
    """How chunks are run, here or on a cluster."""
    if address is None:
        from symdual.runtime.threads import on_this_machine

        yield on_this_machine(jobs)
        return
    from symdual.runtime.cluster import connect, on_cluster

    client = connect(address)
    try:
        yield on_cluster(client)
    finally:
        client.close(timeout=1)


if __name__ == "__main__":
    main()
