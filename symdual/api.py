"""The functions behind the commands: generate, prepare and check. (`load` lives in `symdual.export`.)"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from symdual import __version__
from symdual.common.arrays import Array
from symdual.common.errors import SymdualError, did_you_mean
from symdual.common.package_folders import edited_files, noted_inputs, read_manifest
from symdual.common.parts import PARTS, checked_parts
from symdual.common.words import spelled
from symdual.derive.derivation import Derivation, derive
from symdual.emit.package import Package, input_digest, model_digest, package
from symdual.emit.write import clear_up, exclusive, is_unchanged, write
from symdual.export.compilers import compiler
from symdual.export.loading import load
from symdual.runtime.loading import load as load_numba
from symdual.runtime.loading import load_edited, user_folder
from symdual.runtime.origin import forget, model_file_of, note
from symdual.runtime.problem import Problem, problem
from symdual.spec.loading import Source, contents_of
from symdual.spec.model import Model
from symdual.spec.scenario import Scenario

if TYPE_CHECKING:
    from symdual.checks.kernels import BlockResult
    from symdual.checks.steps import StepAccuracy


#: the model or scenario that each package was made from in this process, where that is no file
_MADE_FROM: dict[Path, Model | Scenario] = {}


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


@spelled
def generate(
    source: Source, folder: str | Path | None = None, force: bool = False, parts: str | Iterable[str] = ()
) -> list[Generated]:
    """Write the generated package of a model, or of every model in a model file or a scenario.

    Packages go below `folder`: by default `generated` in the current folder or, when that cannot be written, the user's
    cache folder. A package that is intact and up to date is left alone unless `force` is set.

    A package has what ce, cautious, beb, dual and oracle need, the `parts` that are asked for, "planned" or
    "likelihood", and those that it has had before. What a controller or a fit needs is added when it is first used.

    >>> [item.folder.name for item in symdual.generate(toy, folder / "generated")]
    ['toy']
    """
    parent = _parent(folder)
    works = _works(source, parent, checked_parts(parts))
    outdated = [work for work in works if force or not is_unchanged(parent, work.model.name, work.input_digest)]
    _write_all(source, outdated, parent, keep_compiled=not force)
    _note_origin(source, works, parent)
    for work in works:
        clear_up(parent, work.model.name)
    return [
        Generated(work.model, parent / work.model.name, work.derivation if work in outdated else None) for work in works
    ]


@spelled
def prepare(
    source: Source,
    scenario: str | None = None,
    folder: str | Path | None = None,
    backend: str | None = None,
    parts: str | Iterable[str] = (),
) -> Problem:
    """The task of a `Scenario`, or of one in a model file; packages are generated where they are out of date.

    A file with a single scenario needs no name. `backend` is that of `load`, `parts` are those of `generate`.

    >>> symdual.prepare(toy, folder=folder / "generated").horizon
    2
    """
    contents = contents_of(source)
    place = "the model" if isinstance(source, Model) else contents.place
    if not contents.scenarios:
        raise SymdualError(f"{place} has no Scenario: add one that says what is to be done with the model")
    if scenario is None and len(contents.scenarios) > 1:
        raise SymdualError(f"{place} has several scenarios; name one of {', '.join(sorted(contents.scenarios))}")
    name = next(iter(contents.scenarios)) if scenario is None else scenario
    if name not in contents.scenarios:
        raise SymdualError(f'{place} has no scenario "{name}"{did_you_mean(name, contents.scenarios)}')
    folders = {item.model.name: item.folder for item in generate(source, folder, parts=parts)}
    return problem(load(folders[contents.scenarios[name].model.name], backend), name)


def with_parts(subject: Problem, parts: Iterable[str]) -> Problem:
    """The same task with a package that has these parts; one that lacks some is generated again.

    That takes what it was made from: a model file as it was then, or a model of this program. Where neither is at hand,
    the task stays as it is, and who needs the part says so.
    """
    old, needed = subject.package, checked_parts(parts)
    if needed <= old.parts:
        return subject
    source = _MADE_FROM.get(old.folder) or model_file_of(old.folder)
    model = None if source is None else contents_of(source).models.get(old.folder.name)
    if source is None or model is None or model_digest(model) != old.model_digest:
        return subject
    generate(source, old.folder.parent, parts=needed)
    new = load_numba(old.folder).through(None if old.c is None else old.c.make)
    new = replace(new, numbers=old.numbers, plants=old.plants)
    plant = subject.plant
    if plant.module is old.module:
        plant = new if plant is old else replace(new, numbers=plant.numbers, plants=plant.plants)
    return replace(subject, package=new, plant=plant)


@dataclass(frozen=True, eq=False)
class _Work:
    """A model that is to have a package, with the numbers of its scenarios."""

    model: Model
    numbers: Mapping[str, Array]
    plants: Mapping[str, Model]
    scenarios: Sequence[Scenario] = ()
    parts: frozenset[str] = frozenset()

    @cached_property
    def derivation(self) -> Derivation:
        return derive(self.model)

    @cached_property
    def input_digest(self) -> str:
        return input_digest(self.model, self.numbers, self.plants, self.parts)


def _works(source: Source, parent: Path, parts: frozenset[str] = frozenset()) -> list[_Work]:
    contents = contents_of(source)
    works = []
    for model in contents.models.values():
        own = {name: s for name, s in contents.scenarios.items() if s.model.name == model.name}
        plants = {name: s.plant for name, s in own.items()}
        had = _parts_of(parent / model.name)
        works.append(_Work(model, scenario_numbers(own), plants, _of(model, contents.scenarios), parts | had))
    return works


def _parts_of(package: Path) -> frozenset[str]:
    """The parts that a package has by now, which it keeps."""
    manifest = read_manifest(package)
    return frozenset(PARTS) & frozenset(manifest["parts"] if manifest else ())


def _of(model: Model, scenarios: Mapping[str, Scenario]) -> tuple[Scenario, ...]:
    """The scenarios of a model, and those of which it is the plant, as if it were their model."""
    own = [s for s in scenarios.values() if s.model.name == model.name]
    as_plant = [s.of_plant() for s in scenarios.values() if s.model.name != model.name == s.plant.name]
    return (*own, *as_plant)


def _write_all(source: Source, works: Sequence[_Work], parent: Path, keep_compiled: bool = True) -> None:
    """Derive and render everything before the first file is written: a fault in one model leaves nothing half done."""
    if not works:
        return
    with exclusive(parent):
        for work, finished in _rendered(works):
            write(finished, parent, keep_compiled)
            _note_origin(source, [work], parent)


def _rendered(works: Sequence[_Work]) -> list[tuple[_Work, Package]]:
    return [(work, package(work.derivation, work.numbers, work.plants, work.parts)) for work in works]


def _note_origin(source: Source, works: Sequence[_Work], parent: Path) -> None:
    """Let packages know the file that they come from, so that `load` can say when it is edited."""
    for work in works:
        if isinstance(source, Model | Scenario):
            forget(parent / work.model.name)
            _MADE_FROM[parent / work.model.name] = source
        else:
            note(parent / work.model.name, Path(source))
            _MADE_FROM.pop(parent / work.model.name, None)


def scenario_numbers(scenarios: Mapping[str, Scenario]) -> dict[str, Array]:
    """The arrays of scenarios under the names `scenario.<name>.<key>`."""
    return {f"scenario.{name}.{key}": array for name, s in scenarios.items() for key, array in s.numbers().items()}


def _parent(folder: str | Path | None) -> Path:
    """The folder of the packages: the one given, `generated` here, or the user's own when that cannot be written."""
    if folder is not None:
        return Path(folder).resolve()
    local = Path("generated").resolve()
    return local if os.access(local if local.exists() else local.parent, os.W_OK) else user_folder()


