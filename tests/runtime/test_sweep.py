"""Sweeps: the same bytes however they are run, interrupted, damaged and resumed; and everything that can be wrong."""

from __future__ import annotations

import errno
import itertools
import json
import os
import subprocess
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import symdual
from symdual import Model, api, features
from symdual.common.archives import array_member, text_member, write_archive
from symdual.common.errors import SymdualError
from symdual.common.package_folders import locked
from symdual.runtime import checkpoints as checkpoints_module
from symdual.runtime import threads
from symdual.runtime.belief import Belief
from symdual.runtime.closed_loop import Settings, simulate
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.problem import Problem
from symdual.runtime.results import Chunk, Results
from symdual.runtime.summary import summarise
from symdual.runtime.sweep import Doing, Sweep, run_sweep, sweep
from symdual.runtime.threads import on_this_machine
from symdual.spec.loading import load_model_file
from tests.goldens import ROOT

RUNS = 40  # two whole chunks and a half one
PLAIN = "toy/results.npz"


@pytest.fixture(scope="module")
def plan(toy_package: LoadedPackage) -> Sweep:

    return sweep(symdual.problem(toy_package), ["dual", "ce"], RUNS)


@pytest.fixture(scope="module")
def undisturbed(plan: Sweep, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of the sweep when nothing happens to it."""
    return run_sweep(plan, tmp_path_factory.mktemp("undisturbed"), on_this_machine()).read_bytes()


class Recorded:
    """Runs chunk by chunk, writes down which, and may be stopped by something after some of them."""

    def __init__(self, stop_after: int | None = None, stopped_by: type[BaseException] = KeyboardInterrupt) -> None:
        self.done: list[Chunk] = []
        self._left = stop_after
        self._stopped_by = stopped_by

    def __call__(self, plan: Sweep, pending: list[Chunk]) -> Iterator[tuple[Chunk, bytes]]:
        for chunk in reversed(pending):
            if self._left is not None and len(self.done) >= self._left:
                raise self._stopped_by
            yield from plan.payloads([chunk], plan.noise_draws([chunk]))
            self.done.append(chunk)


def nothing(plan: Sweep, pending: list[Chunk]) -> Iterator[tuple[Chunk, bytes]]:
    raise AssertionError(f"{pending} should not be run")


def test_a_sweep_holds_what_the_closed_loop_gives(plan: Sweep, toy: Problem, tmp_path: Path) -> None:
    path = run_sweep(plan, tmp_path, on_this_machine())
    expected = simulate(toy, ["dual", "ce"], RUNS)
    with np.load(path) as stored:
        for name, episodes in expected.items():
            assert np.array_equal(stored[f"{name}.states"], episodes.states)
            assert np.array_equal(stored[f"{name}.inputs"], episodes.inputs)
            assert np.array_equal(stored[f"{name}.variances"], episodes.variances)
            assert np.array_equal(stored[f"{name}.costs"], episodes.costs)
            assert np.array_equal(stored[f"{name}.nis"], episodes.steps[:, :, 3], equal_nan=True)
            last = episodes.means[:, -1, 1] - 2.0
            nees = last**2 / episodes.covariances[:, 1, 1]
            assert stored[f"{name}.nees_parameters"] == pytest.approx(nees, rel=1e-12)
            assert np.isnan(stored[f"{name}.nees_state"]).all()  # measured exactly
    assert sorted(file.name for file in path.parent.iterdir()) == ["results.npz"]


@pytest.mark.parametrize("jobs", [1, 2, 64])
def test_threads_do_not_show(plan: Sweep, undisturbed: bytes, tmp_path: Path, jobs: int) -> None:
    assert run_sweep(plan, tmp_path, on_this_machine(jobs)).read_bytes() == undisturbed


def test_the_way_of_dividing_does_not_show(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    execute = Recorded()
    assert run_sweep(plan, tmp_path, execute).read_bytes() == undisturbed
    assert sorted(execute.done) == sorted(plan.chunks)


def test_seeds_are_the_children_of_the_sweeps_seed(plan: Sweep) -> None:
    children = np.random.SeedSequence(0).spawn(RUNS)
    for run in (0, 17, 39):
        own = np.random.SeedSequence(plan.seed, spawn_key=(run,))
        assert own.generate_state(4).tolist() == children[run].generate_state(4).tolist()


def test_progress_counts_every_episode(plan: Sweep, tmp_path: Path) -> None:
    seen: list[Doing] = []
    run_sweep(plan, tmp_path, on_this_machine(), progress=seen.append)
    assert {doing.total for doing in seen} == {2 * RUNS}
    counts = [doing.done for doing in seen]
    assert counts[0] == 0 and counts[-1] == 2 * RUNS and counts == sorted(counts) and len(set(counts)) == 7


# ------------------------------------------------------------ interrupted and resumed


@pytest.mark.parametrize("stopped_by", [KeyboardInterrupt, MemoryError, SystemExit])
def test_what_is_done_is_kept_and_not_done_again(
    plan: Sweep, undisturbed: bytes, tmp_path: Path, stopped_by: type[BaseException]
) -> None:
    first = Recorded(3, stopped_by)
    with pytest.raises(stopped_by):
        run_sweep(plan, tmp_path, first)
    assert not (tmp_path / PLAIN).exists()
    second = Recorded()
    assert run_sweep(plan, tmp_path, second, resume=True).read_bytes() == undisturbed
    assert len(first.done) == 3 and sorted(first.done + second.done) == sorted(plan.chunks)


def test_a_sweep_that_was_interrupted_is_not_thrown_away(plan: Sweep, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path, Recorded(2))
    with pytest.raises(SymdualError, match=r"holds 2 finished chunks .* continue with --resume"):
        run_sweep(plan, tmp_path, nothing)


def test_resuming_a_finished_sweep_does_nothing(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    path = run_sweep(plan, tmp_path, Recorded())
    stamp = path.stat().st_mtime_ns
    assert run_sweep(plan, tmp_path, nothing, resume=True).read_bytes() == undisturbed
    assert path.stat().st_mtime_ns == stamp


def test_resuming_where_nothing_is_starts(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    assert run_sweep(plan, tmp_path, Recorded(), resume=True).read_bytes() == undisturbed


@pytest.mark.parametrize(
    "tear",
    [lambda content: content[: len(content) // 2], lambda content: b"", lambda content: content[:-1] + b"\x7f"],
    ids=["half", "empty", "last byte"],
)
def test_a_torn_checkpoint_costs_itself_alone(
    plan: Sweep, undisturbed: bytes, tmp_path: Path, tear: Callable[[bytes], bytes]
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path, Recorded(4))
    torn = tmp_path / "toy/chunks/dual-0000016-0000032.chunk"
    torn.write_bytes(tear(torn.read_bytes()))
    again, told = Recorded(), list[str]()
    assert run_sweep(plan, tmp_path, again, resume=True, tell=told.append).read_bytes() == undisturbed
    assert len(again.done) == 3 and Chunk("dual", 16, 32) in again.done
    (sentence,) = told
    assert sentence.startswith("the checkpoint of runs 16 to 31 of dual is lost")


def test_torn_results_cost_the_lost_chunks_alone(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    path = run_sweep(plan, tmp_path, Recorded())
    path.write_bytes(undisturbed[: len(undisturbed) * 2 // 3])
    again, told = Recorded(), list[str]()
    assert run_sweep(plan, tmp_path, again, resume=True, tell=told.append).read_bytes() == undisturbed
    assert again.done and {chunk.controller for chunk in again.done} == {"ce"}
    assert sorted(told) == [f"{path} is damaged: {chunk} are lost and are done again" for chunk in sorted(again.done)]


def test_results_that_lost_only_their_end_are_mended(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    path = run_sweep(plan, tmp_path, Recorded())
    path.write_bytes(undisturbed[:-30])
    assert run_sweep(plan, tmp_path, nothing, resume=True).read_bytes() == undisturbed


def test_results_without_a_beginning_are_done_again(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    path = run_sweep(plan, tmp_path, Recorded())
    path.write_bytes(b"\0" * 1000 + undisturbed[1000:])
    again, told = Recorded(), list[str]()
    assert run_sweep(plan, tmp_path, again, resume=True, tell=told.append).read_bytes() == undisturbed
    assert len(again.done) == len(plan.chunks) and "nothing in it can be used" in told[0]


def test_more_runs_and_controllers_use_what_is_there(plan: Sweep, toy: Problem, tmp_path: Path) -> None:
    run_sweep(plan, tmp_path / "grown", Recorded())
    larger = sweep(toy, ["dual", "ce", "beb"], 64)
    execute = Recorded()
    grown = run_sweep(larger, tmp_path / "grown", execute, resume=True)
    assert grown.read_bytes() == run_sweep(larger, tmp_path / "fresh", on_this_machine()).read_bytes()
    reused = {Chunk(name, start, start + 16) for name in ("dual", "ce") for start in (0, 16)}
    assert set(execute.done) == set(larger.chunks) - reused


def test_resuming_never_drops_runs(plan: Sweep, toy: Problem, tmp_path: Path) -> None:
    run_sweep(plan, tmp_path, Recorded())
    for smaller in (sweep(toy, ["dual", "ce"], 20), sweep(toy, ["dual"], RUNS)):
        with pytest.raises(SymdualError, match="holds 40 runs of dual, ce, and this sweep would drop some"):
            run_sweep(smaller, tmp_path, nothing, resume=True)


@pytest.mark.parametrize("about", ["", "[]", "{}", '{"controllers": 3}'])
def test_checkpoints_whose_description_is_damaged_are_used(
    plan: Sweep, undisturbed: bytes, tmp_path: Path, about: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path, Recorded(4))
    (tmp_path / "toy/chunks/about.json").write_text(about)
    again = Recorded()
    assert run_sweep(plan, tmp_path, again, resume=True).read_bytes() == undisturbed
    assert len(again.done) == len(plan.chunks) - 4


SWAPPED = [("dual", 16, 32), ("ce", 0, 16), ("ce", 16, 32), ("ce", 32, 40)]


@pytest.mark.parametrize("pair", list(itertools.combinations(SWAPPED, 2)), ids=str)
def test_checkpoints_that_were_swapped_are_done_again(
    plan: Sweep, undisturbed: bytes, tmp_path: Path, pair: tuple[tuple[str, int, int], ...]
) -> None:
    """Those of one controller and of one range as well: both have the right size and the right sweep."""
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path, Recorded(len(plan.chunks) - 1))
    one, other = (tmp_path / f"toy/chunks/{name}-{start:07d}-{stop:07d}.chunk" for name, start, stop in pair)
    content = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(content)
    told: list[str] = []
    again = Recorded()
    assert run_sweep(plan, tmp_path, again, resume=True, tell=told.append).read_bytes() == undisturbed
    assert {Chunk(*chunk) for chunk in pair} <= set(again.done)
    assert len(told) == 2 and all("its file holds other runs, or those of another sweep" in text for text in told)


#: descriptions that nobody wrote: what is put in the place of the true one
FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a number": lambda about: 3,
    "nothing": lambda about: None,
    "a list of pairs": lambda about: list(about.items()),
    "nested": lambda about: "NESTED",
    "a number too long to read": lambda about: "DIGITS",
    "no controllers": lambda about: about | {"controllers": []},
    "controllers are a string": lambda about: about | {"controllers": "dual"},
    "controllers are numbers": lambda about: about | {"controllers": [1, 2]},
    "controllers are lists": lambda about: about | {"controllers": [["dual"], ["ce"]]},
    "controllers are nothing": lambda about: about | {"controllers": None},
    "a controller twice": lambda about: about | {"controllers": ["dual", "dual", "ce"]},
    "runs are text": lambda about: about | {"runs": "many"},
    "runs are negative": lambda about: about | {"runs": -5},
    "runs are a fraction": lambda about: about | {"runs": 2.5},
    "runs are nothing": lambda about: about | {"runs": None},
    "runs without end": lambda about: about | {"runs": 10**30},
    "sizes are a list": lambda about: about | {"sizes": []},
    "sizes are empty": lambda about: about | {"sizes": {}},
    "sizes of nobody": lambda about: about | {"sizes": {"dual": 3, "ce": None}},
    "a size is text": lambda about: about | {"sizes": {n: s | {"time": "x"} for n, s in about["sizes"].items()}},
    "a size is negative": lambda about: about | {"sizes": {n: s | {"time": -1} for n, s in about["sizes"].items()}},
    "a size is missing": lambda about: about | {"sizes": {n: {"time": 3} for n in about["sizes"]}},
    "a size without end": lambda about: about | {"sizes": {n: s | {"time": 10**40} for n, s in about["sizes"].items()}},
    "settings are a list": lambda about: about | {"settings": [1]},
    "settings are empty": lambda about: about | {"settings": {}},
    "a setting too many": lambda about: about | {"settings": about["settings"] | {"further": 1}},
    "a setting that is nothing": lambda about: about | {"settings": about["settings"] | {"further": None}},
    "a truth that nobody knows": lambda about: about | {"settings": about["settings"] | {"truth": "guessed"}},
    "another horizon": lambda about: about | {"horizon": 1},
    "the horizon is true": lambda about: about | {"horizon": True},
    "outcomes are numbers": lambda about: about | {"outcomes": [1, 2]},
    "no outcomes": lambda about: about | {"outcomes": []},
    "constraints are a number": lambda about: about | {"input_bounds": 3},
    "constraints of another scenario": lambda about: about | {"input_bounds": ["x <= 1"]},
    "processes are numbers": lambda about: about | {"processes": {"g": 3}},
    "a process lacks its room": lambda about: about | {"processes": {"g": {"memory": 4}}},
    "names of another model": lambda about: about | {"names": about["names"] | {"states": ["x", "y"]}},
    "names are numbers": lambda about: about | {"names": about["names"] | {"inputs": [1]}},
    "names of the belief are none": lambda about: about | {"names": about["names"] | {"belief": 5}},
    "names of parameters are none": lambda about: about | {"names": about["names"] | {"parameters": {"b": 1}}},
    "versions are nothing": lambda about: about | {"versions": None},
    "a version too many": lambda about: about | {"versions": about["versions"] | {"further": "1"}},
    "names are a list": lambda about: about | {"names": ["x"]},
    "the seed is a list": lambda about: about | {"seed": [0]},
    "the seed is nothing": lambda about: about | {"seed": None},
    "digests are text": lambda about: about | {"digests": "none"},
    "the format is a number": lambda about: about | {"format": 2},
    "no horizon": lambda about: {key: value for key, value in about.items() if key != "horizon"},
    "horizon is text": lambda about: about | {"horizon": "2"},
    "chunks are a number": lambda about: about | {"chunks": 3},
    "chunks of nobody": lambda about: about | {"chunks": [["nobody", 0, 16, "0"]]},
    "chunks are short": lambda about: about | {"chunks": [["dual", 0]]},
    "chunks are text": lambda about: about | {"chunks": [["dual", "0", "16", "0"]]},
    "chunks go backwards": lambda about: about | {"chunks": [["dual", 16, 0, "0"], ["dual", 5, 5, "0"]]},
    "chunks beyond the end": lambda about: about | {"chunks": [["dual", 10**6, 10**6 + 16, "0"]]},
    "a chunk below zero": lambda about: about | {"chunks": [["dual", -16, 0, "0"]]},
    "arrays are nothing": lambda about: about | {"arrays": None},
    "arrays without shape": lambda about: about | {"arrays": {}},
    "no states": lambda about: about | {"sizes": {n: s | {"state": 0} for n, s in about["sizes"].items()}},
    "a shape is text": lambda about: _reshaped(about, ["x"]),
    "a shape is a fraction": lambda about: _reshaped(about, [0.5, 1]),
    "a shape of shapes": lambda about: _reshaped(about, [[]]),
    "a shape below zero": lambda about: _reshaped(about, [-1, -1]),
    "an array without end": lambda about: _reshaped(about, [10**30, 1]),
}


def _reshaped(about: dict[str, Any], shape: list[Any]) -> dict[str, Any]:
    """With another shape of the reference; the description of checkpoints has none."""
    return about | {"arrays": about["arrays"] | {"reference": {"shape": shape}}} if "arrays" in about else about


def forged(about: dict[str, Any], case: str) -> bytes:
    made = FORGED[case](about)
    special = {"NESTED": b"[" * 100_000, "DIGITS": b'{"runs": ' + b"1" * 10_000 + b"}"}
    return special[made] if isinstance(made, str) else json.dumps(made).encode()


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_description_of_checkpoints_harms_nothing(
    plan: Sweep, undisturbed: bytes, tmp_path: Path, case: str
) -> None:
    """What is done is used, or it is said in one sentence why not."""
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path, Recorded(4))
    file = tmp_path / "toy/chunks/about.json"
    file.write_bytes(forged(json.loads(file.read_bytes()), case))
    again = Recorded()
    try:
        assert run_sweep(plan, tmp_path, again, resume=True).read_bytes() == undisturbed
        assert len(again.done) == len(plan.chunks) - 4
    except SymdualError as refusal:
        assert f"{file.parent} holds" in str(refusal) and "\n" not in str(refusal)


@pytest.mark.parametrize("case", FORGED)
def test_a_forged_description_of_results_harms_nothing(
    plan: Sweep, undisturbed: bytes, tmp_path: Path, case: str
) -> None:
    path = tmp_path / PLAIN
    path.parent.mkdir()
    path.write_bytes(undisturbed)
    with Results(path) as results:
        right = summarise(results).controllers
    with np.load(path) as stored:
        members = {name: stored[name] for name in stored.files}
    content = forged(json.loads(members.pop("about.json")), case)
    with path.open("wb") as file:
        arrays = [
            array_member(n, a.dtype.str, a.shape, lambda a=a: (np.ascontiguousarray(a).tobytes(),))
            for n, a in members.items()
        ]
        write_archive(file, [text_member("about.json", content), *arrays])
    try:
        with Results(path) as results:
            assert summarise(results).controllers == right  # nothing is taken for something else
            assert [len(results.to_pandas(view)) for view in ("runs", "steps")] == [2 * RUNS, 6 * RUNS]
    except SymdualError as refusal:
        assert str(path) in str(refusal) and "\n" not in str(refusal)
    try:
        assert run_sweep(plan, tmp_path, Recorded(), resume=True).read_bytes() == undisturbed
    except SymdualError as refusal:
        assert f"{path} " in str(refusal) and "\n" not in str(refusal)


# ------------------------------------------------------------ another sweep in the same place


def test_results_of_another_format_are_not_replaced(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    path = tmp_path / PLAIN
    path.parent.mkdir()
    with np.load(run_sweep(plan, tmp_path / "own", Recorded())) as stored:
        about = json.loads(stored["about.json"])
    with path.open("wb") as file:
        later = {**about, "format": "symdual sweep, version 99"}
        write_archive(file, [text_member("about.json", json.dumps(later).encode())])
    content = path.read_bytes()
    with pytest.raises(SymdualError, match=r'is in the format "symdual sweep, version 99", and this symdual writes'):
        run_sweep(plan, tmp_path, nothing, resume=True)
    assert path.read_bytes() == content


def other_sweeps(toy: Problem) -> dict[str, Sweep]:
    dearer, bounded = (
        replace(toy, input_cost=2.0 * toy.input_cost),
        replace(toy, input_bounds=np.array([[-1.0], [1.0]])),
    )
    return {
        "seed 0, not 1": sweep(toy, ["dual", "ce"], RUNS, seed=1),
        "truth scenario, not prior": sweep(toy, ["dual", "ce"], RUNS, settings=Settings("prior")),
        "another version of the model or its numbers": sweep(dearer, ["dual", "ce"], RUNS),
        "another version of the model": sweep(bounded, ["dual", "ce"], RUNS),
    }


@pytest.mark.parametrize("finished", [True, False], ids=["finished", "unfinished"])
def test_results_of_another_sweep_are_refused(plan: Sweep, toy: Problem, tmp_path: Path, finished: bool) -> None:
    if finished:
        run_sweep(plan, tmp_path, Recorded())
    else:
        with pytest.raises(KeyboardInterrupt):
            run_sweep(plan, tmp_path, Recorded(2))
    for difference, other in other_sweeps(toy).items():
        with pytest.raises(SymdualError, match=f"toy/(results.npz|chunks) holds a sweep with {difference}"):
            run_sweep(other, tmp_path, nothing, resume=True)


def test_a_model_in_continuous_time_says_how_long_a_step_is(
    toy: Problem, shared_models: Callable[[Path], Path], tmp_path: Path
) -> None:
    """So that figures have time on their axes."""
    pendulum = ROOT / "examples/pendulum.py"
    own = api.problem(api.load(shared_models(pendulum) / "pendulum"))
    planned = sweep(own, ["ce"], 1)
    assert planned.description.identity["step"] == load_model_file(pendulum).models["pendulum"].step
    assert "step" not in sweep(toy, ["ce"], 1).description.identity
    with Results(run_sweep(planned, tmp_path, on_this_machine())) as results:
        labels = [axes.get_xlabel() for part in results.plot().subfigs for axes in part.axes]
    assert any(label.startswith("time (a step is 0") for label in labels)


def test_two_sweeps_in_one_folder_are_refused(plan: Sweep, tmp_path: Path) -> None:
    (tmp_path / "toy").mkdir()
    with (
        locked(tmp_path / "toy", wait=False) as held,
        pytest.raises(SymdualError, match=r"another symdual is running a sweep in .*toy"),
    ):
        assert held
        run_sweep(plan, tmp_path, nothing)


def test_results_are_not_lost_to_another_sweep(plan: Sweep, toy: Problem, undisturbed: bytes, tmp_path: Path) -> None:
    file = run_sweep(sweep(toy, ["ce"], 3, seed=5), tmp_path, Recorded())
    before = file.read_bytes()
    advice = r"overwrite it with --force \(in Python force=True\), or choose another folder with -o"
    with pytest.raises(SymdualError, match=f"{file} holds a sweep with seed 5, not {plan.seed}; {advice}"):
        run_sweep(plan, tmp_path, nothing)
    fewer = f"{file} holds 3 runs of ce, and this sweep would drop some; ask for at least these, or {advice}"
    with pytest.raises(SymdualError, match=fewer):
        run_sweep(sweep(toy, ["ce"], 2, seed=5), tmp_path, nothing)
    assert file.read_bytes() == before
    run_sweep(sweep(toy, ["ce", "dual"], 4, seed=5), tmp_path, Recorded())  # contains what was there
    assert run_sweep(plan, tmp_path, Recorded(), force=True).read_bytes() == undisturbed
    file.write_text("my own notes")
    with pytest.raises(SymdualError, match=f"holds something else than results of this symdual; {advice}"):
        run_sweep(plan, tmp_path, nothing)
    assert file.read_text() == "my own notes"


def test_force_forgets_what_was_interrupted(plan: Sweep, undisturbed: bytes, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan, tmp_path, Recorded(2))
    again = Recorded()
    assert run_sweep(plan, tmp_path, again, force=True).read_bytes() == undisturbed
    assert sorted(again.done) == sorted(plan.chunks)


# ------------------------------------------------------------ no room


def test_a_full_disk_is_named_and_what_is_done_is_kept(
    plan: Sweep, undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, writes = checkpoints_module.write_atomically, []

    def no_room(file: Path, content: bytes) -> None:
        writes.append(file)
        if len(writes) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(file, content)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints_module, "write_atomically", no_room)
        with pytest.raises(SymdualError, match="No space left on device; the 2 chunks that are done are kept"):
            run_sweep(plan, tmp_path, Recorded())
    again = Recorded()
    assert run_sweep(plan, tmp_path, again, resume=True).read_bytes() == undisturbed
    assert len(again.done) == len(plan.chunks) - 2


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A file system of its own that can be given another size; only root can make one."""
    place = tmp_path / "small"
    place.mkdir()

    def sized(size: str) -> Path:
        options = f"size={size}" if not place.is_mount() else f"remount,size={size}"
        made = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, check=False)
        if made.returncode:
            pytest.skip("cannot mount a small file system here")
        return place

    yield sized
    if place.is_mount():
        subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("size", ["16k", "64k"], ids=["in a chunk", "in the results"])
