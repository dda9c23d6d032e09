"""What a model has decides what its package has: with every pair of features all names are known, and all used."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model, Scenario, features, signal, unknown
from symdual.common.parts import PARTS
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.spec.loading import gathered
from symdual.spec.model import FILTERS

from ..goldens import body
from .test_used import unreached, uses

x, v, u, w = sp.symbols("x v u w")
#: features of models and scenarios, by the group of which a combination has one
CHOICES = {
    "unknowns": ("scalar", "many", "process"),
    "filter": FILTERS,
    "covariance": ("blocks", "square_root"),
    "outliers": ("believed", "doubted"),
    "observation": ("states", "curved", "of unknowns"),
    "noise": ("constant", "depends"),
    "signals": ("none", "one"),
    "cost": ("quadratic", "squares", "values", "squares, then values", "values, then squares", "end only"),
    "constraints": ("none", "states", "inputs", "unknowns"),
    "inputs": ("one", "two", "discrete"),
    "drift": ("none", "diagonal", "dense"),
    "states": ("two", "ten"),
    "bounds of states": ("none", "some", "of the plant"),
}
Pair = tuple[tuple[str, str], tuple[str, str]]


def _possible(chosen: dict[str, str]) -> bool:
    """A Gaussian process has a filter and noise of its own kind."""
    plain = (
        "square_root",
        *(name for name in FILTERS if name.endswith("second_order")),
        "depends",
        "diagonal",
        "dense",
    )
    return chosen["unknowns"] != "process" or not set(plain) & set(chosen.values())


def _pairs(chosen: dict[str, str]) -> set[Pair]:
    return set(itertools.combinations(chosen.items(), 2))


def combinations() -> Iterator[dict[str, str]]:
    """Few combinations among which every possible pair of features occurs."""
    drawn, groups = random.Random(0), list(CHOICES)
    missing = set[Pair]()
    for first, second in itertools.combinations(groups, 2):
        missing |= {((first, a), (second, b)) for a in CHOICES[first] for b in CHOICES[second]}
    missing = {pair for pair in missing if _possible({"unknowns": "scalar"} | dict(pair))}
    while missing:
        first = dict(min(missing))
        tried = [{g: first.get(g) or drawn.choice(CHOICES[g]) for g in groups} for _ in range(100)]
        best = max(filter(_possible, tried), key=lambda chosen: len(_pairs(chosen) & missing))
        missing -= _pairs(best)
        yield best


def scenario(chosen: dict[str, str], name: str) -> Scenario:
    b = unknown("b", 1.0, 0.5)
    term: sp.Expr = b * u
    if chosen["unknowns"] == "many":
        term += features.fourier("g", x, count=10, lengthscale=2.0)
    elif chosen["unknowns"] == "process":
        term += features.gaussian_process("g", x, lengthscale=1.0)
    heard = signal("weather", usual=1.0) if chosen["signals"] == "one" else sp.Integer(0)
    inputs = [u] if chosen["inputs"] != "two" else [u, w]
    count = 11 if chosen["unknowns"] == "many" else 1
    drift = {"none": None, "diagonal": 0.01, "dense": 0.01 * np.ones((count, count))}[chosen["drift"]]
    observation = {
        "states": None,
        "curved": [sp.atan(x), x * v],
        "of unknowns": [x + b * v, v],
    }[chosen["observation"]]
    others = sp.symbols("c:8") if chosen["states"] == "ten" else ()  # f_x is not written out then
    steady = [0.1 * (x + v + sum(others))] * len(others)
    model = Model(
        states=[x, v, *others],
        inputs=inputs,
        dynamics=[x + 0.4 * v + 0.1 * heard, v + term + sum(inputs[1:]), *steady],
        observation=observation,
        process_noise=0.01
        if chosen["noise"] == "constant"
        else sp.diag(0.01 + 0.1 * x**2, *([0.01] * (1 + len(others)))),
        measurement_noise=0.01,
        filter=chosen["filter"],
        square_root=chosen["covariance"] == "square_root",
        outliers=3.0 if chosen["outliers"] == "doubted" else None,
        drift=drift,
        state_bounds={v: (0.0, None)} if chosen["bounds of states"] == "some" else None,
        name=name,
    )
    asked: dict[str, Any] = {
        "quadratic": {},
        "squares": {"cost": [x - 1, u]},
        "values": {"cost": 1 - sp.cos(x) + u**2},
        "squares, then values": {"cost": [x - 1, u], "terminal_cost": sp.cosh(x)},
        "values, then squares": {"cost": 1 - sp.cos(x) + u**2, "terminal_cost": [x]},
        "end only": {"terminal_cost": [x * v]},
    }[chosen["cost"]]
    constraints = {"none": [], "states": [x <= 1], "inputs": [v + 0.1 * u <= 1], "unknowns": [b * x <= 3]}[
        chosen["constraints"]
    ]
    if constraints:
        asked["constraints"] = constraints
    if chosen["inputs"] == "discrete":
        asked["choices"] = {u: [-1.0, 0.0, 1.0]}
    if chosen["bounds of states"] == "of the plant":
        asked["plant"] = Model(
            model.states,
            inputs,
            list(model.states),
            observation=model.states[: len(model.observation)],
            state_bounds={x: (None, 9.0)},
            name=f"{name}_plant",
        )
    return Scenario(model, horizon=4, input_cost=0.1, **asked)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two packages for each combination: one with all parts, and one without any."""
    folder = tmp_path_factory.mktemp("combinations")
    for number, chosen in enumerate(combinations()):
        own = gathered(scenario(chosen, "model")).specifications["model"]  # one name, so that files of many are equal
        derivation = derive(own)
        for parts, kind in ((PARTS, "whole"), ((), "base")):
            for name, content in package(derivation, parts=parts).files.items():
                place = folder / f"model_{number}_{kind}" / name
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
    return folder


def test_all_names_are_known_and_used(packages: Path) -> None:
    assert len(list(packages.iterdir())) > 40
    command = [str(Path(sys.executable).with_name("ruff")), "check", "--isolated", "--no-cache", "--select=F,E9"]
    done = subprocess.run([*command, "--output-format=concise", str(packages)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_all_functions_are_used(packages: Path) -> None:
    for folder in sorted(packages.iterdir()):
        assert unreached(uses(body(file, "model") for file in folder.rglob("*.py"))) == set(), folder.name
