"""What all tests share: packages without files, compiled packages made once, fresh interpreters, and a browser."""

from __future__ import annotations

import functools
import importlib.util
import io
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

import symdual
from symdual import Model, features, logistic, unknown
from symdual.backends.c import compilation
from symdual.backends.numba.ahead import missing, parts_of, warm
from symdual.common.package_folders import locked
from symdual.common.parts import PARTS
from symdual.derive.derivation import derive
from symdual.emit.package import Package, model_digest, package
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import load_model_file
from symdual.spec.specification import specified

from . import goldens
from .goldens import ROOT


def pytest_configure() -> None:
    """New files are writable by nobody else, whatever the shell says, for symdual looks at that.

    A suite that was started in the background ignores interrupts; the programs that it starts must not.
    """
    os.umask(0o022)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say after everything else what was skipped and why: a suite that has passed has not looked there."""
    yield
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in terminalreporter.getreports("skipped")
    )
    if reasons:
        terminalreporter.write_sep("=", "not tested here", yellow=True)
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)


class Interpreted:
    """A package run by the interpreter, without numba and without files: fast where compiling is not the point."""

    transforms = ()  # no unknown has bounds

    def __init__(self, rendered: Package, kernels: str | None = None) -> None:
        self.module = _execute(rendered.files["__init__.py"].decode())
        self.files = rendered.files
        self.source = rendered.files["kernels/kernels.py"].decode() if kernels is None else kernels
        self.kernels = _execute(self.source)
        with np.load(io.BytesIO(rendered.files["data.npz"])) as stored:
            self.numbers = {key: stored[key] for key in stored.files}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["module"], name)


#: `math` as numba compiles it under error_model="numpy": NaN or infinity where the interpreter's own raises.
_MATH = types.SimpleNamespace(
    pi=np.pi,
    e=np.e,
    inf=np.inf,
    nan=np.nan,
    erf=lambda a: np.float64(math.erf(a)),
    erfc=lambda a: np.float64(math.erfc(a)),
    **{name: getattr(np, name) for name in "sin cos tan sinh cosh tanh exp log sqrt copysign".split()},
    **{name: getattr(np, "arc" + name[1:]) for name in "asin acos atan atan2 asinh acosh atanh".split()},
    pow=np.power,
)


def _execute(source: str) -> types.ModuleType:
    plain = source.replace("from numba import njit", "def njit(**options):\n    return lambda function: function\n")
    plain = plain.replace("from .. import one_name\n\n__name__ = one_name(__spec__)\n", "")
    plain = re.sub(
        r"from \.\.options import .*\n", "INNER = ORDERED = KERNEL = EXACT = {}\n", plain.replace("import math\n", "")
    )
    module = types.ModuleType("interpreted")
    module.__dict__["math"] = _MATH
    exec(compile(plain, "interpreted", "exec"), module.__dict__)
    return module


@pytest.fixture(scope="session")
def interpreted() -> Callable[[Model], Interpreted]:
    """Return a function that runs a model's kernels without compiling them."""

    rendered: dict[int, tuple[Model, Package]] = {}  # holds the models too, so that no id is used twice

    def run(model: Model, kernels: str | None = None) -> Interpreted:
        if id(model) not in rendered:
            rendered[id(model)] = model, package(derive(model if model.name else model.named("anonymous")))
        return Interpreted(rendered[id(model)][1], kernels)

    return run


#: what C may do with sums and products, as in `compilation.FAST`
FREE = ("-march=native", "-ffast-math", "-fno-finite-math-only", "-ffp-contract=fast")


