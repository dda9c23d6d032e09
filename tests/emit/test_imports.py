"""Unused imports of a rendered module are left out, and what absent modules would do; nothing else changes."""

from __future__ import annotations

from symdual.emit.imports import without_absent_modules, without_unused


def test_unused_names_go_and_used_ones_stay() -> None:
    source = (
        '"""M."""\n\nimport math\n\nimport numpy as np\nfrom numba import njit\n\n'
        "from .a import (\n    one,\n    two,\n)\n\n\nx = np.zeros(two)\n"
    )
    expected = '"""M."""\n\n\nimport numpy as np\n\nfrom .a import two\n\n\nx = np.zeros(two)\n'
    assert without_unused(source) == expected


def test_words_of_texts_and_fields_are_no_uses_and_formatted_names_are() -> None:
    source = (
        'from .a import NAME, plan, quoted, said\n\n\ndef f(desk):\n    """A plan, said."""\n    # plan\n'
        "    work = desk.space[0].work\n    room = np.zeros((3, 2))\n    left = desk.left\n"
        '    desk.plan[0] = left\n    return "quoted", f"{NAME}: a text", f"another"\n'
    )
    result = without_unused(source)
    assert result.startswith("from .a import NAME\n")
    assert "work" not in result
    assert "room" not in result
    assert "    left = desk.left\n" in result


def test_a_module_that_uses_everything_keeps_its_text() -> None:
    source = "import math\nfrom . import a as b\n\nx = math.pi * b.c\n"
    assert without_unused(source) == source


def test_long_statements_stand_one_name_a_line() -> None:
    names = [f"name_number_{i}" for i in range(12)]
    source = f"from .place import {', '.join(names)}, idle\n\nx = ({', '.join(names)})\n"
    result = without_unused(source)
    assert "idle" not in result
    assert result.startswith("from .place import (\n    name_number_0,\n")


def test_what_absent_modules_would_do_goes_with_their_imports() -> None:
    source = (
        "from .here import stay\nfrom .gone import act, poison\n\n\ndef f(k, total):\n    act(k)\n"
        "    total += poison(k)\n    total += stay(k)\n    return total\n"
    )
    expected = "from .here import stay\n\n\ndef f(k, total):\n    total += stay(k)\n    return total\n"
    assert without_absent_modules(source, {"here"}) == expected
    assert without_absent_modules(source, {"here", "gone"}) == source


def test_results_of_absent_modules_are_not_lost_silently() -> None:
    """A value that is needed stays, so that the linter sees a name without an import."""
    kept = "    value(k) or fail(k)\n    return 2.0 * value(k)\n"
    source = f"from .gone import value\n\n\ndef f(k):\n{kept}"
    assert kept in without_absent_modules(source, set())
