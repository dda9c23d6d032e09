"""The functions behind the commands: generate and check. (`load` lives in `symdual.runtime`.)"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from symdual.checks.kernels import BlockResult, check_kernels
from symdual.emit.package import input_digest, package
from symdual.emit.write import exclusive, is_unchanged, write
from symdual.errors import SymdualError
from symdual.runtime.loading import load, user_folder
from symdual.spec.loading import load_model_file
from symdual.spec.model import Model
from symdual.spec.numbers import Array
from symdual.spec.scenario import Scenario


@dataclass(frozen=True)
class Generated:
    """What became of one model: its package's folder, and whether anything had to be written."""

    model: Model
    folder: Path
    changed: bool


def generate(source: str | Path | Model, folder: str | Path | None = None, force: bool = False) -> list[Generated]:
    """Write the generated package of a model, or of every model in a model file.

    Packages go below `folder`: by default `generated` in the current folder or, when that cannot be written, the user's
    cache folder. A package that is intact and up to date is left alone unless `force` is set.
    """
    if isinstance(source, Model):
        if not source.name:
            raise SymdualError("the model has no name: give it one with name=")
        models, scenarios = {source.name: source}, {}
    else:
        contents = load_model_file(source)
        models, scenarios = contents.models, contents.scenarios
    parent = _writable(folder)
    with exclusive(parent):
        return [_generate_one(model, scenario_numbers(scenarios, model), parent, force) for model in models.values()]


def _generate_one(model: Model, numbers: Mapping[str, Array], parent: Path, force: bool) -> Generated:
    if not force and is_unchanged(parent, model.name, input_digest(model, numbers)):
        return Generated(model, parent / model.name, False)
    return Generated(model, write(package(model, numbers), parent), True)


def scenario_numbers(scenarios: Mapping[str, Scenario], model: Model) -> dict[str, Array]:
    """The arrays of a model's scenarios, under names such as `scenario.<name>.reference`."""
    own = {name: s for name, s in scenarios.items() if s.model.name == model.name}
    return {f"scenario.{name}.{key}": array for name, s in own.items() for key, array in s.numbers().items()}


def _writable(folder: str | Path | None) -> Path:
    if folder is not None:
        return Path(folder).resolve()
    parent = Path("generated").resolve()
    try:
        parent.mkdir(exist_ok=True)
        probe = parent / ".symdual.lock"
        probe.touch()
    except OSError:
        return user_folder()
    return parent


def check(
    source: str | Path | Model,
    folder: str | Path | None = None,
    points: int = 20,
    progress: Callable[[str, float], None] = lambda name, fraction: None,
) -> dict[str, list[BlockResult]]:
    """Generate what is out of date, then compare every compiled kernel with independent oracles.

    Returns the results by model; a model passes when all of its blocks do.
    """
    results = {}
    for item in generate(source, folder):
        name = item.model.name

        def report(fraction: float, name: str = name) -> None:
            progress(name, fraction)

        results[name] = check_kernels(item.model, load(item.folder), points=points, progress=report)
    return results
