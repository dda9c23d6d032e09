"""The bytes of a package: the same everywhere, with one digest, and templates that get just what they declare."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import jinja2.nodes
import numpy as np
import pytest
import sympy as sp

from symdual import Model, constant, features, unknown
from symdual.derive.derivation import derive
from symdual.emit import package as packaging
from symdual.emit import render
from symdual.emit.code import files, given
from symdual.emit.facts import Facts
from symdual.emit.package import package, stored_arrays
from symdual.export.contexts import ControllerContext
from symdual.runtime import evaluate

x, v, u = sp.symbols("x v u")
EXAMPLES = Path(__file__).parents[2] / "examples"

DIGESTS = """
    import hashlib
    from symdual.derive.derivation import derive
    from symdual.emit.package import package
    from symdual.spec.loading import load_model_file
    for model in load_model_file("model.py").specifications.values():
        for name, content in sorted(package(derive(model)).files.items()):
            print(model.name, name, hashlib.sha256(content).hexdigest())
"""


CASES = """
import sympy as sp
from symdual import Model, unknown
x, v, u, w = sp.symbols("x v u w")
turned = sp.Piecewise((sp.cos(x), sp.Eq(w, 0)), ((sp.sin(x + w) - sp.sin(x)) / w, (v > 0) & (u < 1)), (x**v, True))
cases = Model([x, v], [u, w], [x + u * turned, v + sp.Max(x, v, w) * unknown("a")])
"""


def cart(mean: float = 0.0, scale: float = 1.0) -> Model:
    slope = features.fourier("g", x, count=4, mean=mean)
    gain = constant("gain", scale)
    return Model([x, v], [u], [x + v, v + slope * unknown("a") + gain * u], name="cart", process_noise=0.1)


# -------------------------------------------------------------------- determinism


def test_bytes_depend_neither_on_hash_seed_nor_on_folder(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    printed = []
    for seed, place in (("1", "one"), ("4242", "two/deeper")):
        folder = tmp_path / place
        folder.mkdir(parents=True)
        (folder / "model.py").write_text((EXAMPLES / "greenhouse.py").read_text() + CASES)
        printed.append(fresh_python(DIGESTS, folder, PYTHONHASHSEED=seed).stdout)
    assert printed[0] == printed[1]
    assert len(printed[0].splitlines()) > 30


def test_no_dates_or_places_in_the_files() -> None:
    for name, content in package(derive(cart())).files.items():
        text = content.decode("latin-1")
        assert str(Path(__file__).parents[2]) not in text, name
        assert not re.search(r"20[2-9]\d-\d\d-\d\d", text), name


def test_stored_arrays_are_byte_stable_and_readable() -> None:
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([np.inf, -0.0]), "none": np.zeros((0, 2))}
    content = stored_arrays(arrays)
    assert content == stored_arrays(dict(reversed(arrays.items())))
    with np.load(io.BytesIO(content)) as stored:
        assert sorted(stored.files) == ["a", "b", "none"]
        for name, array in arrays.items():
            np.testing.assert_array_equal(stored[name], array)


# -------------------------------------------------------------------- digests


def headers(files: dict[str, bytes]) -> dict[str, list[str]]:
    return {name: content.decode().split("\n")[:2] for name, content in files.items() if name.endswith(".py")}


def test_every_file_carries_the_digest_of_all_bodies() -> None:
    made = package(derive(cart()))
    lines = headers(dict(made.files))
    assert set(lines) == {f"{file.place}.py" for file in files(Facts(derive(cart())))}
    assert len({tuple(line) for line in lines.values()}) == 1
    assert made.package_digest in lines["kernels/kernels.py"][1]
    for name, content in made.files.items():
        if name.endswith(".py"):  # a comment of two lines, then the docstring: fixed height
            assert content.decode().split("\n")[2].startswith('"""'), name
    manifest = json.loads(made.files["manifest.json"])
    assert manifest["package_digest"] == made.package_digest
    assert manifest["files"] == {
        name: hashlib.sha256(content).hexdigest() for name, content in made.files.items() if name != "manifest.json"
    }


def test_numbers_change_the_data_and_nothing_else() -> None:
    one, other = package(derive(cart())), package(derive(cart(mean=0.5, scale=2.0)))
    assert one.input_digest != other.input_digest
    assert one.package_digest == other.package_digest
    changed = {name for name in one.files if one.files[name] != other.files[name]}
    assert changed == {"data.npz", "manifest.json"}


