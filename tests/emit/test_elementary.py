"""The emitted sine, cosine and exponential against 50-digit arithmetic, and at the edges of the range."""

from __future__ import annotations

import importlib.util
import math
import platform
from pathlib import Path
from types import ModuleType

import jinja2
import mpmath
import numpy as np
import pytest

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
LONG = 4000
SMALL = (1, 3, 4)
COUNTS = (*SMALL, 16, 24, 40, 104, LONG)
SINCOS_LIMIT = 1e4
LARGEST_ULPS = 2.0
ORDERED = "ORDERED = {'fastmath': {'contract'}, 'error_model': 'numpy', '_nrt': False}"  # as in `options`
OUTSIDE = np.array([1.0001e4, -2e5, 1e9, -1e22, 1.7e308, np.nextafter(SINCOS_LIMIT, np.inf)])
SPECIAL = np.array([0.0, -0.0, 5e-324, -5e-324, np.inf, -np.inf, np.nan, 1.0])


def render(
    sincos_counts: tuple[int, ...], exp_counts: tuple[int, ...], helpers: tuple[str, ...] = ("_nearest", "_sincos")
) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.get_template("kernels/elementary.py.jinja")
    return template.render(sincos_counts=sincos_counts, exp_counts=exp_counts, helpers=helpers)


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("elementary") / "elementary_functions.py"
    head = f"import math\nimport numpy as np\nfrom numba import njit\n{ORDERED}\nEXACT = ORDERED\n\n\n"
    path.write_text(head + render(COUNTS, COUNTS))
    spec = importlib.util.spec_from_file_location("elementary_functions", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sincos(emitted: ModuleType, arguments: np.ndarray, count: int = LONG) -> tuple[np.ndarray, np.ndarray]:
    work = np.zeros(3 * count)
    work[: arguments.size] = arguments
    getattr(emitted, f"_sincos_{count}")(work, 0, count, 2 * count)
    return work[count : count + arguments.size], work[2 * count : 2 * count + arguments.size]


def one_by_one(emitted: ModuleType, arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array([emitted._sincos(float(a)) for a in arguments])
    return pairs[:, 0], pairs[:, 1]


def exponential(emitted: ModuleType, arguments: np.ndarray, count: int = LONG) -> np.ndarray:
    work = np.zeros(2 * count)
    work[: arguments.size] = arguments
    getattr(emitted, f"_exp_{count}")(work, 0, count)
    return work[count : count + arguments.size]


def worst_ulps(results: np.ndarray, function: str, arguments: np.ndarray) -> float:
    """Largest error in units in the last place of the exact value, from 50 digits and more."""
    worst = mpmath.mpf(0)
    with mpmath.workdps(60):
        for result, argument in zip(results, arguments, strict=True):
            exact = getattr(mpmath, function)(mpmath.mpf(float(argument)))
            unit = mpmath.mpf(float(np.spacing(abs(float(exact)))))
            worst = max(worst, abs(mpmath.mpf(float(result)) - exact) / unit)
    return float(worst)


def neighbours(values: list[float]) -> np.ndarray:
    """Each value with the two doubles below and above it."""
    centre = np.array(values)
    above, below = np.nextafter(centre, np.inf), np.nextafter(centre, -np.inf)
    return np.concatenate([centre, above, below, np.nextafter(above, np.inf), np.nextafter(below, -np.inf)])


def multiples_of_quarter_turn(step: str) -> np.ndarray:
    """Doubles around k pi/2 (step "1") or around the borders of the reduction (step "0.5")."""
    rng = np.random.default_rng(5)
    turns = np.unique(np.concatenate([np.arange(-20, 20), rng.integers(-6360, 6360, 600)]))
    with mpmath.workdps(60):
        offset = mpmath.mpf(0) if step == "1" else mpmath.mpf("0.5")
        return neighbours([float((int(k) + offset) * mpmath.pi / 2) for k in turns])


SINCOS_ARGUMENTS = {
    "one turn": np.random.default_rng(0).uniform(-7.0, 7.0, 4 * LONG),
    "whole range": np.random.default_rng(1).uniform(-SINCOS_LIMIT, SINCOS_LIMIT, 4 * LONG),
    "end of the range": np.random.default_rng(2).uniform(0.99 * SINCOS_LIMIT, SINCOS_LIMIT, LONG),
    "tiny": 10.0 ** np.random.default_rng(3).uniform(-320.0, 0.0, LONG),
    "multiples of pi/2": multiples_of_quarter_turn("1"),
    "borders of the reduction": multiples_of_quarter_turn("0.5"),
}


@pytest.mark.parametrize("name", SINCOS_ARGUMENTS)
def test_sine_and_cosine_within_two_units_in_the_last_place(emitted: ModuleType, name: str) -> None:
    arguments = SINCOS_ARGUMENTS[name]
    for block in np.array_split(arguments, math.ceil(arguments.size / LONG)):
        sines, cosines = sincos(emitted, block)
        assert worst_ulps(sines, "sin", block) <= LARGEST_ULPS
        assert worst_ulps(cosines, "cos", block) <= LARGEST_ULPS


def test_sine_and_cosine_beyond_the_range_are_those_of_the_library(emitted: ModuleType) -> None:
    inside = np.linspace(-3.0, 3.0, 16)
    alone = sincos(emitted, inside, 24)
    sines, cosines = sincos(emitted, np.concatenate([inside, OUTSIDE]), 24)
    assert sines[16:].tolist() == [math.sin(a) for a in OUTSIDE]
    assert cosines[16:].tolist() == [math.cos(a) for a in OUTSIDE]
    assert sines[:16].tobytes() == alone[0].tobytes()
    assert cosines[:16].tobytes() == alone[1].tobytes()


def test_sine_and_cosine_of_zeros_infinities_and_nan(emitted: ModuleType) -> None:
    sines, cosines = sincos(emitted, SPECIAL, 16)
    assert sines[:4].tolist() == [0.0, -0.0, 5e-324, -5e-324]
    assert np.signbit(sines[:4]).tolist() == [False, True, False, True]
    assert cosines[:4].tolist() == [1.0] * 4
    assert np.isnan(sines[4:7]).all() and np.isnan(cosines[4:7]).all()
    assert (sines[7], cosines[7]) == pytest.approx((math.sin(1.0), math.cos(1.0)), rel=1e-15)


EXP_ARGUMENTS = {
    "around one": np.random.default_rng(0).uniform(-2.0, 2.0, 4 * LONG),
    "normal results": np.random.default_rng(1).uniform(-708.0, 709.78, 4 * LONG),
    "subnormal results": np.random.default_rng(2).uniform(-745.2, -708.0, LONG),
    "tiny": 10.0 ** np.random.default_rng(3).uniform(-320.0, 0.0, LONG),
    "borders of the reduction": neighbours([(k + 0.5) * math.log(2.0) for k in range(-1074, 1023, 7)]),
    "last finite": neighbours([709.782712893384]),
}


@pytest.mark.parametrize("name", EXP_ARGUMENTS)
def test_exponential_within_two_units_in_the_last_place(emitted: ModuleType, name: str) -> None:
    arguments = EXP_ARGUMENTS[name]
    for block in np.array_split(arguments, math.ceil(arguments.size / LONG)):
        results = exponential(emitted, block)
        finite = np.isfinite(results)
        assert finite.all() or name == "last finite"
        assert worst_ulps(results[finite], "exp", block[finite]) <= LARGEST_ULPS


def test_exponential_overflows_underflows_and_keeps_nan(emitted: ModuleType) -> None:
    special = np.array([709.7827128933841, 1e4, np.inf, -745.14, -1e4, -np.inf, 0.0, -0.0, 5e-324, np.nan])
    results = exponential(emitted, special, 16)
    assert results[:3].tolist() == [np.inf] * 3
    assert results[3:6].tolist() == [0.0] * 3
    assert not np.signbit(results[3:6]).any()
    assert results[6:9].tolist() == [1.0] * 3
    assert np.isnan(results[9])
    assert exponential(emitted, np.array([709.782712893384]), 16)[0] < np.inf
    assert exponential(emitted, np.array([-745.13]), 16)[0] == 5e-324


def test_exponential_in_place(emitted: ModuleType) -> None:
    arguments = np.linspace(-30.0, 30.0, 40)
    work = arguments.copy()
    emitted._exp_40(work, 0, 0)
    assert work.tobytes() == exponential(emitted, arguments, 40).tobytes()


@pytest.mark.parametrize("count", COUNTS[:-1])
def test_equal_arguments_give_equal_bits_at_every_position_and_length(emitted: ModuleType, count: int) -> None:
    arguments = np.random.default_rng(9).uniform(-40.0, 40.0, LONG)
    expected = (*sincos(emitted, arguments), exponential(emitted, arguments))
    for start in range(0, LONG - count, 97):
        block = arguments[start : start + count]
        found = (*sincos(emitted, block, count), exponential(emitted, block, count))
        for whole, part in zip(expected, found, strict=True):
            assert part.tobytes() == whole[start : start + count].tobytes()


def test_one_angle_gives_the_bits_of_a_block(emitted: ModuleType) -> None:
    chosen = [*(block[:300] for block in SINCOS_ARGUMENTS.values()), SPECIAL, OUTSIDE]
    arguments = np.concatenate(chosen)[:LONG]
    for alone, together in zip(one_by_one(emitted, arguments), sincos(emitted, arguments), strict=True):
        finite = np.isfinite(together)
        assert alone[finite].tobytes() == together[finite].tobytes()
        assert np.isnan(alone[~finite]).all()


def test_nothing_outside_the_named_ranges_is_written(emitted: ModuleType) -> None:
    work = np.full(200, 7.0)
    emitted._sincos_16(work, 20, 60, 100)
    emitted._exp_16(work, 20, 140)
    written = np.flatnonzero(work != 7.0)
    expected = np.concatenate([np.arange(start, start + 16) for start in (60, 100, 140)])
    assert written.tolist() == expected.tolist()


def test_uncompiled_functions_meet_the_same_bound(emitted: ModuleType) -> None:
    arguments = np.random.default_rng(4).uniform(-50.0, 50.0, 104)
    work = np.zeros(4 * 104)
    work[:104] = arguments
    emitted._sincos_104.py_func(work, 0, 104, 208)
    emitted._exp_104.py_func(work, 0, 312)
    for start, function in ((104, "sin"), (208, "cos"), (312, "exp")):
        assert worst_ulps(work[start : start + 104], function, arguments) <= LARGEST_ULPS


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads x86 assembly")
@pytest.mark.parametrize("function", ["_sincos_16", "_sincos_104", "_exp_16", "_exp_104"])
def test_compiled_code_works_on_packed_numbers(emitted: ModuleType, function: str) -> None:
    compiled = getattr(emitted, function)
    offsets = (0, 200, 400)[: 3 if "sincos" in function else 2]
    compiled(np.zeros(600), *offsets)
    (assembly,) = compiled.inspect_asm().values()
    packed = [line for line in assembly.splitlines() if "mulpd" in line or ("madd" in line and "pd\t" in line)]
    assert len(packed) >= 10


def test_nothing_is_emitted_for_models_without_these_functions() -> None:
    assert render((), (), ()).strip() == ""


@pytest.mark.parametrize("count", SMALL)
def test_a_few_numbers_are_computed_as_well(emitted: ModuleType, count: int) -> None:
    arguments = np.linspace(-20.0, 20.0, 12 * count)
    for block in np.split(arguments, 12):
        sines, cosines = sincos(emitted, block, count)
        assert worst_ulps(sines, "sin", block) <= LARGEST_ULPS
        assert worst_ulps(cosines, "cos", block) <= LARGEST_ULPS
        assert worst_ulps(exponential(emitted, block, count), "exp", block) <= LARGEST_ULPS
