"""A generated package without numba: its modules are run as plain Python, its functions held as syntax trees.

What a module computes when it is imported (constants, tables, records, named tuples) is then known; what numba would
compile is left to the translator. The module `options`, which is private to numba, is replaced as a whole.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from symdual.backends.c.facts import assignments, loose
from symdual.common.lazy import cached_property
from symdual.common.package_folders import modules_of
from symdual.runtime.forking import MAKING

_FAST = frozenset({"contract", "reassoc"})


@dataclass(frozen=True)
class Options:
    """How a function is compiled: whether Python calls it, and whether its sums must keep their order."""

    entry: bool
    ordered: bool


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a package: the names around it, how numba would compile it, and its tree when that is asked for."""

    module: str
    name: str
    names: Mapping[str, Any] = field(repr=False)
    options: Options
    program: Program = field(repr=False)

    @property
    def tree(self) -> ast.FunctionDef:
        """Its definition."""
        return self.program.trees(self.module)[self.name]

    @property
    def file(self) -> str:
        """The file that it is in."""
        return self.program.file(self.module)

    @property
    def arguments(self) -> list[str]:
        """The names of its arguments."""
        return [argument.arg for argument in self.tree.args.args]

    @cached_property
    def assigned(self) -> Counter[str]:
        """How often it assigns to each of its variables."""
        return assignments(self.tree.body)

    @cached_property
    def loose(self) -> set[str]:
        """Loop variables that do not belong to their loops alone."""
        return loose(self.tree)

    @cached_property
    def kept(self) -> bool:
        """Whether compilers are told at every operation that its order matters; in loops gcc would forget it."""
        loops = any(isinstance(part, ast.For | ast.While) for part in ast.walk(self.tree))
        return self.options.ordered and not loops

    @property
    def title(self) -> str:
        """The first paragraph of its docstring."""
        return (ast.get_docstring(self.tree) or "").partition("\n\n")[0].strip()


@dataclass(frozen=True)
class Layout:
    """A type of numba as far as it tells how numbers lie: the number of dimensions, and what they are dimensions of."""

    element: Any
    dimensions: int = 0

    def __getitem__(self, dimensions: Any) -> Layout:
        """`float64[:, ::1]`."""
        return Layout(self.element, len(dimensions) if isinstance(dimensions, tuple) else 1)

    def __call__(self, *arguments: Any) -> Signature:
        """`int64(float64, ...)`."""
        return Signature(self, arguments)


@dataclass(frozen=True)
class Signature:
    """The type of a function."""

    result: Layout
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Members:
    """The type of a named tuple."""

    fields: tuple[Any, ...]
    kind: type


@dataclass(frozen=True)
class AddressOf:
    """`options.function_at(signature)`: makes a function pointer of an address."""

    signature: Signature


class _Jit:
    """What `njit(**options)` and `cfunc(...)` do here: the function stays as it is, with its options noted."""

    def __init__(self, noted: dict[int, Options], **options: Any) -> None:
        fast = options.get("fastmath", _FAST)
        self._noted, self._options = noted, Options(options.get("entry", True), not set(fast) >= _FAST)

    def __call__(self, function: Any) -> Any:
        self._noted[id(function.__code__)] = self._options
        return function


