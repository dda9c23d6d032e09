"""Finds, verifies and imports a generated package. Needs neither sympy nor jinja2."""

from __future__ import annotations

import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from symdual.common.arrays import Array
from symdual.common.errors import PackageError, SymdualError, SymdualWarning
from symdual.common.lazy import cached_property
from symdual.common.package_folders import locked, modules_of, read_manifest, restore_interrupted, verified
from symdual.common.transforms import Sides, Transform, between
from symdual.entries.package import Offered
from symdual.runtime.backend import Backend, MakeBackend
from symdual.runtime.forking import MAKING
from symdual.runtime.origin import edited_model_file
from symdual.runtime.places import cache_folder

_PARENT = "symdual_generated"


class Noise(NamedTuple):
    """Q (NX, NX), R (NY, NY), and how the parameters move: D and Xi as the model gives them."""

    process: Array
    measurement: Array
    transition: Array
    drift: Array


@dataclass(frozen=True, eq=False, repr=False)
class LoadedPackage(Offered):
    """A generated package in memory; its modules (`kernels`, `filter`, ...) are attributes, imported at first use.

    What is loaded is what was verified: modules are made from `files`, whatever becomes of the folder.
    """

    name: str
    folder: Path
    module: types.ModuleType
    numbers: dict[str, Array]
    plants: dict[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    c: Backend | None = None

    def __repr__(self) -> str:
        return f"<package {self.name} in {self.folder}, compiled by {'numba' if self.backend == 'numba' else 'C'}>"

    @property
    def backend(self) -> str:
        """What its compiled functions are made by: "numba" or "c"."""
        return "numba" if self.c is None or self.c.given_up else "c"

    @property
    def model_digest(self) -> str:
        """The digest of the model that the package was made from, whatever its scenarios are."""
        return str(json.loads(self.files["manifest.json"])["model_digest"])

    @cached_property
    def parts(self) -> frozenset[str]:
        """The parts that it has beyond its base, see `symdual.common.parts`."""
        return frozenset(json.loads(self.files["manifest.json"])["parts"])

    @property
    def plant_digests(self) -> dict[str, str]:
        """The digests of the models that are plants of scenarios."""
        return dict(json.loads(self.files["scenarios.json"])["digests"])

    @cached_property
    def belief_names(self) -> tuple[str, ...]:
        """The names of the entries of z = (x, theta); the weights of a family are numbered from zero."""
        names = list(self.STATES)
        for name, (_, count) in self.UNKNOWNS.items():
            names += [name] if count == 1 else [f"{name}[{i}]" for i in range(count)]
        return tuple(names)

    @cached_property
    def transforms(self) -> tuple[Transform, ...]:
        """What leads from each entry of z to the user's units; empty where no unknown has bounds."""
        bounded = getattr(self.module, "BOUNDED", {})
        return tuple(between(bounded.get(name, (None, None))) for name in self.belief_names) if bounded else ()

    @cached_property
    def state_bounds(self) -> tuple[Array, Array] | None:
        """The bounds that states cannot leave, (NX,) each and infinite where there is none; None without any."""
        sides: dict[str, Sides] = getattr(self.module, "STATE_BOUNDS", {})
        if not sides:
            return None
        both = [between(sides.get(name, (None, None))) for name in self.STATES]
        return np.array([one.lower for one in both]), np.array([one.upper for one in both])

    def within_bounds(self, x: Array) -> Array:
        """States, along the last axis, on the bounds that they are beyond."""
        return x if self.state_bounds is None else np.clip(x, *self.state_bounds)

    @cached_property
    def modules(self) -> dict[str, str]:
        """The file of each of its modules, by name."""
        return modules_of(self.files)

    @property
    def noise(self) -> Noise:
        """The model's noise."""
        keys = ("process_noise", "measurement_noise", "transition", "drift")
        return Noise(*(self.numbers[key] for key in keys))

    if not TYPE_CHECKING:  # who could not know then that a name does not exist

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            if name.isupper():
                return getattr(self.module, name)
            if name not in self.modules:
                parts = ", ".join(sorted(self.parts)) or "none"
                raise AttributeError(f"the generated package {self.name} has no module {name}; its parts: {parts}")
            if self.c is not None and self.c.offers(name):
                return self.c.module(name)
            place = self.modules[name].removesuffix(".py").replace("/", ".")
            return importlib.import_module(f"{self.module.__name__}.{place}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the folder, digests and the numbers; the code is loaded and verified again from the folder."""
        make = None if self.c is None else self.c.make
        return _unpickled, (self.folder, (self.module.DIGEST, self.model_digest), self.numbers, self.plants, make)

    def through(self, make: MakeBackend | None) -> LoadedPackage:
        """The same package with modules of another making; numba's for None."""
        return replace(self, c=None if make is None else make(self.name, self.module.DIGEST, self.files))

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadedPackage:
        """The same code with numbers of its own."""
        return replace(self, numbers=deepcopy(self.numbers, memo), plants=dict(self.plants))


def _unpickled(
    folder: Path,
    digests: tuple[str, str],
    numbers: dict[str, Array],
    plants: dict[str, str],
    make: MakeBackend | None = None,
) -> Any:
    package = load(folder).through(make)
    code, model = digests
    if code != package.module.DIGEST and model != package.model_digest:  # numbers may have changed, or parts been added
        raise PackageError(f"the package {folder} has been generated anew since something that uses it was pickled")
    return replace(package, numbers=numbers, plants=plants)


def load(name: str | Path) -> LoadedPackage:
    """Load a generated package by its name or folder.

    A name is looked up in `generated/` of the current folder, then in the user's cache folder, then as a folder. The
    files are verified against the manifest: a package that was edited by hand or written by another version is refused.
    A package whose model file was edited since is loaded as it is, with a warning.
    """
    folder = _find(name)
    manifest, files = _settled(folder)
    if (model_file := edited_model_file(folder)) is not None:
        warnings.warn(
            f"{model_file} was edited after the package {folder} had been generated from it; the package is as before, "
            f"run `symdual generate` on the file to renew it",
            SymdualWarning,
            stacklevel=4,  # where `symdual.load` is called
        )
    return _loaded(folder, str(manifest["name"]), str(manifest["package_digest"]), files)


def _loaded(folder: Path, name: str, digest: str, files: Mapping[str, bytes]) -> LoadedPackage:
    # costs and plants are numba's first-class functions, which it still announces as experimental
    warnings.filterwarnings("ignore", message="First-class function type feature is experimental")
    with np.load(io.BytesIO(files["data.npz"])) as stored:
        numbers = {key: stored[key] for key in stored.files}
    plants = json.loads(files["scenarios.json"])["plants"]
    module = _import(f"{_PARENT}.{name}_{digest[:16]}", folder, files)
    return LoadedPackage(name, folder, module, numbers, plants, files)


def _find(name: str | Path) -> Path:
    given = Path(name)
    looked = []
    for folder in _candidates(given):
        restore_interrupted(folder)
        if (folder / "manifest.json").is_file():
            return folder
        looked.append(folder)
    existing = [folder for folder in looked if folder.is_dir()]
    if existing:
        return existing[0]
    places = " or ".join(str(folder) for folder in looked)
    raise PackageError(f"there is no generated package at {places}; run `symdual generate` on the model file first")


def _candidates(given: Path) -> Iterator[Path]:
    if len(given.parts) == 1:
        yield Path("generated").resolve() / given
        with suppress(SymdualError):  # where the user has no folder there is no package
            yield user_folder() / given
    yield given.resolve()


def user_folder() -> Path:
    """Where packages go when the current folder cannot be written."""
    return cache_folder() / "generated"


def _settled(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """What `verified` gives; when another process is replacing the package, what counts is what it leaves."""
    try:
        return verified(folder)
    except PackageError:
        with suppress(OSError), locked(folder.parent, wait=True):
            return verified(folder)
        raise


def load_edited(folder: Path) -> LoadedPackage:
    """Load a package as it lies there, edited by hand or not; for the checks, which must see what they are to judge."""
    manifest = read_manifest(folder)
    names = ["manifest.json", *sorted(manifest["files"])] if manifest else []
    files = {name: (folder / name).read_bytes() for name in names}
    digest = hashlib.sha256(b"".join(files[name] for name in files if name.endswith(".py"))).hexdigest()
    package = _loaded(folder, folder.name, digest, files)
    package.module.__dict__["DIGEST"] = digest  # its modules are not those that the digest in their header promises
    return package


# ------------------------------------------------------------ importing what was verified


class _Modules(importlib.abc.InspectLoader):
    """Makes the modules of one package from its files in memory; `folder` is where they were, for numba and people."""

    def __init__(self, folder: Path, files: Mapping[str, bytes]) -> None:
        self.folder, self.files = folder, files
        self._imported: dict[str, bytes] = {}

    def file_of(self, full_name: str) -> str | None:
        """The file of the module or the folder that has a name, or None where there is none."""
        place = "/".join(full_name.split(".")[2:])
        wanted = (f"{place}/__init__.py".removeprefix("/"), f"{place}.py")
        return next((file for file in wanted if file in self.files), None)

    def spec(self, full_name: str, file: str) -> importlib.machinery.ModuleSpec:
        """How to import one of the files; a package has no folder in which Python itself would look for modules."""
        is_package = file.endswith("__init__.py")
        spec = importlib.machinery.ModuleSpec(full_name, self, origin=str(self.folder / file), is_package=is_package)
        spec.has_location = True
        return spec

    def verified_source(self, file: str) -> bytes:
        """The source of the module that was imported as a file, for the cache of compiled code."""
        return self._imported[file]

    def get_source(self, fullname: str) -> str:
        """The source of a module, for tracebacks when the folder is gone."""
        return self.files[self.file_of(fullname) or ""].decode()

    def exec_module(self, module: types.ModuleType) -> None:
        """Run a module; numba's cache is made safe before the first of its functions is met."""
        assert module.__spec__ is not None and module.__spec__.origin is not None
        file, origin = self.file_of(module.__spec__.name), module.__spec__.origin
        assert file is not None
        if not file.endswith("__init__.py"):
            from symdual.runtime.compiled import may_keep
        self._imported[origin] = self.files[file]
        exec(compile(self.files[file], origin, "exec", dont_inherit=True), module.__dict__)
        if file == "options.py" and not all(may_keep(self.folder / place) for place in self._folders()):
            _keep_nothing(module)

    def _folders(self) -> set[str]:
        """The folders of the package, its own included."""
        return {str(PurePosixPath(file).parent) for file in self.files if file.endswith(".py")}


def _keep_nothing(options: types.ModuleType) -> None:
    """Let numba keep nothing of a package whose options these are."""
    for value in vars(options).values():
        if isinstance(value, dict) and value.get("cache"):
            value["cache"] = False
    vars(options)["CACHED"] = False


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of loaded packages, which lie in no folder as far as Python is concerned."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """The module of a package that was made by `_import`, or None."""
        parent = sys.modules.get(fullname.rpartition(".")[0])
        loader = getattr(parent, "__loader__", None)
        if isinstance(loader, _Modules) and (file := loader.file_of(fullname)) is not None:
            return loader.spec(fullname, file)
        return None


_FINDER = _Finder()


def _import(full_name: str, folder: Path, files: Mapping[str, bytes]) -> types.ModuleType:
    """Import under a name that contains the digest: the same code has the same name in every process and folder."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
    sys.modules.setdefault(_PARENT, types.ModuleType(_PARENT)).__path__ = []
    with MAKING:
        return _imported(full_name, folder, files)


def _imported(full_name: str, folder: Path, files: Mapping[str, bytes]) -> types.ModuleType:
    if full_name in sys.modules:
        known = sys.modules[full_name]
        assert isinstance(known.__loader__, _Modules)
        known.__loader__.folder = folder  # the one that it came from first may be gone, and numba's cache with it
        return known
    loader = _Modules(folder, files)
    spec = loader.spec(full_name, "__init__.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[full_name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[full_name]
        raise
    return module
