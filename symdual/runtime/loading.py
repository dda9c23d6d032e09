"""Finds, verifies and imports a generated package. Needs neither sympy nor jinja2."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import os
import sys
import types
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symdual
from symdual.errors import PackageError

_PARENT = "symdual_generated"


@dataclass(frozen=True, eq=False)
class LoadedPackage:
    """A generated package in memory; its modules (`kernels`, `filter`, ...) are attributes, imported at first use."""

    name: str
    folder: Path
    module: types.ModuleType
    numbers: dict[str, NDArray[np.float64]] = field(repr=False)
    plants: dict[str, str] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name.isupper():
            return getattr(self.module, name)
        if not (self.folder / f"{name}.py").is_file():
            raise AttributeError(f"the generated package {self.name} has no module {name}")
        return importlib.import_module(f"{self.module.__name__}.{name}")


def load(name: str | Path) -> LoadedPackage:
    """Load a generated package by its name or folder.

    A name is looked up in `generated/` of the current folder, then in the user's cache folder, then as a folder. The
    files are verified against the manifest: a package that was edited by hand or written by another version is refused.
    """
    folder = _find(name)
    manifest = verify(folder)
    return _loaded(folder, str(manifest["name"]), str(manifest["package_digest"]))


def _loaded(folder: Path, name: str, digest: str) -> LoadedPackage:
    # costs and plants are numba's first-class functions, which it still announces as experimental
    warnings.filterwarnings("ignore", message="First-class function type feature is experimental")
    with np.load(folder / "data.npz") as stored:
        numbers = {key: stored[key] for key in stored.files}
    plants = json.loads((folder / "scenarios.json").read_text())["plants"]
    return LoadedPackage(name, folder, _import(f"{_PARENT}.{name}_{digest[:16]}", folder), numbers, plants)


def _find(name: str | Path) -> Path:
    given = Path(name)
    candidates = [given.resolve()]
    if len(given.parts) == 1:
        candidates = [Path("generated").resolve() / given, user_folder() / given, *candidates]
    for folder in candidates:
        restore_interrupted(folder)
        if (folder / "manifest.json").is_file():
            return folder
    existing = [folder for folder in candidates if folder.is_dir()]
    if existing:
        return existing[0]
    places = " or ".join(str(folder) for folder in candidates)
    raise PackageError(f"there is no generated package at {places}; run `symdual generate` on the model file first")


def user_folder() -> Path:
    """Where packages go when the current folder cannot be written."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "symdual" / "generated"


@contextmanager
def locked(folder: Path, wait: bool) -> Iterator[bool]:
    """Hold an existing folder against other processes; yields False if another holds it and `wait` is not set.

    The lock is advisory, lies on the folder itself, and goes with the process. On Windows it is always held.
    """
    if sys.platform == "win32":
        yield True
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def restore_interrupted(target: Path) -> None:
    """Put the old package back when a writer died between moving it aside and moving the new one in."""
    if _is_interrupted(target):
        try:
            with locked(target.parent, wait=True):  # a writer that is still alive finishes first
                put_back(target)
        except OSError as problem:
            raise PackageError(
                f"the package {target} was interrupted while it was written and cannot be put back: {problem.strerror}"
            ) from problem


def put_back(target: Path) -> None:
    """Undo the first half of an interrupted replacement; the caller holds the folder."""
    if _is_interrupted(target):
        set_aside(target).replace(target)


def set_aside(target: Path) -> Path:
    """Where the old package waits while the new one takes its place."""
    return target.with_name(f".{target.name}.old")


def _is_interrupted(target: Path) -> bool:
    return set_aside(target).is_dir() and not target.exists()


def verify(folder: Path) -> dict[str, Any]:
    """Return the manifest of a package whose files are just what was generated, or say how to mend it."""
    mend = f"run `symdual generate --force` on its model file to write {folder} again"
    manifest = read_manifest(folder)
    if manifest is None:
        raise PackageError(f"{folder} is not a whole generated package (its manifest is missing or damaged); {mend}")
    version = manifest["symdual"]
    if version != symdual.__version__:
        raise PackageError(f"{folder} was generated by symdual {version}, this is {symdual.__version__}; {mend}")
    for name in edited_files(folder, manifest):
        what = "was changed after generation" if (folder / name).is_file() else "is missing"
        raise PackageError(f"the file {name} of the generated package {folder} {what}; {mend}")
    return manifest


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of a package, or None when there is none or it is damaged."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        digests = {str(name): str(digest) for name, digest in manifest["files"].items()}
        texts = {key: str(manifest[key]) for key in ("name", "symdual", "package_digest", "input_digest")}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return {**texts, "files": digests}


def edited_files(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """The files of a package that are missing or not what the manifest says."""
    return [name for name, digest in manifest["files"].items() if _digest_of(folder / name) != digest]


def _digest_of(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


def load_edited(folder: Path) -> LoadedPackage:
    """Load a package as it lies there, edited by hand or not; for the checks, which must see what they are to judge."""
    files = sorted(folder.glob("*.py"))
    for file in files:  # an edit within a second, to the same length, would not be seen by Python
        with suppress(OSError):
            Path(importlib.util.cache_from_source(str(file))).unlink()
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    package = _loaded(folder, folder.name, digest)
    package.module.__dict__["DIGEST"] = digest  # its modules are not those that the digest in their header promises
    return package


def _import(full_name: str, folder: Path) -> types.ModuleType:
    """Import under a name that contains the digest: the same code has the same name in every process and folder."""
    if _PARENT not in sys.modules:
        sys.modules[_PARENT] = types.ModuleType(_PARENT)
        sys.modules[_PARENT].__path__ = []
    if full_name in sys.modules:
        known = sys.modules[full_name]
        known.__path__ = [str(folder)]  # the folder that it came from first may be gone
        return known
    spec = importlib.util.spec_from_file_location(
        full_name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    spec.loader.exec_module(module)
    return module