class Program:
    """The modules of a package, run when they are first asked for."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._places = {"__init__": "__init__.py", **modules_of(files)}
        self._modules: dict[str, types.ModuleType] = {}
        self._noted: dict[int, Options] = {}
        self._functions: dict[int, Function] = {}
        self._parsed: dict[str, ast.Module] = {}
        self._trees: dict[str, dict[str, ast.FunctionDef]] = {}
        self._sources: dict[str, dict[str, str]] = {}

    @cached_property
    def names(self) -> list[str]:
        """The modules of the package, in alphabetical order, without what is private to numba."""
        return sorted(name for name in self._places if name not in ("__init__", "options", "pipeline"))

    def has(self, module: str) -> bool:
        """Whether there is a module of this name."""
        return module in self._places

    def file(self, module: str) -> str:
        """The file of a module."""
        return self._places[module]

    def text(self, module: str) -> str:
        """The source of a module."""
        return self._files[self.file(module)].decode()

    def module(self, name: str) -> types.ModuleType:
        """A module of the package, run without numba."""
        if name not in self._modules:
            self._modules[name] = self._options() if name == "options" else self._run(name)
        return self._modules[name]

    @cached_property
    def sizes(self) -> Mapping[str, Any]:
        """The names of sizes: those of `records`, and modules with names of their own."""
        return {name: self.module(name) for name in self.names} | vars(self.module("records"))

    def functions(self, module: str) -> list[Function]:
        """The functions that are defined in a module and that numba would compile, or that have no decorator."""
        namespace = vars(self.module(module))
        own = [value for value in namespace.values() if isinstance(value, types.FunctionType)]
        return [found for value in own if (found := self.function(value)) is not None and found.module == module]

    def function(self, value: Any) -> Function | None:
        """The tree of a function of this package; None for anything else."""
        return self._functions.get(id(value.__code__)) if isinstance(value, types.FunctionType) else None

    def imported_from(self, module: str, name: str) -> str | None:
        """The module from which another one imports a name, or None where it is its own."""
        if module not in self._sources:
            self._sources[module] = {
                alias.asname or alias.name: source
                for node in (self._parse(module).body if self.has(module) else ())
                if isinstance(node, ast.ImportFrom) and node.level and node.module
                if (source := self._module_at(self.file(module), node.level, node.module)) is not None
                for alias in node.names
            }
        return self._sources[module].get(name)

    def trees(self, module: str) -> dict[str, ast.FunctionDef]:
        """The definitions of a module's functions, by name."""
        if module not in self._trees:
            body = self._parse(module).body
            self._trees[module] = {node.name: node for node in body if isinstance(node, ast.FunctionDef)}
        return self._trees[module]

    def _parse(self, module: str) -> ast.Module:
        """The tree of a module; to make one takes twice as long as to compile and run it.

        One thread at a time: Python 3.11 counts the depth of the trees of all threads together, and stumbles over it.
        """
        if module not in self._parsed:
            with MAKING:
                self._parsed[module] = ast.parse(self._files[self.file(module)], self.file(module))
        return self._parsed[module]

    # ------------------------------------------------------------ running

    def _run(self, name: str) -> types.ModuleType:
        source, file = self._files[self.file(name)], self.file(name)
        module = types.ModuleType(name)
        self._modules[name] = module  # before it runs: modules may import each other
        namespace = vars(module)
        namespace["__builtins__"] = {**vars(builtins), "__import__": self._import}
        namespace["__spec__"] = None
        namespace["__file__"] = file
        exec(compile(source, file, "exec", dont_inherit=True), namespace)
        if name == "__init__":
            namespace["one_name"] = lambda spec: name
        for value in list(namespace.values()):
            if not isinstance(value, types.FunctionType) or value.__globals__ is not namespace:
                continue
            if value.__name__.isidentifier():
                options = self._noted.get(id(value.__code__), Options(entry=False, ordered=False))
                self._functions[id(value.__code__)] = Function(name, value.__name__, namespace, options, self)
        return module

    def run_again(self, name: str, modules: Callable[[str], types.ModuleType]) -> types.ModuleType:
        """A module of the package, run with other modules behind its imports."""
        first = types.ModuleType("__init__")
        vars(first).update(vars(self.module("__init__")))

        def imported(of: str, names: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:
            if level == 0:
                return self._import(of, names, local, wanted, level)
            if (found := self._module_at(names["__file__"], level, of)) is not None:
                return modules(found)
            folder = types.ModuleType(of) if of else first
            vars(folder).update({one: modules(one) for one in wanted or () if self.has(one)})
            return folder

        module, file = types.ModuleType(name), self.file(name)
        vars(module).update(__builtins__={**vars(builtins), "__import__": imported}, __file__=file)
        exec(compile(self._files[file], file, "exec", dont_inherit=True), vars(module))
        return module

    def _import(self, name: str, names: Any = None, local: Any = None, wanted: Any = (), level: int = 0) -> Any:
        if level == 0:
            if name == "numba":
                return self._numba
            return builtins.__import__(name, names, local, wanted, level)
        if (found := self._module_at(names["__file__"], level, name)) is not None:
            return self.module(found)
        folder = types.ModuleType(name) if name else self.module("__init__")
        for one in wanted or ():
            if self.has(one):
                setattr(folder, one, self.module(one))
        return folder

    def _module_at(self, file: str, level: int, name: str) -> str | None:
        """The module that a file imports from by so many dots and a name; None for a folder, or the package itself."""
        place = PurePosixPath(file).parents[level - 1] / name.replace(".", "/")
        return place.name if self._places.get(place.name) == f"{place}.py" else None

    def _options(self) -> types.ModuleType:
        """The names of `options.py`, without numba behind them."""
        module = types.ModuleType("options")
        entry, inner = {"entry": True, "fastmath": _FAST}, {"entry": False, "fastmath": _FAST}
        exact = {"fastmath": frozenset({"contract"})}
        vars(module).update(
            FAST={"fastmath": _FAST}, ENTRY=entry, ALLOCATING=entry, KERNEL=entry, EXACT={**entry, **exact}
        )
        vars(module).update(INNER=inner, INNER_ALLOCATING=inner, NOALIAS=inner, ORDERED={**inner, **exact})
        vars(module).update(function_at=AddressOf, claim=None, CACHED=True)
        return module

    @cached_property
    def _numba(self) -> types.ModuleType:
        kinds = types.ModuleType("numba.types")
        vars(kinds).update({name: Layout(name) for name in ("int64", "float64", "boolean", "void")})
        vars(kinds).update(
            Array=lambda element, dimensions, order: Layout(element, dimensions),
            NamedTuple=lambda fields, kind: Members(tuple(fields), kind),
        )
        numba = types.ModuleType("numba")
        vars(numba).update(types=kinds, from_dtype=lambda record: record, prange=range)
        vars(numba).update(njit=lambda **options: _Jit(self._noted, **options))
        vars(numba).update(cfunc=lambda signature, **options: _Jit(self._noted))
        return numba
