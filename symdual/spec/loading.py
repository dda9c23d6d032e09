"""Loads a model file: an ordinary Python file with one `Model` or several, and perhaps scenarios, at module level."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tokenize
import traceback
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from symdual.common.errors import ModelError, SymdualError
from symdual.spec.model import Model
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification, specification

#: what stands for a model: a file, or a model or scenario that was made in a program
Source = str | Path | Model | Scenario


@dataclass(frozen=True)
class ModelFile:
    """The models and scenarios of a file, under the names of their generated packages, and what code is made of.

    `path` is None for those that were made elsewhere (`gathered`).
    """

    path: Path | None
    models: dict[str, Model]
    scenarios: dict[str, Scenario]
    specifications: dict[str, Specification]

    @property
    def place(self) -> str:
        """Where they stand, for sentences."""
        return str(self.path or ("the scenario" if self.scenarios else "the model"))


def contents_of(source: Source) -> ModelFile:
    """The models and scenarios of a file, or those that a model or a scenario from elsewhere consists of."""
    return gathered(source) if isinstance(source, Model | Scenario) else load_model_file(source)


def load_model_file(path: str | Path) -> ModelFile:
    """Run a model file and collect its models.

    A model's name is its own `name=`; otherwise, a variable called `model` takes the file's name and any other variable
    its own name. Scenarios are named in the same way after the variable or their `name=`.
    """
    path = Path(path)
    found = {variable: value for variable, value in vars(_run(path)).items() if not variable.startswith("_")}
    scenarios: dict[str, Scenario] = {}
    for variable, value in found.items():
        if isinstance(value, Scenario):
            name = value.name or (_stem(path) if variable == "scenario" else variable)
            if name in scenarios and scenarios[name] is not value:
                raise ModelError(f'{path}: two scenarios have the name "{name}"')
            scenarios[name] = value
    models = _models(path, found, scenarios.values())
    try:
        return _agreed(path, models, scenarios)
    except ModelError as failure:
        raise ModelError(f"{path}: {failure}") from failure


def _models(path: Path, found: Mapping[str, object], scenarios: Iterable[Scenario]) -> dict[int, Model]:
    """The models of a file under their names, by what they are in the file; its scenarios may bring some with names."""
    listed = [
        (value, value.name or (_stem(path) if variable == "model" else variable))
        for variable, value in found.items()
        if isinstance(value, Model)
    ]
    listed += [(own, own.name) for scenario in scenarios for own in (scenario.model, scenario.plant) if own.name]
    models: dict[int, Model] = {}
    for model, name in listed:
        if id(model) in models:
            continue
        if name in (other.name for other in models.values()):
            raise ModelError(f'{path}: two models have the name "{name}"')
        models[id(model)] = model.named(name)
    if not models:
        raise ModelError(f"{path} contains no Model (a variable of this type at module level)")
    return models


def gathered(given: Model | Scenario) -> ModelFile:
    """A model or a scenario that was made in a program or a notebook, as if it stood alone in a file.

    Without names of their own a model is called `model`, its scenario like it, and a plant `<model>_plant`.
    """
    if isinstance(given, Model):
        model, scenarios = given.named(given.name or "model"), dict[str, Scenario]()
        renamed = {id(given): model}
    else:
        model = given.model.named(given.model.name or "model")
        renamed, scenarios = {id(given.model): model}, {given.name or model.name: given}
        if given.plant is not given.model:
            plant = given.plant.named(given.plant.name or f"{model.name}_plant")
            if plant.name == model.name:
                raise ModelError(f'the model and the plant of a scenario are both called "{plant.name}"')
            renamed[id(given.plant)] = plant
    return _agreed(None, renamed, scenarios)


def _agreed(path: Path | None, models: Mapping[int, Model], given: Mapping[str, Scenario]) -> ModelFile:
    """Scenarios with these models, and with all states of their code."""
    scenarios = {name: s.completed(name, models) for name, s in given.items()}
    asked = {model.name: specification(model, scenarios) for model in models.values()}
    whole = {name: s.remembering(asked[s.model.name]) for name, s in scenarios.items()}
    return ModelFile(path, {model.name: model for model in models.values()}, whole, asked)


def source_text(path: Path) -> str:
    """The text of a model file, read as Python reads it: with a mark of the byte order, or in the encoding it names.

    Comments may have other bytes than that encoding has, which Python does not mind.
    """
    with path.open("rb") as file:
        encoding, _ = tokenize.detect_encoding(file.readline)
    return path.read_text(encoding, errors="replace")


def _stem(path: Path) -> str:
    return path.stem.replace("-", "_")


def _run(path: Path) -> types.ModuleType:
    if not path.is_file():
        named = path.with_name(f"{path.name}.py")
        hint = f'; did you mean "{named}"?' if named.is_file() else ""
        raise ModelError(f"the model file {path} does not exist{hint}")
    if path.suffix != ".py":
        raise ModelError(f"{path} is not a Python file (.py)")
    name = "symdual_model_" + hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    write_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    here = Path.cwd()
    try:
        spec.loader.exec_module(module)
    except SyntaxError as failure:
        own = failure.filename is None or Path(failure.filename).resolve() == path.resolve()
        place = path if own else failure.filename  # a neighbour that the file imports may be the broken one
        raise ModelError(f"{place}:{failure.lineno or 1}: the file is not valid Python: {failure.msg}") from failure
    except (Exception, SystemExit) as failure:  # whatever a user's file may raise
        line = _line_in(path, failure)
        words = _words(failure)
        text = words if isinstance(failure, SymdualError) else f"the file raises {type(failure).__name__}: {words}"
        raise ModelError(f"{path}:{line}: {text}") from failure
    finally:
        sys.dont_write_bytecode = write_bytecode
        os.chdir(here)  # relative paths mean the same as before
        sys.path.remove(str(path.resolve().parent))
        sys.modules.pop(name, None)
    return module


def _words(failure: BaseException) -> str:
    """What an exception says, on one line; it may be one that cannot even say that."""
    try:
        return " ".join(str(failure).split())
    except Exception:  # a user's own class may raise anything in __str__; what it was raised for is said all the same
        return "(without words)"


def _line_in(path: Path, failure: BaseException) -> int:
    """The last line of the model file in the traceback."""
    lines = [
        f.lineno for f in traceback.extract_tb(failure.__traceback__) if Path(f.filename).resolve() == path.resolve()
    ]
    return (lines[-1] if lines else None) or 1
