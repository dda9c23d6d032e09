"""How a decision with a Gaussian process grows with what is remembered: `python benchmarks/processes.py [--json FILE]`.

The cart of experiment 2 with the exact kernel, after N measurements and 20 steps before the end of its plan, beside the
same cart with 30 Fourier features. One process, interleaved, the minimum over the rounds counts.
"""

from __future__ import annotations

import json
import tempfile
import timeit
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import symdual
from symdual.paper.experiments.plan import MODELS
from symdual.runtime.controller import Controller, State, controller
from symdual.runtime.posterior import remembered
from symdual.runtime.problem import Problem

WINDOW = 20
PAST = (0, 10, 50, 100, 200)
MEMORY = max(PAST) + WINDOW


def after(problem: Problem, measurements: int) -> tuple[Controller, State]:
    """A dual controller with a moving horizon that has seen the cart go to and fro."""
    chosen = controller(problem, "dual", window=WINDOW)
    random = np.random.default_rng(0)
    state = chosen.init()
    x = np.zeros(2)
    for k in range(measurements):
        u = np.array([-0.2 * x[0] - 0.5 * x[1] + 2.0 * np.sin(0.3 * k) + 0.5 * random.normal()])
        slope = -0.8 / (1 + np.exp(x[0] + 5)) + 0.4 / (1 + np.exp(5 - x[0]))
        x = np.array([x[0] + 0.4 * x[1], x[1] + slope + u[0]]) + 0.1 * random.normal(size=2)
        state, _ = chosen.update(State(k + 1, state.belief, u), x + 0.1 * random.normal(size=2))
    return chosen, state


def milliseconds(chosen: Controller, state: State, rounds: int) -> float:
    """The time of one decision."""
    chosen.choose(state)
    return 1e3 * min(timeit.repeat(lambda: chosen.choose(state), number=1, repeat=rounds))


@click.command()
@click.option("--rounds", default=25, help="Decisions of each kind.")
@click.option("--json", "file", type=click.Path(path_type=Path), help="Write the result as JSON.")
def main(rounds: int, file: Path | None) -> None:
    """Time decisions of the cart with a growing memory."""
    with tempfile.TemporaryDirectory() as folder:
        text = (MODELS / "schedule_gp.py").read_text().replace("memory=20", f"memory={MEMORY}")
        model = Path(folder) / "schedule_gp.py"
        model.write_text(text)
        problems = {}
        for source in (model, MODELS / "schedule.py"):
            symdual.generate(source, folder)
            problem = symdual.problem(symdual.load(Path(folder) / source.stem))
            problems[source.stem] = replace(problem, input_cost=np.full_like(problem.input_cost, 1e-1))
        features = milliseconds(*after(problems["schedule"], 10), rounds)
        rows = []
        for count in PAST:
            chosen, state = after(problems["schedule_gp"], count)
            known = len(remembered(problems["schedule_gp"].package, state.belief))
            rows.append((known, milliseconds(chosen, state, rounds)))
    table = Table(title=f"One dual decision, {WINDOW} steps ahead; 30 Fourier features: {features:.2f} ms")
    for heading in ("values remembered", "decision, ms", "ratio to the features"):
        table.add_column(heading, justify="right")
    for known, time in rows:
        table.add_row(str(known), f"{time:.2f}", f"{time / features:.2f}")
    Console().print(table)
    if file is not None:
        file.write_text(json.dumps({"features_ms": features, "memory": MEMORY, "decisions_ms": dict(rows)}, indent=2))


if __name__ == "__main__":
    main()
