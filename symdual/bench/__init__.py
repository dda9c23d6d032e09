"""`symdual bench`: the same work on a generated package and on whatever peers are installed, side by side."""

from symdual.bench.contender import PEERS
from symdual.bench.lines import lines
from symdual.bench.results import Results, to_json
from symdual.bench.runner import SIZES, BenchmarkError, run
from symdual.bench.tables import table

__all__ = ["PEERS", "SIZES", "BenchmarkError", "Results", "lines", "run", "table", "to_json"]
