"""Loads a model file: an ordinary Python file with one `Model` or several, and perhaps scenarios, at module level."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tokenize
import traceback
import types
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

    def of(self, model: Model) -> Specification:
        """What the code of a model is made of; a plant from elsewhere is asked for nothing here."""
        here = self.models.get(model.name) is model
        return self.specifications[model.name] if here else specification(model, {})


def contents_of(source: Source) -> ModelFile:
    """The models and scenarios of a file, or those that a model or a scenario from elsewhere consists of."""
    return gathered(source) if isinstance(source, Model | Scenario) else load_model_file(source)


def load_model_file(path: str | Path) -> ModelFile:
    """Run a model file and collect its models.

    A model's name is its own `name=`; otherwise, a variable called `model` takes the file's name and any other variable
    its own name. Scenarios are named in the same way after the variable or their `name=`.
    """
    path = Path(path)
    module = _run(path)
    found = {variable: value for variable, value in vars(module).items() if not variable.startswith("_")}
    models: dict[str, Model] = {}
    renamed: dict[int, Model] = {}
    for variable, value in found.items():
        if isinstance(value, Model) and id(value) not in renamed:
            name = value.name or (_stem(path) if variable == "model" else variable)
            if name in models:
                raise ModelError(f'{path}: two models have the name "{name}"')
            models[name] = renamed[id(value)] = value.named(name)
    if not models:
        raise ModelError(f"{path} contains no Model (a variable of this type at module level)")
    scenarios: dict[str, Scenario] = {}
    for variable, value in found.items():
        if isinstance(value, Scenario):
            name = value.name or (_stem(path) if variable == "scenario" else variable)
            if name in scenarios and scenarios[name] is not value:
                raise ModelError(f'{path}: two scenarios have the name "{name}"')
            scenarios[name] = value
    try:
        return _agreed(path, renamed, models, scenarios)
    except ModelError as failure:
        raise ModelError(f"{path}: {failure}") from failure


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
    return _agreed(None, renamed, {m.name: m for m in renamed.values()}, scenarios)


def _agreed(
    path: Path | None, renamed: dict[int, Model], models: dict[str, Model], given: dict[str, Scenario]
) -> ModelFile:
    """Scenarios with these models, and with all of their states."""
    scenarios = {name: s.completed(name, renamed) for name, s in given.items()}
    asked = {name: specification(model, scenarios) for name, model in models.items()}
    known = {id(model): asked[name] for name, model in models.items()}
    own = {name: s if id(s.model) not in known else s.remembering(known[id(s.model)]) for name, s in scenarios.items()}
    return ModelFile(path, models, own, asked)


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
        raise ModelError(f"the model file {path} does not exist")
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
