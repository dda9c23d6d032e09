"""From a model file to packages on the disk: what is out of date is derived, rendered and written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from symdual import __version__
from symdual.common.arrays import Array
from symdual.common.package_folders import edited_files, noted_inputs, read_manifest
from symdual.common.parts import PARTS, checked_parts
from symdual.derive.derivation import Derivation, derive
from symdual.emit.package import Package, input_digest, model_digest, package
from symdual.emit.write import clear_up, exclusive, is_unchanged, write
from symdual.runtime.loading import load, user_folder
from symdual.runtime.origin import forget, model_file_of, note
from symdual.runtime.problem import Problem
from symdual.spec.loading import ModelFile, load_model_file
from symdual.spec.model import Model
from symdual.spec.scenario import Scenario
from symdual.spec.specification import Specification


@dataclass(frozen=True)
class Generated:
    """What became of one model: its package's folder, and what was derived if anything had to be written."""

    model: Model
    folder: Path
    derivation: Derivation | None

    @property
    def changed(self) -> bool:
        """Whether the package was written."""
        return self.derivation is not None


@dataclass(frozen=True, eq=False)
class Wanted:
    """A package that is to be there: what code it has, and the numbers and the plants of its scenarios.

    `scenarios` are those of the model, and those of which it is the plant as if it were their model; `parts` are those
    beyond the base of a package.
    """

    specification: Specification
    numbers: Mapping[str, Array]
    plants: Mapping[str, Specification]
    scenarios: Sequence[Scenario] = ()
    parts: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the package."""
        return self.specification.name

    @cached_property
    def derivation(self) -> Derivation:
        """What is derived for it."""
        return derive(self.specification)

    @cached_property
    def input_digest(self) -> str:
        """The digest of all that goes into it."""
        return input_digest(self.specification, self.numbers, self.plants, self.parts)

    def is_unchanged(self, parent: Path) -> bool:
        """Whether the package is there, intact and up to date."""
        return is_unchanged(parent, self.name, self.input_digest)

    def edited(self, parent: Path) -> list[str]:
        """The files of an up-to-date package that were edited by hand."""
        place = parent / self.name
        manifest = read_manifest(place)
        digest = replace(self, parts=parts_of(place)).input_digest
        if manifest is None or (manifest["symdual"], noted_inputs(place)) != (__version__, digest):
            return []
        changed = edited_files(place, manifest)
        return changed if all((place / file).is_file() for file in changed) else []


#: what each package was made from in this process, where that is no file
_MADE_FROM: dict[Path, Wanted] = {}


def wanted(contents: ModelFile, parent: Path | None = None, parts: frozenset[str] = frozenset()) -> list[Wanted]:
    """The packages of the models of a file, with these parts and those that they have by now in a folder."""
    found = []
    for name, specification in contents.specifications.items():
        own = {key: s for key, s in contents.scenarios.items() if s.model.name == name}
        plants = {key: contents.specifications[s.plant.name] for key, s in own.items()}
        as_plant = [s.of_plant() for s in contents.scenarios.values() if s.model.name != name == s.plant.name]
        had = frozenset() if parent is None else parts_of(parent / name)
        found.append(Wanted(specification, scenario_numbers(own), plants, (*own.values(), *as_plant), parts | had))
    return found


def parts_of(place: Path) -> frozenset[str]:
    """The parts that a package has by now, which it keeps."""
    manifest = read_manifest(place)
    return frozenset(PARTS) & frozenset(manifest["parts"] if manifest else ())


def scenario_numbers(scenarios: Mapping[str, Scenario]) -> dict[str, Array]:
    """The arrays of scenarios under the names `scenario.<name>.<key>`."""
    return {f"scenario.{name}.{key}": array for name, s in scenarios.items() for key, array in s.numbers().items()}


def generated(
    contents: ModelFile, folder: str | Path | None = None, force: bool = False, parts: str | Iterable[str] = ()
) -> list[Generated]:
    """Write the packages of a file that are out of date, or all of them."""
    parent = packages_folder(folder)
    packages = wanted(contents, parent, checked_parts(parts))
    outdated = [one for one in packages if force or not one.is_unchanged(parent)]
    write_all(outdated, parent, contents.path, keep_compiled=not force)
    note_origin(packages, parent, contents.path)
    for one in packages:
        clear_up(parent, one.name)
    return [
        Generated(contents.models[one.name], parent / one.name, one.derivation if one in outdated else None)
        for one in packages
    ]


def generated_alone(
    specification: Specification, folder: str | Path | None = None, parts: str | Iterable[str] = ()
) -> Path:
    """The folder of the package of a specification without scenarios, which is written if it is out of date."""
    parent = packages_folder(folder)
    one = Wanted(specification, {}, {}, (), checked_parts(parts) | parts_of(parent / specification.name))
    if not one.is_unchanged(parent):
        write_all([one], parent, None)
    return parent / one.name


def with_parts(problem: Problem, parts: Iterable[str]) -> Problem:
    """The same problem with a package that has these parts; one that lacks some is generated again.

    That takes what it was made from: a model file as it was then, or a model of this program. Where neither is at hand,
    the problem stays as it is, and who needs the part says so.
    """
    old, needed = problem.package, checked_parts(parts)
    if needed <= old.parts:
        return problem
    file = model_file_of(old.folder)
    one = _MADE_FROM.get(old.folder) if file is None else _of_file(file, old.folder.name)
    if one is None or model_digest(one.specification) != old.model_digest:
        return problem
    one = replace(one, parts=needed | old.parts | parts_of(old.folder))
    if not one.is_unchanged(old.folder.parent):
        write_all([one], old.folder.parent, file)
    new = load(old.folder).through(None if old.c is None else old.c.make)
    new = replace(new, numbers=old.numbers, plants=old.plants)
    plant = problem.plant
    if plant.module is old.module:
        plant = new if plant is old else replace(new, numbers=plant.numbers, plants=plant.plants)
    return replace(problem, package=new, plant=plant)


def _of_file(file: Path, name: str) -> Wanted | None:
    """The package of a model file that has a name."""
    return next((one for one in wanted(load_model_file(file)) if one.name == name), None)


def write_all(packages: Sequence[Wanted], parent: Path, origin: Path | None, keep_compiled: bool = True) -> None:
    """Derive and render everything before the first file is written: a fault in one model leaves nothing half done."""
    if not packages:
        return
    with exclusive(parent):
        for one, finished in _rendered(packages):
            write(finished, parent, keep_compiled)
            note_origin([one], parent, origin)


def _rendered(packages: Sequence[Wanted]) -> list[tuple[Wanted, Package]]:
    return [(one, package(one.derivation, one.numbers, one.plants, one.parts)) for one in packages]


def note_origin(packages: Iterable[Wanted], parent: Path, origin: Path | None) -> None:
    """Let packages know the file that they come from, so that `load` can say when it is edited."""
    for one in packages:
        if origin is None:
            forget(parent / one.name)
            _MADE_FROM[parent / one.name] = replace(one)  # without what was derived
        else:
            note(parent / one.name, origin)
            _MADE_FROM.pop(parent / one.name, None)


def packages_folder(folder: str | Path | None) -> Path:
    """The folder of the packages: the one given, `generated` here, or the user's own when that cannot be written."""
    if folder is not None:
        return Path(folder).resolve()
    local = Path("generated").resolve()
    return local if os.access(local if local.exists() else local.parent, os.W_OK) else user_folder()
