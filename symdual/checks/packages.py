"""All checks of the packages of a model file, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

from symdual.backends.c.compilers import compiler
from symdual.backends.loading import load
from symdual.checks.discrete_inputs import check_discrete_inputs
from symdual.checks.exported import check_exported
from symdual.checks.kernels import BlockResult, check_kernels
from symdual.checks.likelihood import check_likelihood
from symdual.checks.recursions import check_recursions
from symdual.common.parts import PARTS
from symdual.generation import Wanted, note_origin, packages_folder, wanted, write_all
from symdual.runtime.loading import LoadedPackage, load_edited
from symdual.spec.loading import ModelFile

Progress = Callable[[str, float], None]
Tell = Callable[[str, str], None]


def check_packages(
    contents: ModelFile,
    folder: str | Path | None,
    points: int,
    progress: Progress,
    recursions: bool,
    c: bool,
    tell: Tell,
) -> dict[str, list[BlockResult]]:
    """The results by model; a package that was edited by hand is checked as it is."""
    if c:
        compiler()  # a machine without one is told so before any work is done
    parent = packages_folder(folder)
    packages = wanted(contents, parent, frozenset(PARTS if recursions else ()))
    edited = {one.name: one.edited(parent) for one in packages}
    outdated = [one for one in packages if not edited[one.name] and not one.is_unchanged(parent)]
    write_all(outdated, parent, contents.path)
    note_origin(packages, parent, contents.path)
    results = {}
    for one in packages:
        place, own = parent / one.name, edited[one.name]
        loaded = load_edited(place) if own else load(place, "numba")
        told, done = partial(tell, one.name), partial(progress, one.name)
        if c:
            told("C with the same oracles and with numba")
            results[one.name] = check_exported(one.specification, loaded, points, done, one.scenarios, recursions)
            continue
        misses = [BlockResult(f"file {file}", "manifest", 1, math.inf, False) for file in own]
        results[one.name] = _checked(one, loaded, points, done, recursions, told) + misses
    return results


def _checked(
    one: Wanted,
    loaded: LoadedPackage,
    points: int,
    progress: Callable[[float], None],
    recursions: bool,
    tell: Callable[[str], None],
) -> list[BlockResult]:
    """What is compiled for numba, with independent oracles."""

    def part(start: float, share: float) -> Callable[[float], None]:
        return lambda fraction: progress(start + share * fraction)

    own, scenarios = one.specification, one.scenarios
    tell("kernels with 50 digits and differences")
    first = part(0.0, 0.5 if recursions else 1.0)
    results = check_kernels(own, loaded, points, progress=first, scenarios=scenarios)
    if recursions:
        tell("recursions with full matrices")
        results += check_recursions(own, loaded, progress=part(0.5, 0.4), scenarios=scenarios)
        results += check_discrete_inputs(own, loaded, scenarios=scenarios)
        tell("likelihood with 50 digits")
        results += check_likelihood(own, loaded, progress=part(0.9, 0.1), scenarios=scenarios)
    return results
