"""`symdual new`: a commented model file to start from."""

from __future__ import annotations

from pathlib import Path

import click

from symdual.commands.json_file import write_json
from symdual.commands.options import json_option
from symdual.commands.terminal import shown
from symdual.common.errors import SymdualError

CONTENT = '''"""{name}: a cart whose motor and friction are not known.

This file runs as it is:

    symdual simulate {file}

Change anything: the equations, the unknowns, the task.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

# The states, and the inputs that the controller chooses.
position, velocity, force = sp.symbols("position velocity force")

# The unknowns: your best guess, and the variance of its error.
# Be honest with the variance. For whole unknown functions see symdual.features.
strength = unknown("strength", mean=1.0, variance=0.1)  # of the motor
friction = unknown("friction", mean=0.3, variance=0.02)

# The equations, in continuous time.
# For a model in steps give dynamics=[the next state, ...] and no step.
model = Model(
    states=[position, velocity],
    inputs=[force],
    derivatives=[velocity, strength * force - friction * velocity],
    step=0.2,  # seconds from one input to the next
    method="rk4",
    process_noise=[1e-6, 1e-4],  # variances of the disturbance of each state in a step
    observation=[position],  # the measurements; by default all states
    measurement_noise=1e-3,  # the variance of their errors
    bounds={{"force": (-3.0, 3.0)}},
)

# The task. The cart has 18 steps to reach 2, on any path; then it has to stay there.
scenario = Scenario(
    model,
    horizon=25,
    reference=[2.0, 0.0],
    state_cost=lambda k: [30.0, 3.0] if k >= 18 else [0.0, 0.0],  # weights of squared distances
    input_cost=0.002,
    start_covariance=[1e-3, 1e-3],
    # To simulate one system instead of many from the prior:
    # truth={{"strength": 0.6, "friction": 0.4}},
)
'''


@click.command(short_help="Write a commented model file to start from.")
@click.argument("name")
@json_option
def new(name: str, json_file: Path | None) -> None:
    """Write a commented model file NAME.py to start from, which runs as it is."""
    from symdual.spec.names import check_name

    file = Path(name if name.endswith(".py") else f"{name}.py")
    check_name(file.stem.replace("-", "_"), "the model")
    try:
        with file.open("x", encoding="utf-8") as stream:
            stream.write(CONTENT.format(name=file.stem, file=file.name))
    except FileExistsError as failure:
        raise SymdualError(f"{file} is there already; choose another name, or delete it first") from failure
    except OSError as failure:
        raise SymdualError(f"cannot write {file}: {failure.strerror}") from failure
    click.echo(f"{shown(file)} written; run it with: symdual simulate {file}")
    write_json(json_file, {"file": str(file)})