def test_a_change_of_one_body_changes_every_file(monkeypatch: pytest.MonkeyPatch) -> None:
    before = package(derive(cart()))
    monkeypatch.setattr("symdual.emit.printer._number", lambda e: f"{float(e)!r}0")
    after = package(derive(cart()))
    code = [name for name in before.files if name.endswith(".py")]
    assert all(before.files[name] != after.files[name] for name in code)


@pytest.mark.parametrize(
    "other",
    [
        lambda: Model([x, v], [u], [x + v, v + u], name="m", process_noise=0.1),
        lambda: Model([x, v], [u], [x + v, v + u], name="m", measurement_noise=0.1),
        lambda: Model([x, v], [u], [x + v, v + u], name="other"),
        lambda: Model([x, v], [u], [x + v, v - u], name="m"),
        lambda: Model([x, v], [u], [x + v, v + u], name="m", observation=[x]),
        lambda: Model([x, v], [u], [x + v, v + u], name="m", square_root=True),
        lambda: Model([x, v], [u], [x + v, v + u], name="m", bounds={u: (-1.0, None)}),
        lambda: Model([x, v], [u], derivatives=[x + v, v + u], step=0.1, name="m"),
        lambda: Model([x, v], [u], derivatives=[x + v, v + u], step=0.2, name="m"),
        lambda: Model([x, v], [u], derivatives=[x + v, v + u], step=0.1, method="rk4", name="m"),
        lambda: Model([v, x], [u], {x: x + v, v: v + u}, name="m"),
    ],
)
def test_the_input_digest_notices_every_argument(other: Callable[[], Model]) -> None:
    def digest(model: Model) -> str:
        return package(derive(model)).input_digest

    plain = Model([x, v], [u], [x + v, v + u], name="m")
    assert digest(plain) == digest(Model([x, v], [u], [x + v, v + u], name="m"))
    assert digest(plain) != digest(other())


def test_the_digest_of_the_generator_covers_what_it_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but what says that something went wrong, what shows itself, how files are written, and a name for arrays."""
    read = list[Path]()
    real = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or real(path))
    packaging._generator_digest.__wrapped__()
    root = Path(packaging.__file__).parents[1]
    within = [path.relative_to(root).with_suffix("") for path in read if root in path.parents]
    own = {".".join(("symdual", *path.parts)).removesuffix(".__init__") for path in within}
    assert len(own) > 30
    nodes = [node for path in read if path.suffix == ".py" for node in ast.walk(ast.parse(path.read_text()))]
    imported = {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    others = {name for name in imported if name.startswith("symdual.")} - own
    harmless = {"archives", "arrays", "atomic_files", "display", "errors", "package_folders", "words"}
    assert others <= {f"symdual.common.{name}" for name in harmless}


# -------------------------------------------------------------------- templates


def declared_keys(template: str) -> frozenset[str]:
    """The keys that a template and all that it includes or imports need."""
    source, _, _ = render.environment().loader.get_source(render.environment(), template)  # type: ignore[union-attr]
    tree = render.environment().parse(source)
    # what a template sets itself is not asked for, even where the analysis cannot see that it is set in time
    own = {
        node.target.name for node in tree.find_all(jinja2.nodes.Assign) if isinstance(node.target, jinja2.nodes.Name)
    }
    keys = set(jinja2.meta.find_undeclared_variables(tree)) - own
    for other in jinja2.meta.find_referenced_templates(tree):
        if other is not None:
            keys |= declared_keys(other) - own
    return frozenset(keys)


def test_templates_declare_what_they_are_given_and_are_given_what_they_declare() -> None:
    facts = Facts(derive(cart()))
    for file in files(facts):
        keys = declared_keys(file.source)
        assert given(file, facts).keys() - {"name", "has"} == keys - {"name", "has"}, file.place


def test_the_templates_of_a_controller_in_c_declare_what_they_are_given_and_are_given_what_they_declare() -> None:
    keys = declared_keys("c/controller.h.jinja") | declared_keys("c/controller.c.jinja")
    assert frozenset(ControllerContext._fields) == keys


def test_an_undefined_name_in_a_template_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render.environment().from_string("{{ missing }}").render()
    with pytest.raises(jinja2.UndefinedError, match="'name' is undefined"):
        render.render("kernels/kernels.py.jinja", {})


# -------------------------------------------------------------------- the emitted code


@pytest.mark.parametrize("zoo_model", ["gain", "product", "measured"], indirect=True)
def test_imports_and_decorators(zoo_model: Model) -> None:
    """Every compiled kernel is cached, has the agreed options, and says what it does, its shapes and operations."""
    files = package(derive(zoo_model)).files
    for name, content in files.items():
        if name.endswith(".py"):
            kernels = name == "kernels/kernels.py"
            allowed = {"numpy", "numba"} | ({"math"} if kernels else set(sys.stdlib_module_names))
            assert _imported(ast.parse(content)) <= allowed, name
    functions = [node for node in ast.parse(files["kernels/kernels.py"]).body if isinstance(node, ast.FunctionDef)]
    assert {f.name for f in functions if not f.name.startswith("_")} == {
        *("dynamics", "linearise", "dynamics_jacobian", "dynamics_hessian", "dynamics_hessians"),
        *("observation", "observation_jacobian", "observation_hessian"),
    }
    for function in functions:
        if function.name in ("_nearest", "_sincos"):  # called by compiled code only
            continue
        (decorator,) = function.decorator_list
        options = "EXACT" if function.name.startswith(("_sincos", "_exp", "_logistic")) else "KERNEL"
        short = (f"njit(**{options})", f"njit(**{options}, forceinline=True)")
        assert ast.unparse(decorator) in short
        documentation = ast.get_docstring(function)
        assert documentation
        if not function.name.startswith("_"):
            assert "Shapes:" in documentation
            assert "Operations:" in documentation


def _imported(tree: ast.Module) -> set[str]:
    """The packages that a module imports, relative imports apart."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(str(node.module).split(".")[0])
    return found