def test_a_disk_that_is_really_full(plan: Sweep, undisturbed: bytes, small_disk: Any, size: str) -> None:
    place = small_disk(size)
    with pytest.raises(SymdualError, match=r"No space left on device; .* kept, continue with --resume"):
        run_sweep(plan, place, Recorded())
    assert not list(place.rglob(".*.new")) and not (place / PLAIN).exists()
    kept = len(list(place.rglob("*.chunk")))
    assert kept
    small_disk("1m")
    again = Recorded()
    assert run_sweep(plan, place, again, resume=True).read_bytes() == undisturbed
    assert len(again.done) == len(plan.chunks) - kept


def test_a_folder_that_cannot_be_made(plan: Sweep, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SymdualError, match=r"cannot make the folder .*file/toy"):
        run_sweep(plan, tmp_path / "file", nothing)


# ------------------------------------------------------------ what cannot be run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"runs": 0}, "the number of runs must be at least 1, not 0"),
        ({"runs": 10**12}, "the number of runs must be at most 10000000, not 1000000000000"),
        ({"runs": 2.5}, "the number of runs must be a whole number, not 2.5"),
        ({"seed": -1}, "the seed must be at least 0, not -1"),
        ({"seed": None}, "the seed must be a whole number, not None"),
        ({"controllers": []}, "a sweep needs at least one controller"),
        ({"controllers": ["dua"]}, 'there is no controller "dua"; did you mean "dual"'),
        ({"settings": Settings(truth="guess")}, 'there is no truth "guess"'),
        ({"settings": Settings(order=3)}, "order must be 1 or 2, not 3"),
        ({"settings": Settings(window=0)}, "window must be at least 1, not 0"),
        ({"settings": Settings(window=10**9)}, "window must be at most 100000, not 1000000000"),
        ({"settings": Settings(window=2.5)}, "window must be a whole number, not 2.5"),  # type: ignore[arg-type]
        ({"settings": Settings(window=3, length=0)}, "length must be at least 1, not 0"),
        ({"controllers": ["ce", "exact"], "settings": Settings(window=90)}, 'the controller "exact" does not fit'),
    ],
)
def test_bad_plans(toy: Problem, arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SymdualError, match=sentence):
        sweep(**{"problem": toy, "controllers": ["ce"], "runs": 5} | arguments)


