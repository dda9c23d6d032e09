"""Packages whose likelihood runs in the interpreter, the same likelihood with 50 digits, and recordings of them."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from symdual import Model
from symdual.common.arrays import Array
from symdual.common.atomic_files import write_atomically
from symdual.common.package_folders import modules_of
from symdual.identification.fitted import fitted
from symdual.identification.likelihood import Report, unreported
from symdual.identification.parameters.likelihood import parameter_likelihood
from symdual.identification.parameters.prior_model import PriorModel, prior_model
from symdual.identification.result import Fit
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.replay import Recording

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices on many threads only wait for each other."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The exponentials of kernels fill whole lanes, of which some are never read; the interpreter warns about those."""
    with np.errstate(over="ignore"):
        yield


@pytest.fixture(scope="session")
def interpreted_likelihood(interpreted: Callable[[Model], Any]) -> Callable[[Model], Any]:
    """Return a function that runs the likelihood of a model without compiling it."""

    def run(model: Model) -> Any:
        named = model if model.name else model.named("anonymous")
        found = interpreted(named)
        options: dict[str, Any] = {
            key: {}
            for key in ("ALLOCATING", "ENTRY", "INNER", "INNER_ALLOCATING", "NOALIAS", "ORDERED", "KERNEL", "EXACT")
        }
        files = modules_of(found.files)
        modules = {"kernels": vars(found.kernels), "options": options}
        noise = ("true_noise", "likelihood_noise") if named.noise is not None else ()
        noise += ("state_bounds",) if named.state_bounds else ()
        moments = ("moments", "curvature", "likelihood_moments") if "moments" in files else ("curvature",)
        for name in (
            *("records", "blocks", *noise, *moments),
            *("innovation", "likelihood", "likelihood_gradient", "information"),
        ):
            modules[name] = _executed(name, found.files[files[name]].decode(), modules)
            setattr(found, name, types.SimpleNamespace(**modules[name]))
        found.name = named.name
        return found

    return run


def _executed(name: str, source: str, modules: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What a module of a package defines, with numba's decorators idle; other modules of the package are given."""
    tree, names = ast.parse(source), {"__name__": name, "njit": lambda **options: lambda function: function}
    for node in [n for n in tree.body if isinstance(n, ast.ImportFrom) and (n.level or n.module == "numba")]:
        if node.level and node.module:
            names |= {alias.name: modules[node.module.rpartition(".")[2]][alias.name] for alias in node.names}
        elif not node.level:
            names |= {alias.name: getattr(numba, alias.name) for alias in node.names if alias.name != "njit"}
        tree.body.remove(node)
    tree.body = [n for n in tree.body if not (isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__name__")]
    exec(compile(tree, name, "exec"), names)
    return names


# ------------------------------------------------------------------------------------------------ a compiled cart

#: model, program that records it: the example of docs/fit.md
CART, RIDES, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "fit.md").read_text(), re.DOTALL)
DRIVE, FRICTION, SIDE = 1.4, 0.5, 0.8
PROCESS, MEASUREMENT = 4e-4, 2.5e-3


def ride(rows: int, seed: int, windy: bool = True, start: tuple[float, float] = (0.5, -0.2)) -> dict[str, Array]:
    """A ride of the cart as a table of columns; every tenth measurement is lost."""
    random = np.random.default_rng(seed)
    force = 2.0 * np.repeat(random.standard_normal(rows // 15 + 1), 15)[:rows]
    wind = np.repeat(random.uniform(-1.0, 1.0, rows // 8 + 1), 8)[:rows] if windy else np.zeros(rows)
    p, v = start
    seen = np.full(rows, np.nan)
    for k in range(rows):
        if k % 10 != 5:
            seen[k] = p + np.sqrt(MEASUREMENT) * random.standard_normal()
        pull = DRIVE * force[k] - FRICTION * v + SIDE * wind[k]
        p, v = p + 0.1 * v, v + 0.1 * pull + np.sqrt(PROCESS) * random.standard_normal()
    return {"time": np.arange(rows, dtype=float), "force": force, "wind": wind, "position": seen}


def as_csv(table: dict[str, Array]) -> str:
    """A table as a file; NaN becomes an empty cell."""
    rows = zip(*table.values(), strict=True)
    lines = [",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in rows]
    return "\n".join([",".join(table), *lines]) + "\n"


@pytest.fixture(scope="session")
def cart_file(packages: Path, shared_package: Callable[[Path], LoadedPackage]) -> Path:
    """The model file of the cart, whose package lies in `packages`."""
    folder = packages.with_name("models")
    folder.mkdir(exist_ok=True)
    file = folder / "cart.py"
    if not file.is_file():
        write_atomically(file, CART.encode())
    shared_package(file)
    return file


@pytest.fixture(scope="session")
def cart(cart_file: Path, packages: Path) -> PriorModel:
    """The cart with an unknown first state."""
    return prior_model(cart_file, folder=packages)


@pytest.fixture(scope="session")
def cart_at_rest(cart: PriorModel) -> PriorModel:
    """The cart that starts at rest at zero."""
    covariance = cart.prior.covariance.copy()
    covariance[:2, :2] = 0.0
    return cart._replace(prior=Belief(cart.prior.mean, covariance))


def fit_parameters(
    about: PriorModel, recordings: Sequence[Recording], *, starts: int = 5, report: Report = unreported, **chosen: Any
) -> Fit:
    """Fit a model that is loaded to recordings that are read; `chosen` are arguments of `parameter_likelihood`."""
    return fitted(parameter_likelihood(about, recordings, **chosen), starts, report)
