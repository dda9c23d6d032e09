"""The exported controller: its files compile anywhere, and do what the controller in Python does."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.backends.c.compilers import compile_files
from symdual.backends.c.names import checked_prefix, safe
from symdual.backends.c.translator import TAKEN
from symdual.checks.exported import build, drive
from symdual.common.errors import SymdualError
from symdual.controllers import EXPORTED
from symdual.export.controller import Exported, Settings, export
from symdual.export.precision import losses
from symdual.export.target import COMPILER, Sections, sections
from symdual.runtime import evaluate
from symdual.runtime.controller import controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.options import Options
from symdual.runtime.problem import Problem
from symdual.runtime.signals import signals_of

from .conftest import ROOT, STRICT, close, other_compiler

YS = np.array([[np.nan, np.nan], [0.02, 0.31], [0.05, np.nan], [np.nan, np.nan], [0.3, 1.1]])


@pytest.fixture(scope="module")
def problem(through_c: Callable[[str], LoadedPackage]) -> Problem:
    """The pendulum's problem, cut to few steps."""
    return symdual.problem(through_c("pendulum")).changed(horizon=8)


@pytest.fixture(scope="module")
def exported(problem: Problem) -> Exported:
    """The controllers in double precision."""
    return export(problem, Settings("swing"))