def test_numbers_and_names_in_other_clothes_plan_the_same_sweep(toy: Problem) -> None:
    plain, other = sweep(toy, ["ce"], 5, 1), sweep(toy, "ce", np.int64(5), np.uint8(1))  # type: ignore[arg-type]
    assert other.description == plain.description
    assert json.dumps(other.description.to_json()) == json.dumps(plain.description.to_json())


@pytest.mark.parametrize("jobs", [0, -1])
def test_no_threads_are_refused(jobs: int) -> None:
    with pytest.raises(SymdualError, match=f"jobs must be at least 1, not {jobs}"):
        on_this_machine(jobs)


def test_a_search_without_limit_is_found_before_anything_runs(toy: Problem) -> None:
    free = replace(toy, input_cost=0.0 * toy.input_cost)
    assert sweep(free, ["ce"], 1)
    with pytest.raises(SymdualError, match='the search over the input "u" has no limit'):
        sweep(free, ["ce", "dual"], 1)


def test_a_controller_named_twice_runs_once(toy: Problem) -> None:
    assert sweep(toy, ["ce", "dual", "ce"], 1).controllers == ("ce", "dual")


def test_a_plant_that_fails_is_counted_and_the_sweep_goes_on(
    toy: Problem, make_quickly: Callable[[str, str], LoadedPackage], tmp_path: Path
) -> None:
    plant = make_quickly(
        "fragile",
        """
import sympy as sp
from symdual import Model, unknown
x, u = sp.symbols("x u")
b = unknown("b")
fragile = Model(states=[x], inputs=[u], dynamics=[b * sp.sqrt(x) + 0.01 * u], process_noise=0.1, measurement_noise=0.0)
""",
    )
    fragile = sweep(replace(toy, plant=plant, truth=np.array([0.3])), ["dual", "ce"], RUNS)
    with Results(run_sweep(fragile, tmp_path, on_this_machine())) as results:
        summary = summarise(results)
        for c in summary.controllers:
            outcomes = results.array(c.name, "outcomes")
            gone = outcomes == 1
            assert 0 < gone.sum() < RUNS
            assert c.failed == {"the plant's state or measurement is not finite": gone.sum()}
            assert np.array_equal(np.isnan(results.array(c.name, "costs")), gone)
            assert c.cost is not None and c.cost.runs == RUNS - gone.sum() and np.isfinite(c.cost.mean)
            assert c.nees_parameters is None  # the plant's b is another parameter than the model's
        assert any("episodes failed: the plant's state or measurement is not finite" in s for s in summary.sentences())