@pytest.fixture(scope="session", autouse=True)
def quick_builds() -> Iterator[None]:
    """Compile with the usual freedom for sums and products, and with little else: most of gcc's time is for speed."""
    assert set(FREE) < set(compilation.FAST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation, "FAST", ("-O1", *FREE))
        patch.setattr(compilation, "SHORT_LOOPS", ())
        yield


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers of a parallel run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def compiled(shared: Path) -> Callable[..., LoadedPackage]:
    """Return a function that generates and loads a named model, through C where there is a compiler.

    Folders have the digests of models for names: a model is generated once, and what a worker compiles of it is there
    for all, whatever other models are called.
    """

    def run(model: Model, backend: str | None = None) -> LoadedPackage:
        folder = shared / "compiled" / model_digest(specified(model))
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, wait=True):
            (made,) = symdual.generate(model, folder / "generated", parts=PARTS)
        return symdual.load(made.folder, backend=backend)

    return run


@pytest.fixture(scope="session")
def packages(shared: Path) -> Path:
    """The folder of the packages; the workers of a parallel run share it, and with it numba's cache."""
    folder = shared / "packages"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def shared_models(packages: Path) -> Callable[[Path], Path]:
    """Return a function that generates all models of a file into the shared folder, which it returns.

    A worker waits for another one, however long that takes; `generate` itself gives up after a while.
    """
    turns = packages.with_name("turns")
    turns.mkdir(exist_ok=True)

    taken = {*goldens.WHOLE, *(file.partition("/")[0] for file in goldens.committed_digests())}

    def run(model_file: Path) -> Path:
        if model_file not in goldens.MODEL_FILES and (twice := taken & load_model_file(model_file).models.keys()):
            raise ValueError(
                f"the project has models of these names, which share a folder with those of tests: {twice}"
            )
        with locked(turns, wait=True):
            symdual.generate(model_file, packages, parts=PARTS)
        return packages

    return run


@pytest.fixture(scope="session")
def every_package(shared_models: Callable[[Path], Path]) -> list[Path]:
    """The packages of all models of the project, as the generator makes them now."""
    return sorted({shared_models(file) / name for file in goldens.MODEL_FILES for name in load_model_file(file).models})


@pytest.fixture(scope="session")
def package_of(shared_models: Callable[[Path], Path]) -> Callable[[str], Path]:
    """Return a function that gives the package of a model of the project by its name: committed, or generated once."""

    def run(name: str) -> Path:
        return (goldens.GENERATED if name in goldens.WHOLE else shared_models(goldens.model_file(name))) / name

    return run


@pytest.fixture(scope="session")
def shared_package(shared_models: Callable[[Path], Path]) -> Callable[[Path], LoadedPackage]:
    """Return a function that generates into the shared folder and loads what is named like the model file (numba)."""
    return lambda model_file: symdual.load(shared_models(model_file) / model_file.stem, backend="numba")


@pytest.fixture(scope="session")
def toy_package(package_of: Callable[[str], Path]) -> LoadedPackage:
    """The paper's toy, x' = x + b u, through C where there is a compiler. Most files use it."""
    return symdual.load(package_of("toy"))


@pytest.fixture(scope="session")
def numba_toy_package(shared_package: Callable[[Path], LoadedPackage], shared: Path) -> LoadedPackage:
    """The toy for tests whose subject is numba.

    In a parallel run the first worker compiles what most of them need, for which the others wait; elsewhere a test
    compiles what it needs.
    """
    package = shared_package(ROOT / "symdual/paper/models/toy.py")
    if "PYTEST_XDIST_WORKER" in os.environ:
        with locked(shared, wait=True):
            warm(missing(package.folder, (*parts_of(package), "episode")))
    return package


@pytest.fixture(scope="session")
def fresh_python() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs code in a new interpreter, from a given folder, and returns what it printed."""

    def run(
        code: str, folder: Path, check: bool = True, with_symdual: bool = True, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA"))}
        if with_symdual:
            clean["PYTHONPATH"] = str(ROOT)
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            cwd=folder,
            env=clean | environment,
            capture_output=True,
            text=True,
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that hides every C compiler, that of the extra `compiler` too."""

    def hide() -> None:
        find = importlib.util.find_spec
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.setenv("PATH", "")
        monkeypatch.setattr(
            "importlib.util.find_spec", lambda name, *in_: None if name == "ziglang" else find(name, *in_)
        )

    return hide