@spelled
def check(
    source: Source,
    folder: str | Path | None = None,
    points: int = 20,
    progress: Callable[[str, float], None] = lambda name, fraction: None,
    recursions: bool = True,
    c: bool = False,
    tell: Callable[[str, str], None] = lambda name, what: None,
) -> dict[str, list[BlockResult]]:
    """Generate what is out of date, then compare everything that is compiled with independent oracles.

    The kernels are compared with 50-digit values and with differences of the model as written, the recursions with
    dense ones, the likelihood of a recording with 50 digits; `recursions=False` leaves the last two out, which take
    longer to compile. Returns the results by model; a model passes when all of its blocks do. A package that was edited
    by hand is not written again but checked as it is, and each edited file is a miss of its own. With `c` the
    translation to C is checked instead, against the same oracles and against numba. `progress` hears how far the check
    of a model is, `tell` what is being compared.

    >>> results = symdual.check(toy, folder / "generated", points=2, recursions=False)
    >>> all(block.passed for block in results["toy"])
    True
    """
    from symdual.checks.discrete_inputs import check_discrete_inputs
    from symdual.checks.exported import check_exported
    from symdual.checks.kernels import BlockResult, check_kernels
    from symdual.checks.likelihood import check_likelihood
    from symdual.checks.recursions import check_recursions

    if c:
        compiler()  # a machine without one is told so before any work is done
    parent = _parent(folder)
    works = _works(source, parent, frozenset(PARTS if recursions else ()))
    edited = {work.model.name: _edited(parent, work) for work in works}
    _write_all(
        source,
        [
            work
            for work in works
            if not edited[work.model.name] and not is_unchanged(parent, work.model.name, work.input_digest)
        ],
        parent,
    )
    _note_origin(source, works, parent)
    results = {}
    share = 0.5 if recursions else 1.0
    for work in works:
        name, place = work.model.name, parent / work.model.name

        def first(fraction: float, name: str = name) -> None:
            progress(name, share * fraction)

        def second(fraction: float, name: str = name) -> None:
            progress(name, 0.5 + 0.4 * fraction)

        def third(fraction: float, name: str = name) -> None:
            progress(name, 0.9 + 0.1 * fraction)

        loaded = load_edited(place) if edited[name] else load(place, "numba")
        if c:
            tell(name, "C with the same oracles and with numba")
            whole = partial(progress, name)
            results[name] = check_exported(work.model, loaded, points, whole, work.scenarios, recursions)
            continue
        tell(name, "kernels with 50 digits and differences")
        results[name] = check_kernels(work.model, loaded, points, progress=first, scenarios=work.scenarios)
        if recursions:
            tell(name, "recursions with full matrices")
            results[name] += check_recursions(work.model, loaded, progress=second, scenarios=work.scenarios)
            results[name] += check_discrete_inputs(work.model, loaded, scenarios=work.scenarios)
            tell(name, "likelihood with 50 digits")
            results[name] += check_likelihood(work.model, loaded, progress=third, scenarios=work.scenarios)
        results[name] += [BlockResult(f"file {file}", "manifest", 1, math.inf, False) for file in edited[name]]
    return results


def step_accuracy(source: Source) -> dict[str, StepAccuracy]:
    """How accurate the time step of each model in continuous time is where it lives, by model; others are left out.

    >>> symdual.api.step_accuracy(toy)
    {}
    """
    from symdual.checks.steps import step_accuracy as accuracy_of

    found = {work.model.name: accuracy_of(work.model, work.scenarios) for work in _works(source, _parent(None))}
    return {name: accuracy for name, accuracy in found.items() if accuracy is not None}


def _edited(parent: Path, work: _Work) -> list[str]:
    """The files of an up-to-date package that were edited by hand."""
    place = parent / work.model.name
    manifest = read_manifest(place)
    own = frozenset(manifest["parts"] if manifest else ())
    wanted = __version__, replace(work, parts=own).input_digest
    if manifest is None or (manifest["symdual"], noted_inputs(place)) != wanted:
        return []
    changed = edited_files(place, manifest)
    return changed if all((place / file).is_file() for file in changed) else []
