"""What `package_interface` promises the type checker is what generated packages offer."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from symdual.runtime import loading, package_interface

MODULES = {name: kind for name, kind in get_type_hints(loading.Offered).items() if name.islower()}
#: functions to which numba adds methods
CALLED = {"decide_at": package_interface.DecideAt, "price_at": package_interface.PriceAt}


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
    assert {name for name in get_type_hints(package_interface.Constants) if name not in there} == set()
    always = [name for name, forms in there.items() if len(forms) == len(every_package) and name.isupper()]
    assert [name for name in always if name not in get_type_hints(package_interface.Constants)] == ["NAME"]


@pytest.mark.parametrize(
    ("module", "name", "protocol"),
    [
        ("records", "Workspace", package_interface.Workspace),
        ("filter", "FilterWorkspace", package_interface.FilterWorkspace),
        ("candidates", "Table", package_interface.Table),
        ("episode", "ThreadWorkspace", package_interface.ThreadWorkspace),
    ],
)
def test_what_packages_hand_out_has_its_fields(module: str, name: str, protocol: type, offered: Offered) -> None:
    for fields in offered(module)[name]:
        assert set(get_type_hints(protocol)) <= set(fields)


def test_names_that_nobody_offers_are_unknown(package_of: Callable[[str], Path]) -> None:
    package = loading.load(package_of("rough"))
    assert package.NX >= 1
    for name in ("nothing", "NOTHING", "_private"):
        with pytest.raises(AttributeError):
            getattr(package, name)