@pytest.mark.parametrize("zoo_model", ["product", "measured", "unknown_locations"], indirect=True)
def test_loops_start_at_zero_and_have_known_bounds(zoo_model: Model) -> None:
    tree = ast.parse(package(derive(zoo_model)).files["kernels/kernels.py"])
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and isinstance(node.iter, ast.Call)]
    assert len(loops) > 10
    for loop in loops:
        assert isinstance(loop.iter, ast.Call)
        assert ast.unparse(loop.iter.func) == "range"
        (bound,) = loop.iter.args
        assert isinstance(bound, ast.Constant)


def test_user_names_can_be_anything_harmless(interpreted: Callable[[Model], object]) -> None:
    """Names of constants and builtins that the kernels do not rely on, soft keywords, and names of their own locals."""
    names = ["NX", "WORK", "DATA", "match", "type", "print", "exp", "sin", "i", "lam", "t0", "sum", "f", "z", "list"]
    states = sp.symbols(names)
    model = Model(list(states), [u], [sp.sin(s) + u * states[0] for s in states], name="harmless")
    at = np.linspace(-1, 1, len(names))
    computed = evaluate.dynamics(interpreted(model), at, [0.5], [])  # type: ignore[arg-type]
    np.testing.assert_allclose(computed, np.sin(at) + 0.5 * at[0], rtol=1e-15)


@pytest.mark.parametrize("name", ["point", "row", "rows", "points", "others", "out", "pi", "scale", "count"])
def test_a_constant_of_a_kernel_may_have_any_name(name: str) -> None:
    """The functions of the module `process` have no name of their own that a user could take."""
    rate = constant(name, 0.5)
    g = features.gaussian_process("g", x, kernel=lambda a, b: sp.exp(-rate * (a - b) ** 2), memory=3)
    files = package(derive(Model([x], [u], [x + u + g], name="m"))).files
    source = files["kernels/process.py"].decode().split("from ..options import ENTRY, INNER", 1)[1]
    module: dict[str, Any] = {
        "math": math,
        "np": np,
        "njit": lambda **options: lambda function: function,
        "INNER": {},
        "ENTRY": {},
    }
    exec(source, module)
    with np.load(io.BytesIO(files["data.npz"])) as stored:
        data = stored["data"]
    out = np.zeros((2, 2, 3))
    module["kernel_g"](np.array([[0.0], [1.0]]), np.array([[0.0], [1.0], [2.0]]), data, out)
    np.testing.assert_allclose(out[0], np.exp(-0.5 * np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0]])), rtol=1e-15)
    assert module["variance_g"](np.array([0.7]), data) == 1.0