@pytest.fixture(scope="module")
def native(exported: Exported, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The exported files, compiled with every warning an error."""
    return build(exported, tmp_path_factory.mktemp("native"))


def test_it_acts_as_the_controller_in_python(problem: Problem, exported: Exported, native: ctypes.CDLL) -> None:
    for one in exported.choices:
        twin = controller(problem, one.name)
        expected = []
        for y in YS:
            u = twin.act(y)
            expected.append([*u, *twin.belief.mean, 0.0])
        assert close(drive(native, exported, one.number, YS), expected, 1e-5), one.name
    assert [one.name for one in exported.choices] == [kind.name for kind in EXPORTED]


def test_a_package_without_planned_is_exported(c_compiler: str, tmp_path: Path) -> None:
    symdual.generate(ROOT / "examples/pendulum.py", tmp_path)
    problem = symdual.problem(symdual.load(tmp_path / "pendulum", backend="c")).changed(horizon=8)
    found = export(problem, Settings("swing"))
    assert [one.name for one in found.choices] == [kind.name for kind in EXPORTED if not kind.part]
    assert [reason.partition("--with ")[2].partition("`")[0] for reason in found.left_out] == [
        kind.part for kind in EXPORTED if kind.part
    ]
    native, dual = build(found, tmp_path), next(one for one in found.choices if one.name == "dual")
    twin = controller(problem, "dual")
    expected = [[*twin.act(y), *twin.belief.mean, 0.0] for y in YS]
    assert close(drive(native, found, dual.number, YS), expected, 1e-5)


CART = """
import sympy as sp
from symdual import Model, Scenario, unknown

place, speed, force = sp.symbols("place speed force")
motion = [place + 0.1 * speed, 0.95 * speed + 0.1 * unknown("strength", 1.0, 0.1) * force]
seen = [sp.sqrt(4 + place**2), speed]
noise = {"process_noise": [1e-5, 1e-4], "measurement_noise": [1e-2, 4e-2]}
model = Model([place, speed], [force], motion, observation=seen, filter="recalibrated", outliers=3, **noise)
scenario = Scenario(model, horizon=10, start=[3, 0], start_covariance=[0.1, 0.1], input_cost=0.1)
"""


def test_a_filter_that_finds_outliers_is_exported(c_compiler: str, tmp_path: Path) -> None:
    """Six numbers in a row that are too far off: five count less, the sixth widens what is believed of the states."""
    (tmp_path / "cart.py").write_text(CART)
    symdual.generate(tmp_path / "cart.py", tmp_path)
    problem = symdual.problem(symdual.load(tmp_path / "cart", backend="c"))
    found = export(problem, Settings("cart", controllers=("ce",)))
    native, twin, ys = build(found, tmp_path), controller(problem, "ce"), np.array([[3.6, 0.1]] + 7 * [[12.0, 0.0]])
    expected, counts = [], []
    for y in ys:
        expected.append([*twin.act(y), *twin.belief.mean, 0.0])
        counts.append(twin.belief.rejected[0])  # type: ignore[index]
    assert counts[:7] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0]
    assert abs(expected[-1][1]) > 8.0  # its place
    assert close(drive(native, found, found.choices[0].number, ys), expected, 1e-6)


def test_a_task_with_constraints_is_exported(through_c: Callable[[str], LoadedPackage], tmp_path: Path) -> None:
    problem = symdual.problem(through_c("brim"))
    found = export(problem, Settings("brim"))
    assert [one.name for one in found.choices] == [kind.name for kind in EXPORTED]
    assert not found.left_out
    native, ys = build(found, tmp_path), np.array([[np.nan, np.nan], [0.1, 0.3], [0.2, np.nan], [0.45, 0.4]])
    for one in found.choices:
        twin = controller(problem, one.name)
        expected = [[*twin.act(y), *twin.belief.mean, 0.0] for y in ys]
        assert close(drive(native, found, one.number, ys), expected, 1e-6), one.name


@pytest.mark.parametrize("name", ["heated", "valved", "lit_rooted"])
def test_what_a_task_can_say_is_exported_too(
    name: str, through_c: Callable[[str], LoadedPackage], tmp_path: Path
) -> None:
    """Signals that change, choices, a square-root filter with noise that depends: told the same, C acts alike."""
    problem = symdual.problem(through_c(name))
    found = export(problem, Settings("told", controllers=("ce", "dual")))
    native, ny = build(found, tmp_path, ("-O0",)), problem.package.NY
    ys = np.random.default_rng(1).normal(size=(4, ny)) + evaluate.observation(
        problem.package, problem.start, problem.prior.mean[problem.package.NX :]
    )
    for one in found.choices:
        twin = controller(problem, one.name)
        memory = np.zeros(found.bytes // 8)
        place, u = ctypes.c_void_p(memory.ctypes.data), np.zeros(problem.package.NU)
        native.told_init(place)
        assert native.told_use(place, one.number) == 0
        for k, y in enumerate(ys):
            told = {signal: 4.0 + (-1) ** k + n for n, signal in enumerate(signals_of(problem.package))}
            if told:
                values = np.array(list(told.values()))
                assert native.told_set_signals(place, k, ctypes.c_void_p(values.ctypes.data)) == 0
            expected = twin.act(y, **({"signals": told} if told else {}))
            assert native.told_act(place, ctypes.c_void_p(y.ctypes.data), ctypes.c_void_p(u.ctypes.data)) >= 0
            assert close(u, expected, 1e-7), (one.name, k)
            assert close(memory[: problem.package.NZ], twin.belief.mean, 1e-9), (one.name, k)


def test_signals_without_values_have_a_status_of_their_own(
    through_c: Callable[[str], LoadedPackage], tmp_path: Path
) -> None:
    problem = symdual.problem(through_c("heated"))
    assert problem.signals is not None
    unheard = problem.signals._replace(believed=np.full_like(problem.signals.believed, np.nan))
    found = export(replace(problem, signals=unheard), Settings("told", controllers=("ce",)))
    native = build(found, tmp_path, ("-O0",))
    memory, u, values = np.zeros(found.bytes // 8), np.zeros(1), np.array([6.0, 20.0])
    place, input_, given = (ctypes.c_void_p(array.ctypes.data) for array in (memory, u, values))
    native.told_init(place)
    assert native.told_act(place, None, input_) == -7
    assert native.told_set_signals(place, 99, given) == -6
    assert native.told_set_signals(place, 0, ctypes.c_void_p(np.array([6.0, np.nan]).ctypes.data)) == -6
    assert native.told_set_signals(place, 0, given) == 0
    assert native.told_act(place, None, input_) == 0


def test_single_precision_has_no_random_numbers(problem: Problem) -> None:
    found = export(problem, Settings("low", "float"))
    assert found.left_out == tuple(
        f'the controller "{name}" draws its random numbers in double precision'
        for name in ("thompson", "rollout", "scenario", "dither")
    )
    with pytest.raises(SymdualError, match="in double precision"):
        export(problem, Settings("low", "float", controllers=("thompson",)))


def test_what_a_controller_is_told_has_setters(problem: Problem, exported: Exported, native: ctypes.CDLL) -> None:
    """Seed and number of decisions of `thompson`: the same draws as in Python."""
    number = next(one.number for one in exported.choices if one.name == "thompson")
    memory, u = np.zeros(exported.bytes // 8), np.zeros(1)
    place, input_ = ctypes.c_void_p(memory.ctypes.data), ctypes.c_void_p(u.ctypes.data)
    assert native.swing_set_seed(place, 3) == -5
    native.swing_init(place)
    native.swing_use(place, number)
    assert native.swing_set_seed(place, -1) == native.swing_set_hold(place, 0) == -6
    assert native.swing_set_seed(place, 3) == native.swing_set_hold(place, 2) == 0
    wide = np.array([-50.0, 50.0])  # the usual bounds are where every draw ends
    assert native.swing_set_bounds(place, *(ctypes.c_void_p(wide[a:].ctypes.data) for a in (0, 1))) == 0
    told = [Options(hold=2, seed=seed) for seed in (3, 4)]
    twin, other = (controller(problem.changed(bounds=wide[:, None]), "thompson", options=one) for one in told)
    differences = []
    for y in YS:
        assert native.swing_act(place, ctypes.c_void_p(y.ctypes.data), input_) >= 0
        assert close(u, twin.act(y), 1e-5)
        differences.append(abs(u - other.act(y)).max())
    assert max(differences) > 1e-3


def test_a_window_goes_on_for_ever(problem: Problem, tmp_path: Path) -> None:
    moving = export(problem, Settings("swing", window=3, controllers=("ce",)))
    ys = np.array([[0.01 * k, 0.1] for k in range(12)])
    got = drive(build(moving, tmp_path), moving, 0, ys)
    twin = controller(problem, "ce", window=3)
    assert close(got[:, 0], [twin.act(y)[0] for y in ys], 1e-9)
    assert not got[:, -1].any()


def test_other_compilers_have_nothing_to_say(exported: Exported, problem: Problem, tmp_path: Path) -> None:
    command = other_compiler("clang")
    for name, text in {**exported.files, **export(problem, Settings("low", "float", order=2)).files}.items():
        (tmp_path / name).write_text(text)
    for name in ("swing.c", "low.c"):
        compile_files([tmp_path / name], [*STRICT, "-O1", "-c"], tmp_path / "x.o", (command,))


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("pendulum", "-O3 -march=native"),
        *(
            pytest.param(name, flags, marks=pytest.mark.soak)
            for name in ("pendulum", "reactor", "heated", "vehicle", "light_dark")
            for flags in ("-O2", "-O3", "-O3 -march=native")
        ),
    ],
)
def test_optimising_finds_nothing_to_warn_of(
    name: str, flags: str, through_c: Callable[[str], LoadedPackage], tmp_path: Path
) -> None:
    """What a compiler sees after it has unrolled and inlined, it warns of at these levels only."""
    found = export(symdual.problem(through_c(name)), Settings("quiet", controllers=("ce",)))
    for file, text in found.files.items():
        (tmp_path / file).write_text(text)
    compile_files([tmp_path / "quiet.c"], [*STRICT, *flags.split(), "-c"], tmp_path / "x.o")


def test_cpp_can_include_the_header(exported: Exported, tmp_path: Path) -> None:
    command = other_compiler("g++")
    (tmp_path / "swing.h").write_text(exported.files["swing.h"])
    (tmp_path / "x.cpp").write_text('#include "swing.h"\nint main() { return sizeof(swing_controller) == 0; }\n')
    subprocess.run([command, "-Wall", "-Wextra", "-Werror", "-c", "x.cpp"], cwd=tmp_path, check=True)


def test_a_small_target_is_reported(exported: Exported, tmp_path: Path) -> None:
    command = other_compiler(COMPILER)
    for name, text in exported.files.items():
        (tmp_path / name).write_text(text)
    flags = [*STRICT, "-Os", "-mthumb", "-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16", "-c"]
    compile_files([tmp_path / "swing.c"], flags, tmp_path / "x.o", (command,))
    found = sections(exported.files, "double")
    assert isinstance(found, Sections) and found.processor == "Cortex-M7"
    assert 5_000 < found.code < 200_000 and found.data == 0 and found.stack < 5_000


def test_a_compiler_for_targets_without_headers_is_a_sentence(
    exported: Exported, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in ((COMPILER, "echo 'math.h: No such file: fatal error' >&2; exit 1"), ("arm-none-eabi-size", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert "arm-none-eabi-gcc: the C compiler refused the translation: math.h" in str(sections(exported.files, "float"))
    monkeypatch.setenv("PATH", "")
    assert sections(exported.files, "float") == "arm-none-eabi-gcc is not installed"


MAIN = """
#include <stdio.h>
#include "swing.h"

static swing_controller c;

int main(void)
{
    double y[2] = {NAN, NAN}, u[1] = {0.0}, m[4] = {0.0, 0.0, 0.2, 1.0};
    double bad[1] = {NAN}, low[1] = {-2.0}, high[1] = {1.0};
    double P[4][4] = {{0.1}}, r[2] = {1.0, 0.0};
    printf("%d\\n", swing_act(&c, y, u)); /* before init */
    swing_init(&c);
    swing_controller copy = c;
    for (int k = 0; k < 9; k++) {
        int status = swing_act(&c, k == 2 ? 0 : y, u);
        printf("%d %.17g\\n", status, u[0]);
        y[0] = 0.02 * k;
        y[1] = 0.1;
    }
    printf("%d %d\\n", swing_plan(&copy), swing_plan(&c));
    y[0] = INFINITY;
    printf("%d\\n", swing_observe(&copy, y));
    printf("%d %d %d\\n", swing_use(&copy, 99), swing_set_bounds(&copy, low, bad), swing_set_reference(&copy, -1, r));
    printf("%d %d\\n", swing_set_belief(&copy, m, P), swing_set_bounds(&copy, low, high));
    printf("%d %d\\n", swing_set_reference(&copy, 8, r), swing_use(&copy, SWING_CE));
    y[0] = 0.0;
    int status = swing_act(&copy, y, u);
    printf("%d %d\\n", status, u[0] <= 1.0 && u[0] >= -2.0);
    printf("%d\\n", swing_plan(&copy));
    printf("%d\\n", SWING_CONTROLLER_BYTES == (int)sizeof(swing_controller));
    return 0;
}
"""


def test_it_runs_clean_under_the_sanitizers(exported: Exported, problem: Problem, tmp_path: Path) -> None:
    """The statuses of what makes no sense, the same inputs as ever, and nothing that C leaves undefined."""
    for name, text in {**exported.files, "main.c": MAIN}.items():
        (tmp_path / name).write_text(text)
    flags = ["-std=c99", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    try:
        compile_files([tmp_path / "main.c", tmp_path / "swing.c"], flags, tmp_path / "main")
    except SymdualError as problem_:
        pytest.skip(f"the sanitizers cannot be linked: {problem_}")
    done = subprocess.run([str(tmp_path / "main")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0] == "-5"
    twin = controller(problem, "dual")
    for k in range(8):
        y = [np.nan, np.nan] if k in (0, 2) else [0.02 * (k - 1), 0.1]
        status, u = lines[1 + k].split()
        assert int(status) >= 0 and close(float(u), twin.act(y)[0], 1e-6)
    assert lines[9].split()[0] == "-1"  # the episode has ended
    assert lines[10] == "-6 -6" or lines[10].startswith("-6 ")
    assert lines[11:] == ["-2", "-6 -6 -6", "0 0", "0 0", "0 1", "8", "1", ""]


def test_single_precision_is_close_where_nothing_is_lost(problem: Problem, tmp_path: Path) -> None:
    single = export(problem, Settings("low", "float", controllers=("ce",)))
    assert not single.warnings and single.bytes < export(problem, Settings("low", controllers=("ce",))).bytes
    got = drive(build(single, tmp_path), single, 0, YS)
    twin = controller(problem, "ce")
    expected = []
    for y in YS:
        twin.act(y)
        expected.append(twin.belief.mean)
    assert close(got[:, 1:-1], expected, 1e-2)
    assert not re.search(r"[^\w.][0-9]+\.[0-9]+(e[-+]?[0-9]+)?[^\w.]", single.files["low.c"])  # no double among floats


def test_what_single_precision_would_lose_is_said_in_numbers(problem: Problem) -> None:
    hot = problem.changed(reference=[4e6, 0.0])
    (sentence,) = (text for text in losses(hot) if text.startswith("angle"))
    assert "size 4e+06" in sentence and "--real double" in sentence
    far = problem.changed(start=[3e5, 0.0])  # measured with a deviation of 0.03
    assert any(text.startswith("angle is measured with a deviation of 0.0316") for text in losses(far))
    assert not any("measured" in text for text in losses(problem.changed(start=[1e5, 0.0])))
    vast = problem.changed(state_cost=np.diag([1e40, 1.0]))
    assert any("the state cost goes from" in text for text in losses(vast))


@pytest.mark.parametrize(
    "prefix",
    [
        "int",
        "2swing",
        "a b",
        "",
        "sin",
        "x" * 40,
        "naïve",
        "class",
        "limits",
        "fp",
        "a_",
        "a__b",
        "size",
        "int8",
        "dbl",
    ],
)
def test_a_prefix_that_is_no_name_is_refused(prefix: str, problem: Problem) -> None:
    with pytest.raises(SymdualError, match="the prefix"):
        export(problem, Settings(prefix))


@pytest.mark.parametrize("prefix", ["arm", "linux", "unix"])
def test_a_prefix_may_be_what_a_compiler_calls_its_machine(prefix: str) -> None:
    """Such macros replace the whole word only; variables of that name are spelled otherwise."""
    assert checked_prefix(prefix) == prefix and safe(prefix) != prefix


def test_unknown_controllers_are_refused(problem: Problem) -> None:
    with pytest.raises(SymdualError, match=r'"oracle" cannot be exported.*possible: ce, cautious'):
        export(problem, Settings("swing", controllers=("oracle",)))


def test_nothing_is_left_to_the_target(exported: Exported) -> None:
    """No allocation, no input or output, no length at run time, and every symbol with the prefix."""
    text = exported.files["swing.c"]
    assert not re.search(r"\b(malloc|calloc|free\(|printf|alloca|goto)\b", text)
    assert re.findall(r"#include (.*)", text + exported.files["swing.h"]) == ['"swing.h"', "<math.h>", "<stdint.h>"]
    defined = re.findall(r"^(?:static )?(?:inline )?[\w ]+?\*?(\w+)\([^;]*\)\n{", text, re.M)
    assert len(defined) > 80 and all(name.startswith("swing_") for name in defined)
    macros = re.findall(r"^#define (\w+)", exported.files["swing.h"] + text, re.M)
    assert all(name.startswith("SWING_") for name in macros)


def test_no_constant_has_the_name_of_another_macro(exported: Exported) -> None:
    """A package has a constant SHORT, one by stages another H: neither may be a macro of the header or the C file."""
    templates = "".join((ROOT / "templates" / "c" / f"controller.{end}.jinja").read_text() for end in ("h", "c"))
    own = set(re.findall(r"#define \{\{ P \}\}_(\w+)", templates)) | {one.name.upper() for one in exported.choices}
    own |= {name.removeprefix("SWING_") for name in re.findall(r"#define (\w+)", exported.files["swing.c"])}
    assert own - {"AT_"} == set(TAKEN) - {"INFINITY", "NAN"}
    assert not any(name.startswith("AT_") for name in re.findall(r"#define SWING_(\w+)", exported.files["swing.c"]))
    for place, name in enumerate(("angle", "rate", "inverse_length", "friction")):
        assert f"#define SWING_AT_{name} {place}\n" in exported.files["swing.h"]
    macros = re.findall(r"#define (\w+)", exported.files["swing.h"])
    assert len(macros) == len(set(macros))


def test_structs_say_what_they_are(exported: Exported) -> None:
    found = re.findall(r"/\* (.*) \*/\ntypedef struct {\n(?:.*\n)*?} swing_(\w+);", exported.files["swing.h"])
    assert {"a belief, a covariance along the plan, or a cost-to-go": "gaussian"}.items() <= dict(found).items()
    assert max(len(line) for line in exported.files["swing.h"].splitlines()) < 200


def test_the_same_bytes_under_any_hash_seed(
    fresh_python: Callable[..., Any], tmp_path: Path, exported: Exported, package_of: Callable[[str], Path]
) -> None:
    code = f"""
    import hashlib, symdual
    from symdual.export.controller import Settings, export
    problem = symdual.problem(symdual.load({str(package_of("pendulum"))!r}, backend="c")).changed(horizon=8)
    text = "".join(export(problem, Settings("swing")).files.values())
    print(hashlib.sha256(text.encode()).hexdigest())
    """
    import hashlib

    own = hashlib.sha256("".join(exported.files.values()).encode()).hexdigest()
    assert fresh_python(code, tmp_path, PYTHONHASHSEED="123").stdout.strip() == own


def test_a_guarded_dual_is_exported(problem: Problem, tmp_path: Path) -> None:
    """Where `dual` counts uncertainty far too much: the same inputs are rejected, in favour of the same ones."""
    reckless, options = replace(problem, dual_weight=50.0), Options(guard=True, samples=16)
    found = export(reckless, Settings("swing", controllers=("ce", "dual"), options=options))
    assert "swing_set_samples" in found.files["swing.h"] and "swing_set_guard" not in found.files["swing.h"]
    assert "swing_set_samples" not in export(problem, Settings("swing", controllers=("dual",))).files["swing.h"]
    native, (ce, dual) = build(found, tmp_path), found.choices
    for one in (ce, dual):
        twin, state, expected, rejected = controller(reckless, one.name, options=options), None, [], 0
        for y in YS:
            state, u, info = twin.step(twin.init() if state is None else state, y)
            rejected += info.guard is not None and info.guard.rejected
            expected.append([*u, *state.belief.mean, 0.0])
        assert (rejected > 0) == (one.name == "dual")
        assert close(drive(native, found, one.number, YS), expected, 1e-5), one.name