# -------------------------------------------------------------------- a collection of small models

x, v, u, w, q, k = sp.symbols("x v u w q k")


def _wave(name: str, argument: sp.Expr, count: int = 4, **options: Any) -> Any:
    return features.fourier(name, argument, count=count, **options)


def _network(name: str, argument: sp.Expr) -> Any:
    return features.logistic(name, argument, locations=[-1.0, 0.5, 1.0], slope_mean=[-1.0, 0.7, 1.2])


def _several_outputs() -> Model:
    push, pull = features.rbf("g", [x, v], centres=[[0.0, 0.0], [1.0, 1.0], [-1.0, 0.5]], outputs=2)
    return Model([x, v], [u], [x + push * u, v + pull + 0.5 * push], name="several_outputs")


def _many_arguments() -> Model:
    states = sp.symbols("x0:12")
    g = features.custom(
        "g",
        list(states),
        lambda *a, c, p: c * sp.sin(sp.Add(*(p * (i + 1) * s for i, s in enumerate(a)))) + c * a[1] * a[11] ** 2,
        {"c": (0.0, 1.0)},
        {"p": [0.1, 0.2]},
    )
    return Model(list(states), [u], [g + u, *states[1:]], name="many_arguments")


def _measured() -> Model:
    net = _network("net", x)
    observation = [sp.sin(x) * unknown("c", 1.0), _wave("g", v) * net, v, sp.Integer(2)]
    return Model([x, v], [u], [x + v, v + net + u], observation=observation, name="measured")


def _unknown_locations() -> Model:
    net = features.logistic("net", [x, v], locations=[0.1, -0.4], location_variance=0.5, slope_mean=[[1, 2], [-1, 0.5]])
    return Model([x, v], [u], [v, x + net + u], observation=[x * net], name="unknown_locations")


def _stages() -> Model:
    """A long step."""
    net = _network("net", x + 0.3 * u)
    motion = [
        v + unknown("a", 1.0) * w**2,
        net * v - sp.sin(x) * unknown("b", 0.5) + u * sp.cos(k),
        _wave("g", x * v) * net - w * x * unknown("a", 1.0) + q * u,
    ]
    return Model([x, v, w], [u, q], derivatives=motion, step=0.1, method="rk4", time=k, name="stages")


def _custom() -> Model:
    g = features.custom(
        "g",
        [x, u],
        lambda a, b, c, d, p: (
            c * sp.exp(p * logistic(d * a)) * sp.atan(b) + sp.sin(d * logistic(p * a + b)) * sp.log(1 + a**2)
        ),
        {"c": (0.0, 1.0), "d": (1.0, 0.5)},
        {"p": [0.3, -0.8, 1.1]},
    )
    return Model([x], [u], [x + u + g], name="custom")


