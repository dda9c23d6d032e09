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

    symdual simulate {file} --runs 50 --html decisions.html

Change what you like: the equations, what is unknown in them, and what is to be done.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

# What the system is described by: states, and inputs that you choose.
position, velocity, force = sp.symbols("position velocity force")

# What is not known, with what you would bet on before the first measurement: a mean and a
# variance. Be honest with the variance. For whole functions see symdual.features.
gain = unknown("gain", mean=1.0, variance=0.5)  # of the motor, perhaps even backwards
friction = unknown("friction", mean=0.3, variance=0.05)

# The equations, in continuous time.
# For a model in steps give dynamics=[the next state, ...] and no step.
model = Model(
    states=[position, velocity],
    inputs=[force],
    derivatives=[velocity, gain * force - friction * velocity],
    step=0.2,  # seconds from one input to the next
    process_noise=[1e-4, 1e-3],  # variances of what disturbs each state in a step
    observation=[position],  # what is measured; without this, the states themselves
    measurement_noise=1e-3,  # and the variance of its errors
    bounds={{"force": (-3.0, 3.0)}},
)

# What is to be done: bring the cart to position 1 within 25 steps, and keep it there.
scenario = Scenario(
    model,
    horizon=25,
    state_cost=[1.0, 0.1],  # weights of squared distances from the reference
    input_cost=0.01,
    reference=[1.0, 0.0],
    start=[0.0, 0.0],
    start_covariance=[1e-2, 1e-2],
    # To simulate one system, and not such that are drawn from the prior:
    # truth={{"gain": 0.6, "friction": 0.4}},
)
'''


@click.command()
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
    click.echo(f"{shown(file)} written; run it with: symdual simulate {file} --runs 50")
    write_json(json_file, {"file": str(file)})
