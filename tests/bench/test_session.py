"""One process of the benchmark, with made-up participants; and what is said when a process breaks off."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from symdual.bench import runner, session, workload
from symdual.bench.contender import Implementation
from symdual.bench.peers import own_side
from symdual.bench.peers.own_loops import loops
from symdual.bench.results import Box, Found, Start
from symdual.bench.start import complaint
from symdual.bench.timing import Disagreement, Timing, verify
from symdual.bench.workload import Workload
from symdual.commands.bench import bench


class Made:
    """A participant that offers the reference's Jacobian, off by `error`."""

    def __init__(self, row: str, error: float = 0.0) -> None:
        self.row, self.error = row, error

    def missing(self) -> str | None:
        return None

    def implementations(self, work: Workload, build: Path) -> list[Implementation]:
        found = workload.jacobian(work, work.mean) + self.error
        return [Implementation("jacobian", self.row, "made up", lambda n: None, lambda: (found,), True)]


@pytest.fixture
def participants(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(**made: Made) -> None:
        monkeypatch.setattr(session, "contender", made.__getitem__)
        monkeypatch.setattr(session, "measure_boxes", lambda work, build, rounds: [Box(work.features, "nominal", 1.0)])

    return install


def test_all_sizes_and_participants_are_measured_with_progress(
    participants: Callable[..., None], tmp_path: Path
) -> None:
    participants(symdual=Made("symdual"), c=Made("C limit"))
    steps: list[tuple[str, float]] = []
    parts = list(session.measured([2, 4], ["c"], 1, tmp_path, lambda text, part: steps.append((text, part))))
    timings = [timing for part in parts for timing in part.timings]
    assert [(t.size, t.row) for t in timings] == [(2, "symdual"), (2, "C limit"), (4, "symdual"), (4, "C limit")]
    assert [box for part in parts for box in part.boxes] == [Box(2, "nominal", 1.0), Box(4, "nominal", 1.0)]
    fractions = [part for _, part in steps]
    assert fractions == sorted(fractions)
    assert fractions[0] == 0.0 and fractions[-1] < 1.0
    assert steps[1][0] == "2 features: preparing c"


def test_a_size_is_told_before_the_next_one_is_prepared(participants: Callable[..., None], tmp_path: Path) -> None:
    participants(symdual=Made("symdual"))
    steps: list[str] = []
    parts = session.measured([2, 4], [], 1, tmp_path, lambda text, part: steps.append(text))
    assert [t.size for t in next(parts).timings] == [2]
    assert next(parts).boxes == (Box(2, "nominal", 1.0),)
    assert not any(text.startswith("4 features") for text in steps)


def test_what_a_process_prints_is_what_the_runner_hears(
    participants: Callable[..., None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    participants(symdual=Made("symdual"), c=Made("C limit"))
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"sizes": [2, 4], "peers": ["c"], "rounds": 1, "build": str(tmp_path)}))
    session.main(request)
    printed = ["a library says hello", "0.5 is not for us", *capsys.readouterr().out.splitlines()]
    steps: list[tuple[str, float]] = []
    parts = list(runner.heard(printed, lambda text, part: steps.append((text, part))))
    assert [(t.size, t.row) for part in parts for t in part.timings] == [
        (2, "symdual"),
        (2, "C limit"),
        (4, "symdual"),
        (4, "C limit"),
    ]
    assert [box for part in parts for box in part.boxes] == [Box(2, "nominal", 1.0), Box(4, "nominal", 1.0)]
    assert steps[0] == ("2 features: preparing symdual", 0.0) and len(steps) == 6


def test_an_interrupted_run_has_told_what_it_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def half(request: object, build: Path, progress: object) -> Iterator[Found]:
        yield Found(timings=(Timing(2, "jacobian", "symdual", "made up", 1.5, True, 0.0),))
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "_session", half)
    done = CliRunner().invoke(bench, ["--features", "2", "--peer", "numpy"])
    assert done.exit_code != 0
    assert "2 features, Jacobian: symdual 1.5 us\n" in done.output


def test_the_tables_come_after_the_lines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    timing = Timing(2, "jacobian", "symdual", "made up", 1.5, True, 0.0)
    monkeypatch.setattr(runner, "_session", lambda request, build, progress: iter([Found(timings=(timing,))]))
    monkeypatch.setattr(runner, "starts", lambda size, build: (Start(size, "generate", 0.25),))
    file = tmp_path / "results.json"
    done = CliRunner().invoke(bench, ["--features", "2", "--peer", "numpy", "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert done.output.index("Jacobian: symdual 1.5 us") < done.output.index("2 features, generate: 0.25 s")
    assert done.output.index("2 features, generate: 0.25 s") < done.output.index("2 features: time, and ratio")
    assert json.loads(file.read_text())["starts"] == [{"size": 2, "what": "generate", "seconds": 0.25}]


def test_a_disagreement_ends_the_process(participants: Callable[..., None], tmp_path: Path) -> None:
    participants(symdual=Made("symdual"), c=Made("C limit", error=1e-3))
    with pytest.raises(Disagreement, match="C limit"):
        list(session.measured([2], ["c"], 1, tmp_path, lambda text, part: None))


def test_the_complaint_is_the_line_that_names_the_error() -> None:
    errors = """Traceback (most recent call last):
  File "x.py", line 1, in f
numba.core.errors.TypingError: Failed in nopython mode pipeline
During: Pass nopython_type_inference
"""
    assert complaint(errors) == "numba.core.errors.TypingError: Failed in nopython mode pipeline"
    assert complaint("some: Disagreement text\nlast line\n") == "last line"
    assert complaint("") == "no message"


def test_the_generated_kernels_and_filter_give_the_reference_answers(tmp_path: Path) -> None:
    work = workload.make(6)
    package = own_side.generated(work, tmp_path)
    reference, repeated = workload.reference(work), loops(package, tmp_path)
    for one in (*own_side.kernels(work, package, repeated), own_side.ekf(work, package, repeated)):
        verify(6, one, reference[one.kernel])
        one.repeat(3)
        np.testing.assert_allclose(one.answer()[0], reference[one.kernel][0], atol=1e-12)


CACHED_LOOP = """
import sys
from pathlib import Path
from symdual.bench import workload
from symdual.bench.peers import own_side
from symdual.bench.peers.own_loops import loops
work, build = workload.make(6), Path(sys.argv[1])
package = own_side.generated(work, build)
repeated = loops(package, build)
own_side.kernels(work, package, repeated)[0].repeat(1)
print(sum(repeated.repeat_dynamics.stats.cache_hits.values()))
"""


def test_a_second_process_takes_the_loops_from_the_cache(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CACHED_LOOP, str(tmp_path)]
    hits = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1] for _ in range(2)]
    assert hits == ["0", "1"]