ZOO: dict[str, Callable[[], Model]] = {
    "linear": lambda: Model([x, v], [u], [x + 0.1 * v, 0.9 * v + u], name="linear"),
    "gain": lambda: Model([x], [u], [x + unknown("b", 1.0) * u], name="gain"),
    "bounded": lambda: Model(
        [x, v],
        [u],
        [
            x + unknown("k", 2.0, 0.2, positive=True) * sp.sqrt(1 + v**2),
            v * unknown("c", 0.3, 0.02, lower=0.0, upper=1.0) - u / unknown("m", -1.5, 0.1, upper=-0.5),
        ],
        name="bounded",
    ),
    "waves": lambda: Model([x, v], [u], [x + 0.4 * v, v + _wave("g", x) + u], name="waves"),
    "network": lambda: Model([x, v], [u], [x + v, v + _network("net", x) + u], name="network"),
    "polynomial": lambda: Model(
        [x, v], [u], [v, x + u * features.polynomial("p", [x, v], degree=2)], name="polynomial"
    ),
    "product": lambda: Model([x], [u], [x + _wave("g", x) * _network("net", x * u) + u**2], name="product"),
    "square": lambda: Model([x], [u], [x + u + _wave("g", x) ** 2], name="square"),
    "function": lambda: Model([x], [u], [x + sp.tanh(_wave("g", x) + x * u)], name="function"),
    "nested": lambda: Model([x], [u], [x + u + _network("net", x + _wave("g", x * u))], name="nested"),
    "input_features": lambda: Model([x], [u], [0.5 * x + features.rbf("g", [x, u], [[0, 0], [1, 1]])], name="inputs"),
    "several_outputs": _several_outputs,
    "scaled": lambda: Model([x], [u], [x + unknown("a") * _wave("g", x) + unknown("b") * u * x], name="scaled"),
    "runge_kutta": lambda: Model(
        [x, v],
        [u],
        derivatives=[v, -sp.sin(x) * unknown("a", 1.0) + _network("net", v) + u * sp.cos(k)],
        step=0.2,
        method="rk4",
        time=k,
        name="runge_kutta",
    ),
    "stages": _stages,
    "substeps": lambda: Model(
        [x, v],
        [u],
        derivatives=[v * u, -sp.sin(x) * unknown("a", 1.0) + u * sp.cos(k)],
        step=0.4,
        method="rk4",
        substeps=2,
        time=k,
        name="substeps",
    ),
    "euler": lambda: Model(
        [x, v], [u], derivatives=[v * sp.exp(-(x**2)), _wave("g", x - v) + u], step=0.3, name="euler"
    ),
    "time_varying": lambda: Model(
        [x], [u], [x * sp.cos(k / 3) + _wave("g", x + k / 10) + u], observation=[x * k], time=k, name="time_varying"
    ),
    "measured": _measured,
    "unknown_locations": _unknown_locations,
    "custom": _custom,
    "many_arguments": _many_arguments,
    "piecewise": lambda: Model(
        [x, v],
        [u],
        [
            sp.Piecewise((x**2 + v, (x > 0) & (v < 1)), (x * v, True)) + sp.Max(x, v, u) * unknown("a", 1.0),
            sp.Abs(v) * u + sp.Min(x * u, 0.3),
        ],
        name="piecewise",
    ),
}


@functools.cache
def _of_the_zoo(name: str) -> Model:
    return ZOO[name]()


@pytest.fixture(params=list(ZOO))
def zoo_model(request: pytest.FixtureRequest) -> Model:
    """Each model of the collection, the same object in all tests: it is rendered once."""
    return _of_the_zoo(request.param)


# -------------------------------------------------------------------- a browser for the tests of pages

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
).split()


@dataclass(frozen=True)
class Browser:
    """A headless Chromium that opens pages from disk at a given width."""

    driver: Any

    def open(self, file: Path, width: int, height: int = 900, dark: bool = False) -> None:
        """Open a page as a laptop (from 700 px on) or as a phone."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get_log("browser")  # forget what earlier pages said
        self.driver.get(file.resolve().as_uri())

    def run(self, script: str) -> Any:
        """The value of a script run in the page by the test (pages themselves need none)."""
        return self.driver.execute_script(script)

    def console(self) -> list[str]:
        """What the page has written to the console since it was opened, errors of loading included."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        return int(self.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def formula_sizes(self) -> list[tuple[float, float]]:
        """Width and height of every formula that is not folded away."""
        script = """
            return [...document.querySelectorAll("math")]
              .filter(m => !m.closest("details:not([open])"))
              .map(m => { const r = m.getBoundingClientRect(); return [r.width, r.height]; });
        """
        return [(width, height) for width, height in self.run(script)]

    def requests(self) -> list[str]:
        """The addresses of everything that the page has loaded besides itself."""
        return list(self.run("return performance.getEntriesByType('resource').map(e => e.name)"))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, or a skip that says what is missing."""
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium (Debian: apt install chromium chromium-driver)")
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = selenium.ChromeService(executable_path=driver)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # selenium's own sockets
        opened = selenium.Chrome(options=options, service=service)
        try:
            yield Browser(opened)
        finally:
            opened.quit()
