"""Every recursion names, in its docstring, the function of the oracles that computes the same in another way."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest

from symdual.checks import dense

from ..goldens import distinct

TWIN = re.compile(r"checks\.(\w+)\.(\w+)")
RECURSIONS = {
    "filter": (
        *("correct", "learn", "update_consider", "predict_belief", "whiten_innovation"),
        *("predict_covariance", "project_and_whiten", "reduce_covariance", "reduce_states_only"),
    ),
    "trajectory": ("forward_pass", "follow", "state_cost", "input_cost"),
    "backward": ("backward",),
    "nominal": ("improve",),
    "riccati": ("covariances", "parameter_variance", "begin_back", "cost_to_go"),
    "dual_cost": ("costates", "hessians_along", "uncertain_cost"),
    "lowrank": ("covariances_lowrank", "cost_to_go_lowrank"),
    "objective": ("expand_stage", "expand_end"),
    "closed_loop_covariance": ("closed_loop_covariance",),
    "closed_loop_covariance_lowrank": ("closed_loop_covariance_lowrank",),
    "adjoint_lowrank": ("dual_gradient",),
    "likelihood": ("forward",),
}
#: parts of others, and what splits Jd for an identity that a test holds it to
NOBODYS = {
    *("augmented", "semidefinite", "innovation_covariance", "observation_hessians", "parts"),
    "most_probable",
}


Docstrings = dict[tuple[str, str], set[str]]


@pytest.fixture(scope="module")
def docstrings(every_package: list[Path]) -> Docstrings:
    """The docstrings of the functions of all packages, by module and name."""
    found = defaultdict[tuple[str, str], set[str]](set)
    for file, text in distinct(every_package):
        if file.stem == "kernels":
            continue
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                found[file.stem, node.name].add(ast.get_docstring(node) or "")
    return found


@pytest.mark.parametrize("place", [(module, name) for module, names in RECURSIONS.items() for name in names])
def test_a_recursion_names_its_twin(place: tuple[str, str], docstrings: Docstrings) -> None:
    assert docstrings[place]
    assert all(TWIN.search(text) for text in docstrings[place])


def test_twins_exist(docstrings: Docstrings) -> None:
    named = {twin for texts in docstrings.values() for text in texts for twin in TWIN.findall(text)}
    assert len(named) > 10
    for module, function in named:
        assert hasattr(importlib.import_module(f"symdual.checks.{module}"), function), f"checks.{module}.{function}"


def test_dense_recursions_are_twins(docstrings: Docstrings) -> None:
    functions = [value for value in vars(dense).values() if inspect.isfunction(value)]
    own = {function.__name__ for function in functions if function.__module__.startswith(dense.__name__)}
    named = {twin[1] for texts in docstrings.values() for text in texts for twin in TWIN.findall(text)}
    assert own - named == NOBODYS


def test_the_mathematics_names_functions_that_exist(docstrings: Docstrings) -> None:
    """Of emitted modules (a type of records is no function), and of the oracles."""
    text = (Path(__file__).parents[2] / "docs" / "mathematics.md").read_text(encoding="utf-8")
    named, modules = set(re.findall(r"`(\w+)\.([a-z]\w*)`", text)), {module for module, _ in docstrings}
    emitted, twins = {one for one in named if one[0] in modules}, {name for room, name in named if room == "dense"}
    assert len(emitted) > 20 and len(twins) > 5
    assert emitted <= docstrings.keys()
    assert all(hasattr(dense, twin) for twin in twins)
