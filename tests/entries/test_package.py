"""What `symdual.entries` declares is what generated packages offer, and the other way round."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from symdual.backends.c import source
from symdual.backends.c.declared import closed_loop_functions
from symdual.backends.c.program import Program
from symdual.entries.decisions import DecideAt, PriceAt
from symdual.entries.package import CLASSES, MODULES, Constants, entry
from symdual.entries.types import LEFT_TO_PYTHON, declared, shape_of, target_of
from symdual.runtime import loading

#: functions to which numba adds methods
CALLED = {"decide_at": DecideAt, "price_at": PriceAt}


Offered = Callable[[str], dict[str, list[Any]]]


@pytest.fixture(scope="module")
def offered(every_package: list[Path]) -> Offered:
    """The functions, classes and constants of a module of all packages: by name, in all their forms."""
    return cache(lambda module: offers(file for one in every_package for file in sources(one, module)))


def sources(package: Path, module: str) -> list[Path]:
    """The file of a module, if the package has it."""
    return [file for file in package.glob(f"**/{module}.py") if module != "__init__" or file.parent == package]


def offers(files: Iterable[Path]) -> dict[str, list[Any]]:
    """What files define or import: by name, in all forms."""
    found: dict[str, list[Any]] = {}
    for file in files:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append([argument.arg for argument in node.args.args])
            elif isinstance(node, ast.ClassDef):
                fields = [n.target.id for n in node.body if isinstance(n, ast.AnnAssign)]  # type: ignore[union-attr]
                found.setdefault(node.name, []).append(fields)
            elif isinstance(node, ast.Assign):
                names = [part for one in node.targets for part in ast.walk(one) if isinstance(part, ast.Name)]
                for name in (one.id for one in names if isinstance(one.ctx, ast.Store)):
                    found.setdefault(name, []).append(None)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found.setdefault(alias.asname or alias.name, []).append(None)
    return found


def matches(function: Any, arguments: list[str]) -> bool:
    """Whether a function of these arguments is what a method of a protocol says; after `*more` they may be any."""
    parameters = [one for one in inspect.signature(function).parameters.values() if one.name != "self"]
    open_end = any(one.kind == one.VAR_POSITIONAL for one in parameters)
    names = [one.name for one in parameters if one.kind != one.VAR_POSITIONAL]
    return names == (arguments[: len(names)] if open_end else arguments)


@pytest.mark.parametrize("module", MODULES)
def test_functions_take_what_the_interface_says(module: str, offered: Offered) -> None:
    protocol, there = MODULES[module], offered(module)
    functions = {name: one for name, one in vars(protocol).items() if inspect.isfunction(one) and name[0] != "_"}
    functions |= {name: kind.__call__ for name, kind in CALLED.items() if name in get_type_hints(protocol)}
    for name, function in functions.items():
        assert name in there, f"{module} has no {name}"
        for arguments in there[name]:
            assert matches(function, arguments), f"{module}.{name}"


@pytest.mark.parametrize("module", MODULES)
def test_constants_and_named_tuples_are_there(module: str, offered: Offered) -> None:
    there = offered(module)
    for name, kind in get_type_hints(MODULES[module]).items():
        assert name in there, f"{module} has no {name}"
        for made in get_args(kind) if name[0].isupper() and not name.isupper() else ():
            forms = there[name]
            assert all(form == [field for field in made._fields if field in form] for form in forms), f"{module}.{name}"
            assert set(made._fields) == set().union(*forms), f"{module}.{name}"


def test_names_of_packages_are_there(offered: Offered, every_package: list[Path]) -> None:
    there = offered("__init__")
    assert {name for name in get_type_hints(Constants) if name not in there} == set()
    always = [name for name, forms in there.items() if len(forms) == len(every_package) and name.isupper()]
    assert [name for name in always if name not in get_type_hints(Constants)] == ["NAME"]


@pytest.mark.parametrize("declaration", CLASSES)
def test_named_tuples_have_the_declared_fields(declaration: type, offered: Offered) -> None:
    module, name = CLASSES[declaration]
    known, forms = list(get_type_hints(declaration)), offered(module)[name]
    assert all(form == [field for field in known if field in form] for form in forms)
    assert set(known) == set().union(*forms)


@pytest.fixture(scope="module")
def entries(every_package: list[Path]) -> set[tuple[str, str, tuple[str, ...]]]:
    """The entries of all packages, plants and an episode among them: module, name, arguments."""
    found = set()
    for folder in every_package:
        program = Program({str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.py")})
        for function in (*source.entries(program), *closed_loop_functions(program)):
            found.add((function.module, function.name, tuple(function.arguments)))
    return found


def test_every_entry_is_declared_with_its_arguments(entries: set[tuple[str, str, tuple[str, ...]]]) -> None:
    for module, name, arguments in entries:
        declaration = entry(module, name)
        assert declaration is not None, f"{module}.{name}"
        assert tuple(declared(declaration)) == arguments, f"{module}.{name}"


def test_every_argument_says_what_compiled_code_must_know(entries: set[tuple[str, str, tuple[str, ...]]]) -> None:
    """A number, an array with its shape, a pointer with its function, or a named tuple of these."""

    def known(kind: Any) -> bool:
        if kind in (int, float, bool) or shape_of(kind) or LEFT_TO_PYTHON in getattr(kind, "__metadata__", ()):
            return True
        inner = target_of(kind)
        if inner is not None:
            return all(known(one) for one in declared(vars(inner)["__call__"]).values())
        return kind in CLASSES and all(known(one) for one in get_type_hints(kind, include_extras=True).values())

    for module, name, _ in entries:
        declaration = entry(module, name)
        assert declaration is not None
        assert [argument for argument, kind in declared(declaration).items() if not known(kind)] == [], (module, name)


def test_names_that_nobody_offers_are_unknown(package_of: Callable[[str], Path]) -> None:
    package = loading.load(package_of("rough"))
    assert package.NX >= 1
    for name in ("nothing", "NOTHING", "_private"):
        with pytest.raises(AttributeError):
            getattr(package, name)