def test_costs_that_overflow_are_failures(toy: Problem, tmp_path: Path) -> None:
    far = sweep(replace(toy, prior=Belief(np.array([1e200, 1.0]), toy.prior.covariance)), ["ce"], 3)
    with Results(run_sweep(far, tmp_path, on_this_machine())) as results:
        (ce,) = summarise(results).controllers
        assert ce.failed == {"the plan is not finite": 3} and not ce.finished
        assert sum(ce.failed.values()) == 3 and ce.cost is None


# ------------------------------------------------------------ resources


@pytest.mark.soak
def test_memory_follows_a_stretch_of_runs_not_all_of_them(
    toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_BYTES", 40_000)  # a few chunks at a time
    peaks = []
    for attempt, runs in enumerate((3200, 320, 3200, 3200)):  # the first one loads whatever is loaded once
        plan = sweep(toy, ["ce"], runs)
        tracemalloc.start()
        path = run_sweep(plan, tmp_path / str(attempt), on_this_machine())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # whatever else allocates in this process now and then, it does not do so in both
    assert min(peaks[2:]) - peaks[1] < 0.5 * path.stat().st_size


def test_draws_does_not_depend_on_the_threads_of_the_matrix_library(toy: Problem, tmp_path: Path) -> None:
    import sympy as sp

    x, u = sp.symbols("x u")
    wide = Model([x], [u], [x + u + features.fourier("v", x, count=150, lengthscale=1.0)], name="wide")
    package = load(api.generate(wide, tmp_path)[0].folder)
    root = np.random.default_rng(0).standard_normal((151, 151))
    problem = replace(
        toy,
        package=package,
        plant=package,
        prior=Belief(np.zeros(151), np.asarray(0.5 * (root @ root.T + (root @ root.T).T))),
        truth=None,
    )
    plan = Sweep(problem, ("ce",), 4, 0, Settings(truth="prior"))
    drawn = []
    for count in (1, 2, 4):
        with threadpool_limits(count):
            drawn.append(plan.noise_draws([Chunk("ce", 0, 4)]).truths.tobytes())
    assert len(set(drawn)) == 1
