"""Tables of the terminal."""

from __future__ import annotations

import math
from io import StringIO

from rich.console import Console

from symdual.checks.kernels import BlockResult
from symdual.report.terminal import check_table


def test_derivatives_of_a_function_share_a_row_unless_something_is_wrong() -> None:
    shown = StringIO()
    results = [
        BlockResult("f", "50 digits", 2, 1e-17, True),
        BlockResult("f by x", "50 digits", 3, 2e-17, True),
        BlockResult("f by u", "50 digits", 4, 5e-17, True),
        BlockResult("f by u", "differences", 4, 6e-17, True),
        BlockResult("f by x, u", "50 digits", 5, 7e-17, True),
        BlockResult("f by b", "50 digits", 6, math.inf, False),
        BlockResult("f by c", "50 digits", 7, 8e-17, True, undefined=2),
    ]
    Console(file=shown, width=120).print(check_table(results))
    rows = [line.split("  ") for line in shown.getvalue().splitlines()[1:]]
    assert [[cell.strip() for cell in row if cell.strip()] for row in rows] == [
        ["f", "50 digits", "2", "1.0e-17", "0.0", "ok"],
        ["f, first derivatives", "50 digits", "7", "5.0e-17", "0.2", "ok"],
        ["f, first derivatives", "differences", "4", "6.0e-17", "0.3", "ok"],
        ["f, second derivatives", "50 digits", "5", "7.0e-17", "0.3", "ok"],
        ["f by b", "50 digits", "6", "inf", "inf", "MISS"],
        ["f by c", "50 digits", "7", "8.0e-17", "0.4", "ok", "not finite at 2 points"],
    ]
