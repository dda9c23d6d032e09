"""Ratios, growth and the merged minimum over processes, in numbers, JSON and tables."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from symdual.bench import to_json
from symdual.bench.lines import factor, lines, microseconds
from symdual.bench.results import Box, Found, Results, Start, fastest, fastest_boxes
from symdual.bench.tables import table
from symdual.bench.timing import Timing


def timing(size: int, kernel: str, row: str, variant: str, time: float, in_loop: bool = True) -> Timing:
    return Timing(size, kernel, row, variant, time, in_loop, 0.0)


TIMINGS = (
    timing(30, "dual_cost", "numpy", "dense", 2000.0, in_loop=False),
    timing(30, "dual_cost", "C limit", "r_dual", 12.0),
    timing(30, "dual_cost", "C limit", "r_ldual", 10.0),
    timing(30, "dual_cost", "symdual", "generated", 15.0),
    timing(100, "dual_cost", "symdual", "generated", 60.0),
    timing(100, "dual_cost", "C limit", "r_ldual", 50.0),
    timing(30, "ekf", "symdual", "generated", 0.9),
)


def results(timings: tuple[Timing, ...] = TIMINGS) -> Results:
    return Results(
        machine="a machine",
        versions={"symdual": "0"},
        sizes=(30, 100),
        rounds=3,
        processes=2,
        absent={"jax": "jax is not installed"},
        timings=timings,
        starts=(Start(30, "generate", 0.25),),
        boxes=(Box(30, "nominal", 123.0),),
    )


def test_ratios_refer_to_the_best_variant_of_the_limit() -> None:
    found = results()
    assert found.ratio(30, "dual_cost", "symdual") == pytest.approx(1.5)
    assert found.ratio(100, "dual_cost", "symdual") == pytest.approx(1.2)
    assert found.ratio(30, "dual_cost", "numpy") == pytest.approx(200.0)
    assert found.ratio(30, "dual_cost", "C limit") == 1.0
    assert found.ratio(30, "ekf", "symdual") is None
    assert found.ratio(100, "dual_cost", "numpy") is None


def test_ratios_refer_to_symdual_without_a_limit() -> None:
    found = results(tuple(t for t in TIMINGS if t.row != "C limit"))
    assert found.base() == "symdual"
    assert found.ratio(30, "dual_cost", "numpy") == pytest.approx(2000.0 / 15.0)


def test_growth_compares_with_the_size_before() -> None:
    found = results()
    assert found.growth("dual_cost", "symdual", 100) == pytest.approx(4.0)
    assert found.growth("dual_cost", "C limit", 100) == pytest.approx(5.0)
    assert found.growth("dual_cost", "symdual", 30) is None
    assert found.growth("dual_cost", "numpy", 100) is None


def test_the_limit_and_symdual_head_the_rows() -> None:
    assert results().rows() == ("C limit", "symdual", "numpy")


def test_processes_merge_by_the_minimum_of_each_variant() -> None:
    first = [timing(30, "ekf", "a", "x", 3.0), timing(30, "ekf", "a", "y", 1.0)]
    second = [
        timing(30, "ekf", "a", "x", 2.0),
        timing(30, "ekf", "a", "y", 4.0),
        timing(2, "ekf", "a", "x", 9.0),
    ]
    assert [(t.size, t.variant, t.microseconds) for t in fastest([*first, *second])] == [
        (30, "x", 2.0),
        (30, "y", 1.0),
        (2, "x", 9.0),
    ]
    assert fastest_boxes([Box(2, "search", 5.0), Box(2, "search", 4.0)]) == (Box(2, "search", 4.0),)


def test_json_holds_every_timing_with_its_ratio() -> None:
    content = json.loads(to_json(results()))
    assert content["ratios_to"] == "C limit"
    assert len(content["timings"]) == len(TIMINGS)
    ratios = {(t["size"], t["kernel"], t["row"], t["variant"]): t["ratio"] for t in content["timings"]}
    assert ratios[30, "dual_cost", "C limit", "r_dual"] == pytest.approx(1.2)
    assert ratios[30, "dual_cost", "symdual", "generated"] == pytest.approx(1.5)
    assert ratios[30, "ekf", "symdual", "generated"] is None
    assert content["starts"] == [{"size": 30, "what": "generate", "seconds": 0.25}]
    assert content["boxes"] == [{"size": 30, "box": "nominal", "microseconds": 123.0}]


def test_table_shows_times_ratios_growth_and_absent_peers() -> None:
    console = Console(file=io.StringIO(), width=160, color_system=None)
    console.print(table(results()))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    row = next(line for line in text.splitlines() if "symdual" in line)
    assert "15 us  1.50x" in row
    assert "2 ms  200x*" in text
    assert "60 us  4.00x" in text
    assert "123 us" in text
    assert "jax is not installed" in text


def test_lines_compare_the_best_variants_of_a_kernel_and_size() -> None:
    boxes = (Box(30, "predict: one step of the filter", 0.9), Box(30, "search: a whole decision", 1234.0))
    starts = (Start(30, "generate", 0.25),)
    assert lines(Found(TIMINGS[:5], boxes, starts)) == [
        "30 features, dual cost: C limit 10 us; symdual 15 us (1.50x); numpy 2 ms (200x)",
        "100 features, dual cost: symdual 60 us",
        "30 features, in a decision of symdual: one step of the filter 0.9 us; a whole decision 1.23 ms",
        "30 features, generate: 0.25 s",
    ]
    assert lines(Found()) == []


def test_numbers_in_readable_units() -> None:
    assert [microseconds(t) for t in (0.0123, 12.34, 1234.5, 2.5e6)] == [
        "0.0123 us",
        "12.3 us",
        "1.23 ms",
        "2.5 s",
    ]
    assert [factor(r) for r in (0.873, 1.5, 123.4)] == ["0.87x", "1.50x", "123x"]
