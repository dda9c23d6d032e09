"""What the translator makes of Python: the same numbers in C, or a sentence with file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest
import sympy as sp

from symdual import Model
from symdual.backends.c import source
from symdual.backends.c.backend import library_text
from symdual.backends.c.kinds import BOOL, INT, REAL, Array
from symdual.backends.c.names import safe, snake
from symdual.backends.c.program import Program
from symdual.backends.c.translator import Translator
from symdual.backends.c.values import Untranslatable
from symdual.common.package_folders import modules_of
from symdual.derive.derivation import derive
from symdual.emit.package import package
from symdual.entries.types import shaped
from symdual.spec.objective import Objective
from symdual.spec.specification import specified

from .conftest import close, files_of

NUMBERS = """
def whole_numbers(a, b):
    return (a // b) * 1000 + a % b


def mixed(a, x):
    y = 0
    if a > 2:
        y = x
    return y + a / 4


def branches(x, y):
    inner = x if x > y else -y
    return min(inner, y), max(x, y), not (x < y and y < 1.0), (x > 0.0 or y > 0.0) and x != y


def powers(x):
    return x**2, (x + 1.0) ** 3, x**7, abs(x) ** 0.5, 0.5 ** (3), math.hypot(x, 1.0)


def chosen(a):
    share = (1.0, 2.0, 0.5, -0.5)[a]
    return share * (10, 20, 30, 40)[a]


def precedence(x, y):
    return x - (y - 1.0) - (x - y), x / (y * 2.0) / (x / y), -(x + y) * -y, (x - y) * (x + y)
"""


def reals(*sizes: str) -> Any:
    """An array as it is declared."""
    return Annotated[np.ndarray, shaped(*sizes)]


def test_sums_and_products_may_be_long_and_nests_deep(compiled_probe: Callable[..., tuple[Any, Any]]) -> None:
    total = " ".join(f"{'+-'[n % 2]} x * {n}.0" for n in range(900))
    product = " * ".join(["y", *("1.001 / x * x" for _ in range(300))])
    nest = "math.sin(0.5 + " * 40 + "x" + ")" * 40
    text = f"def added(x, y):\n    return y {total}\n\n\ndef multiplied(x, y):\n    return {product}\n\n\n"
    python, compiled = compiled_probe(f"{text}def nested(x, y):\n    return y + {nest}\n", {"x": float, "y": float})
    for name in ("added", "multiplied", "nested"):
        assert close(getattr(compiled, name)(0.7, 1.3), getattr(python, name)(0.7, 1.3), 1e-12)


def test_arithmetic_is_that_of_python(compiled_probe: Callable[..., tuple[Any, Any]]) -> None:
    meanings = {"a": int, "b": int, "x": float, "y": float}
    python, compiled = compiled_probe(NUMBERS, meanings)
    for a in (-7, -1, 0, 3, 8):
        for b in (-3, 2, 5):
            assert compiled.whole_numbers(a, b) == python.whole_numbers(a, b)
    for x in (-1.75, 0.0, 0.3, 2.5):
        assert [compiled.mixed(a, x) for a in (1, 5)] == [python.mixed(a, x) for a in (1, 5)]
        assert close(compiled.powers(x), python.powers(x), 1e-15)
        for y in (-0.5, 0.7, 3.0):
            assert compiled.branches(x, y) == python.branches(x, y)
            assert close(compiled.precedence(x or 0.1, y), python.precedence(x or 0.1, y), 1e-15)
    assert [compiled.chosen(a) for a in range(4)] == [python.chosen(a) for a in range(4)]


def test_minimum_and_maximum_treat_nan_as_python_does(compiled_probe: Callable[..., tuple[Any, Any]]) -> None:
    text = "def extremes(x, y):\n    return min(x, y), max(x, y), math.isnan(x), math.isfinite(x - y)\n"
    python, compiled = compiled_probe(text, {"x": float, "y": float})
    for x, y in ((math.nan, 1.0), (1.0, math.nan), (-math.inf, 2.0), (-0.0, 0.0)):
        assert repr(compiled.extremes(x, y)) == repr(python.extremes(x, y))


LOOPS = """
def shrinking(v):
    count = int(v[0])
    total = 0.0
    for i in range(int(v[0])):
        v[0] = 1.0
        total += i
    for i in range(count):
        count = 2
        total += 10.0 * i
    return total


def last_index(v, n):
    found = -1
    for i in range(n):
        if v[i] > 2.0:
            found = i
            break
    for i in range(n):
        v[i] += 1.0
    return found * 10 + i


def bound_by_choice(n):
    total = 0
    for i in range(3 if n - 1 <= 4 else 1):
        total += i + 1
    return total


def carried(v, n):
    total = 0.0
    for i in range(n):
        if v[i] > 0.0:
            before = v[i]
        if i > 0:
            total += before
    return total


def sorted_in_place(v, n):
    for i in range(1, n):
        j = i
        while j > 0 and v[j] < v[j - 1]:
            v[j], v[j - 1] = v[j - 1], v[j]
            j -= 1
    for n in (0, 2):
        v[n] *= 2.0


def parts(M, n):
    row = M[n]
    tail = M[n, 1:]
    rows = M[1:]
    for k in range(2):
        tail[k] += row[0]
        rows[0, k] -= 1.0
    M[0, 0] = rows[0, 0] + tail[1]
"""


def test_loops_and_views_are_those_of_python(compiled_probe: Callable[..., tuple[Any, Any]]) -> None:
    python, compiled = compiled_probe(LOOPS, {"v": reals("4"), "n": int, "M": reals("3", "3")})
    for name, arguments in (
        ("shrinking", ([3.0, 0.0, 0.0, 0.0],)),
        ("last_index", ([1.0, 2.0, 3.0, 4.0], 4)),
        ("carried", ([1.0, -2.0, 3.0, -4.0], 4)),
        ("sorted_in_place", ([3.0, -2.0, 5.0, 0.5], 4)),
        ("parts", (np.arange(9.0).reshape(3, 3).tolist(), 1)),
    ):
        twice = [[np.array(a, dtype=float) if isinstance(a, list) else a for a in arguments] for _ in range(2)]
        results = [getattr(module, name)(*given) for module, given in zip((python, compiled), twice, strict=True)]
        assert results[0] == results[1], name
        np.testing.assert_array_equal(twice[0][0], twice[1][0], err_msg=name)
    assert [compiled.bound_by_choice(n) for n in (3, 9)] == [6, 1]


def changed(module: str, before: str, after: str) -> Program:
    """The toy package with one line changed, which may call numpy."""
    files = files_of("toy")
    file = modules_of(files)[module]
    text = files[file].decode()
    assert before in text
    text = text.replace(before, after, 1)
    text = text.replace("from numba import njit", "import numpy as np\nfrom numba import njit", 1)
    return Program({**files, file: text.encode()})


@pytest.mark.parametrize(
    ("after", "sentence"),
    [
        ("    share = [ROUNDING][0]", "the translator does not know List"),
        ("    share = math.frexp(ROUNDING)[0]", "the translator does not know the function math.frexp"),
        ("    share = np.zeros(int(settings.order))[0]", "the translator does not know"),
        ("    share = belief.xx[5, 0]", "lies outside of its array"),
        ("    share = belief.nothing", "there is no field nothing"),
        ("    with open('x'): share = 1.0", "the translator does not know the statement With"),
        ("    share = unheard_of", "unheard_of is not known"),
        ("    share = ROUNDING\n    share = belief.z", "share has values of different types"),
        ("    share = inflate(belief, settings, scratch)", "inflate calls itself"),
    ],
)
def test_what_is_not_known_is_named_with_file_and_line(after: str, sentence: str) -> None:
    program = changed("filter", "    share = ROUNDING", after)
    line = program.text("filter").split("\n").index(after.split("\n")[0]) + 1
    with pytest.raises(Untranslatable, match=r"toy/filters/filter\.py:\d+: ") as caught:
        source.translated(program, "toy", "toy")
    assert sentence in str(caught.value)
    named = int(str(caught.value).split(":")[1])
    assert named in (line, line + 1) or "calls itself" in sentence


PROBE = """
import math
import numpy as np

TABLE = np.array([1.0, 2.0])


def bump(v):
    v[0] += 1.0
    return v[0]


def two(x):
    return x, x


def probe(a, b, x, y, v, n, M, flag):
    {}
    return x
"""
KINDS = (INT, INT, REAL, REAL, Array(REAL, (4,)), Array(INT, (3,)), Array(REAL, (3, 3)), BOOL)  # of its arguments


def probed(statement: str) -> str:
    """The C of a function with one statement, put beside the modules of the toy package."""
    program = Program({**files_of("toy"), "probe.py": PROBE.format(statement).encode()})
    (function,) = (one for one in program.functions("probe") if one.name == "probe")
    work = Translator(program, "toy", "p", "double")
    return work.publish(function, KINDS).text


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        # what C would compute otherwise, without a word
        ("x = a or b", "is one of its numbers in Python"),
        ("x = v[-2:][0]", "counts from its end"),
        ("x = v[:-1][0]", "counts from its end"),
        ("x = v[:9][0]", "reaches beyond its array"),
        ("n[0] /= 2", "does not know n[0] /= 2"),
        ("x = v[0] + bump(v)", "before or after the call"),
        ("x = max(v[0], bump(v))", "before or after the call"),
        ("v[0] += bump(v)", "before or after the call"),
        ("x = bump(v) - bump(v)", "before or after the call"),
        ("v[n[0]] = bump(v)", "before or after the call"),
        ("flag = bump(v) > 1.0 and False", "contains a call that writes"),
        ("a = a + 3000000000", "does not fit into 32 bits"),
        ("a = 100000 * 100000", "does not fit into 32 bits"),
        ("if a > 1:\n        return", "does not return a number on every way"),
        # what a C compiler would refuse, without saying where in Python it comes from
        ("TABLE[a] = 1.0", "TABLE[a] is no variable of the function"),
        ("TABLE[0] += 1.0", "TABLE[0] is no variable of the function"),
        ("x = math.log(x, 2.0)", "with 2 arguments"),
        ("x = math.atan2(x)", "with 1 arguments"),
        ("x = abs()", "with 0 arguments"),
        # and what ended in an exception
        ("x = (1.0, 2.0)[5]", "is not an entry of its table"),
        ("x = TABLE[7]", "is not an entry of its table"),
        ("x = np.float64(x).view(np.int64) > 3", "compares values of different types"),
    ],
)
def test_what_c_would_take_differently_is_refused(statement: str, sentence: str) -> None:
    line = PROBE.split("\n").index("    {}") + 1
    with pytest.raises(Untranslatable, match=rf"toy/probe\.py:({line}|{line + 1}|{line + 2}): ") as caught:
        probed(statement)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    [
        "x = bump(v)",
        "x = max(x, bump(v)) - 2.0 * y",
        "v[a] = bump(v)",
        "flag = flag and v[1] > 0.0 and bump(v) > 1.0",
        "x = bump(v) if flag else v[0]",
        "if a and b:\n        x = 1.0",
        "x = math.log(0.0)",
        "x = v[1:3][0]",
    ],
)
def test_what_c_takes_alike_is_not_refused(statement: str) -> None:
    assert "x" in probed(statement)


EFFECTS = """
def bump(v):
    v[0] += 1.0
    return v[0]


def forgotten(v):
    status = 2.0 * bump(v) + 1.0
    total = 0.0
    total += bump(v)
    return v[0]


def truths(n):
    return bool(n) == True, bool(n) + 1, bool(n) and n > 1


def named(v, n):
    v_0 = 3
    return v_0 + v[0, 0] + v.shape[0] * n
"""


def test_nothing_is_lost_with_a_number_that_nobody_reads(compiled_probe: Callable[..., tuple[Any, Any]]) -> None:
    python, compiled = compiled_probe(EFFECTS.partition("def named")[0], {"v": reals("2"), "n": int})
    assert [module.forgotten(np.zeros(2)) for module in (python, compiled)] == [2.0, 2.0]
    assert [compiled.truths(n) for n in (0, 1, 3)] == [python.truths(n) for n in (0, 1, 3)]


def test_the_length_of_an_array_keeps_its_name(compiled_probe: Callable[..., tuple[Any, Any]]) -> None:
    text = "def named" + EFFECTS.partition("def named")[2]
    python, compiled = compiled_probe(text, {"v": reals(":", "2"), "n": int})
    assert compiled.named(np.ones((5, 2)), 10) == python.named(np.ones((5, 2)), 10) == 54.0


def test_an_argument_that_nobody_knows_is_named() -> None:
    program = changed(
        "calls", "def begin(k, end, belief, workspace):", "def begin(k, end, belief, workspace, novelty):"
    )
    with pytest.raises(Untranslatable, match=r"toy/calls\.py:\d+: .*argument novelty of begin"):
        source.translated(program, "toy", "toy")


@pytest.mark.parametrize("prefix", ["inner", "a"])
def test_a_variable_that_begins_like_the_prefix_has_another_name(prefix: str) -> None:
    """A search keeps an `inner_cost`; a translator that only appends never ends."""
    text = library_text(source.translated(Program(files_of("toy")), "toy", prefix))
    assert ("a_inner_cost" if prefix == "inner" else "inner_cost") in text
    assert not re.search(rf"real_t {prefix}_\w+ =", text)


def test_constraints_without_any_unknown_are_translated() -> None:
    """Everything about parameters has no entries there."""
    x, u = sp.symbols("x u")
    model = Model([x], [u], [0.9 * x + u], process_noise=0.1, name="ce")
    program = Program(package(derive(specified(model, Objective(constraints=(x - 1,))))).files)
    assert "store_gains" in library_text(source.translated(program, "ce", "p"))


@pytest.mark.parametrize(
    "name", ["greenhouse", "iterated", "known", "mixing", "rooted_mixing", "rough", "squared", "staged"]
)
def test_every_form_of_package_is_translated(name: str) -> None:
    work = source.translated(Program(files_of(name)), name, "p", "float")
    text = source.definitions(work)
    assert "malloc" not in text and "printf" not in text
    assert {"p_filter_step", "p_decision_decide_at", "p_kernels_dynamics"} <= {unit.name for unit in work.units}


def test_names_that_mean_something_else_in_c_are_changed() -> None:
    assert all(safe(name) == f"{name}_" for name in ("sinf", "sqrtf", "expl", "M_PI", "FP_NAN", "INT32_MAX", "isless"))
    assert [safe(name) for name in ("double", "register", "gamma", "x", "_I", "θ")] == [
        "double_",
        "register_",
        "gamma_",
        "x",
        "v_I",
        "u3b8",
    ]


def test_classes_and_records_of_several_words_have_underscores() -> None:
    assert [snake(name) for name in ("Plant", "EpisodeLog", "STAGE_COST", "SETTINGS")] == [
        "plant",
        "episode_log",
        "stage_cost",
        "settings",
    ]
