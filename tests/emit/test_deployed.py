"""A generated package in a program without symdual: its own controller does what symdual's does."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.runtime.loading import LoadedPackage
from symdual.spec.loading import load_model_file

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

PROGRAM = """
    import json, sys
    sys.modules["symdual"] = None  # nobody may import it
    sys.path.insert(0, {folder!r})
    from {name} import Controller
    own = Controller({controller!r}, **{options!r})
    inputs = [own.act(y, **more).tolist() for y, more in {steps!r}]
    own.observe({last!r})
    print(json.dumps([inputs, own.mean.tolist(), own.covariance.tolist()]))
    own.reset()
    first = own.act({steps!r}[0][0], **{steps!r}[0][1]).tolist()
    assert first == inputs[0], (first, inputs[0])
    assert not [name for name in sys.modules if name.startswith(("sympy", "jinja2"))]
"""


def both(
    package: LoadedPackage, run: Run, controller: str, ys: list[Any], more: list[dict[str, Any]], **options: Any
) -> None:
    """Compare inputs and belief over an episode, the last y being observed only."""
    steps = list(zip(ys[:-1], more, strict=True))
    code = PROGRAM.format(
        folder=str(package.folder.parent),
        name=package.name,
        controller=controller,
        options=options,
        steps=steps,
        last=ys[-1],
    )
    inputs, mean, covariance = json.loads(run(code, package.folder.parent, with_symdual=False).stdout)
    problem = symdual.problem(package, options.get("scenario"))
    other = symdual.controller(problem, controller, window=options.get("window"))
    np.testing.assert_array_equal(inputs, [other.act(y, **said) for y, said in steps])
    belief = other.observe(ys[-1])
    np.testing.assert_array_equal(mean, belief.mean)
    np.testing.assert_array_equal(covariance, belief.covariance)


@pytest.mark.parametrize("name", ["ce", "cautious", "dual", "planned"])
def test_to_the_end_of_a_scenario(numba_toy_package: LoadedPackage, fresh_python: Run, name: str) -> None:
    both(numba_toy_package, fresh_python, name, [None, [0.3], [-0.2]], [{}, {}])


def test_with_a_moving_horizon_and_gaps(numba_toy_package: LoadedPackage, fresh_python: Run) -> None:
    ys = [[1.1], None, [0.4], [0.1], None, [-0.3]]
    both(numba_toy_package, fresh_python, "ce", ys, [{}] * 5, window=2)
    both(numba_toy_package, fresh_python, "dual", ys, [{}] * 5, window=2)


@pytest.mark.soak
def test_with_signals(shared_models: Callable[[Path], Path], fresh_python: Run) -> None:
    """A cost by expressions, and forecasts that are given step by step."""
    package = symdual.load(shared_models(ROOT / "tests/models/scenarios.py") / "heated")
    ny = package.NY
    forecast = [{"signals": dict.fromkeys(package.SIGNALS, 0.4)}, {"signals": {}}, {"signals": {}}]
    both(package, fresh_python, "ce", [None, [0.1] * ny, [0.2] * ny, [0.3] * ny], forecast)


LIVES = """
    import copy, json, pickle, sys
    from pathlib import Path
    sys.modules["symdual"] = None  # nobody may import it
    sys.path.insert(0, {folder!r})
    from {name} import Controller
    kept = Path("kept.pickle")
    if kept.exists():
        lives = [pickle.loads(kept.read_bytes())]
    else:
        own = Controller("dual", window=2)
        own.act([1.1])
        kept.write_bytes(pickle.dumps(own))
        lives = [copy.copy(own), own]
    print(json.dumps([[[life.act(y).tolist() for y in ([0.4], [0.1])], life.mean.tolist()] for life in lives]))
"""


def test_copies_and_pickles_go_on_by_themselves(
    numba_toy_package: LoadedPackage, fresh_python: Run, tmp_path: Path
) -> None:
    code = LIVES.format(folder=str(numba_toy_package.folder.parent), name=numba_toy_package.name)
    copied, own = json.loads(fresh_python(code, tmp_path, with_symdual=False).stdout)
    (woken,) = json.loads(fresh_python(code, tmp_path, with_symdual=False).stdout)
    assert copied == own == woken and own[0][0] != own[0][1]


def test_what_it_does_not_know(numba_toy_package: LoadedPackage) -> None:
    for options, sentence in (({"name": "duel"}, "there is no controller"), ({"scenario": "?"}, "no scenario")):
        with pytest.raises(ValueError, match=sentence):
            numba_toy_package.controller.Controller(**options)


@pytest.mark.soak
@pytest.mark.parametrize("file", ["tests/models/scenarios.py", "tests/models/forms.py"])
def test_every_form(shared_models: Callable[[Path], Path], fresh_python: Run, file: str) -> None:
    """Square roots, constraints, cross terms: whatever a package may contain."""
    packages = shared_models(ROOT / file)
    for name, scenario in load_model_file(ROOT / file).scenarios.items():
        package = symdual.load(packages / scenario.model.name)
        if np.isnan(package.numbers.get(f"scenario.{name}.constraint_weights", np.zeros(1))).any():
            continue  # which the package says itself
        more = {"signals": dict.fromkeys(package.SIGNALS, 0.5)} if hasattr(package, "SIGNALS") else {}
        ys = [None, [0.1] * package.NY, [0.2] * package.NY]
        for controller in ("dual", "planned") if hasattr(package, "CONSTRAINTS") else ("dual",):
            both(package, fresh_python, controller, ys, [more, {}], scenario=name)
