"""Sweeps on a real Dask cluster on this machine: whatever is interrupted or killed, the bytes stay the same."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import symdual
from symdual.commands import main
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.results import Chunk
from symdual.runtime.sweep import run_sweep, sweep
from symdual.runtime.threads import on_this_machine

pytest.importorskip("distributed", reason="dask.distributed is not installed")

ROOT = Path(__file__).parents[2]
TOY = ROOT / "symdual/paper/models/toy.py"
RUNS = 1600
CHUNKS = 200  # of 16 runs, with two controllers


def environment(numba: bool = True) -> dict[str, str]:
    """Subprocesses find symdual; workers keep numba's cache beside the packages that they receive."""
    kept = {key: value for key, value in os.environ.items() if numba or not key.startswith("NUMBA")}
    return kept | {"PYTHONPATH": str(ROOT)}


@contextmanager
def process(*arguments: str, folder: Path, log: Path, numba: bool = True) -> Iterator[subprocess.Popen[bytes]]:
    """A process of our own that ends with the test, whatever happens."""
    with log.open("ab") as output:
        started = subprocess.Popen(
            [sys.executable, "-m", *arguments], cwd=folder, env=environment(numba), stdout=output, stderr=output
        )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


# done to a worker before it takes part: it runs as many chunks as a file allows, then waits until that allows more
GATE = """
import time
from pathlib import Path
import symdual.runtime.cluster as cluster

def gated(run, ran):
    def run_chunk(key, chunk):
        while len(ran) >= int(Path({file!r}).read_text() or 0):
            time.sleep(0.01)
        ran.append(chunk)
        return run(key, chunk)
    return run_chunk

if cluster.run_chunk.__module__ == cluster.__name__:  # a worker loads this more than once
    cluster.run_chunk = gated(cluster.run_chunk, [])
"""


class Cluster:
    """A scheduler with workers that are processes of their own.

    `allow` sets how many chunks each gated worker may run: a sweep then stops at a known place, however fast the
    machine is.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._file = folder / "scheduler.json"
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self.scheduler = self._start("distributed.cli.dask_scheduler", *options, name="scheduler")
        # the scheduler does not write its file in one go
        wait_for(lambda: self._file.exists() and self._file.read_text().rstrip().endswith("}"), "the scheduler")
        self.address = str(json.loads(self._file.read_text())["address"])
        self._allowed, self._gate = folder / "allowed", folder / "gate.py"
        self._gate.write_text(GATE.format(file=str(self._allowed)))
        self.allow(0)

    def allow(self, chunks: int) -> None:
        self._allowed.write_text(str(chunks))

    def gated(self, name: str) -> subprocess.Popen[bytes]:
        return self.worker(name, "--preload", str(self._gate))

    def worker(self, name: str, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker and wait until the scheduler knows it, however long that takes."""
        usual = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder / name))
        started = self._start("distributed.cli.dask_worker", *usual, "--name", name, *options, name=name)
        wait_for(lambda: name in self.workers(), f"the worker {name}")
        return started

    def dismiss(self, name: str, worker: subprocess.Popen[bytes]) -> None:
        """Kill a worker and wait until the scheduler knows that it is gone."""
        worker.kill()
        worker.wait()
        wait_for(lambda: name not in self.workers(), f"the end of the worker {name}")

    def workers(self) -> set[str]:
        """The names of the workers that the scheduler knows."""
        return asyncio.run(self._workers())

    async def _workers(self) -> set[str]:
        import distributed

        async with distributed.rpc(self.address) as scheduler:
            return {worker["name"] for worker in (await scheduler.identity())["workers"].values()}

    def _start(self, *arguments: str, name: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"{name}.log"
        files = ("--scheduler-file", str(self._file))
        return self._stack.enter_context(process(*arguments, *files, folder=self.folder, log=log, numba=False))


def wait_for(condition: Callable[[], object], what: str, seconds: float = 600.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited too long for {what}"
        time.sleep(0.01)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        (tmp_path / "cluster").mkdir()
        yield Cluster(tmp_path / "cluster", stack)


@pytest.fixture(scope="module")
def undisturbed(numba_toy_package: LoadedPackage, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of the sweep when it runs here; also compiles the package."""
    plan = sweep(symdual.problem(numba_toy_package), ["dual", "ce"], RUNS)
    return run_sweep(plan, tmp_path_factory.mktemp("here"), on_this_machine()).read_bytes()


@pytest.fixture
def place(packages: Path, tmp_path: Path) -> Path:
    """A folder whose packages are those of all tests, so that nothing is compiled again."""
    (tmp_path / "generated").symlink_to(packages)
    return tmp_path


def simulate(place: Path, *options: str) -> list[str]:
    return ["symdual", "simulate", str(TOY), "--runs", str(RUNS), "-o", str(place / "results"), *options]


def done(place: Path) -> int:
    return len(list((place / "results/toy/chunks").glob("*.chunk")))


def compiled(folder: Path) -> set[str]:
    """The names of numba's files of machine code below a folder."""
    return {file.name for file in folder.rglob("*.nbc")}


@pytest.mark.soak
def test_killed_workers_do_not_show(undisturbed: bytes, place: Path, cluster: Cluster, packages: Path) -> None:
    first, second = cluster.gated("first"), cluster.gated("second")
    cluster.allow(3)
    log, late = place / "simulate.log", cluster.folder / "late"
    seen: set[str] = set()

    def over() -> bool:
        seen.update(compiled(late))
        return running.poll() is not None

    with process(*simulate(place, "--cluster", cluster.address), folder=place, log=log) as running:
        wait_for(lambda: done(place) >= 3 or running.poll() is not None, "chunks")
        second.send_signal(signal.SIGSTOP)
        first.send_signal(signal.SIGKILL)
        cluster.worker("late")  # joins in the middle and receives what it needs
        wait_for(lambda: list(late.rglob("manifest.json")) or running.poll() is not None, "the late worker")
        second.send_signal(signal.SIGKILL)
        assert running.poll() is None, log.read_text()
        assert 3 <= done(place) < CHUNKS
        wait_for(over, "the end of the sweep")
        assert running.returncode == 0, log.read_text()
    assert (place / "results/toy/results.npz").read_bytes() == undisturbed
    # had the late worker compiled anything again, numba would have written files that it did not receive
    own = compiled(packages / "toy") | compiled(Path(os.environ.get("NUMBA_CACHE_DIR", packages / "toy")))
    assert seen and seen <= own


def test_a_killed_sweep_is_resumed_on_this_machine(undisturbed: bytes, place: Path, cluster: Cluster) -> None:
    cluster.gated("first")
    cluster.allow(5)
    log = place / "simulate.log"
    with process(*simulate(place, "--cluster", cluster.address), folder=place, log=log) as running:
        wait_for(lambda: done(place) >= 5 or running.poll() is not None, "chunks")
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert 5 <= done(place) < CHUNKS, log.read_text()
    with process(*simulate(place, "--resume"), folder=place, log=log) as running:
        assert running.wait(timeout=600) == 0, log.read_text()
    assert (place / "results/toy/results.npz").read_bytes() == undisturbed


@pytest.mark.soak
def test_interrupted_then_left_by_the_scheduler_then_resumed_here(
    undisturbed: bytes, place: Path, cluster: Cluster
) -> None:
    workers = [cluster.gated("first"), cluster.gated("second")]
    cluster.allow(3)
    log = place / "simulate.log"
    with process(*simulate(place, "--cluster", cluster.address), folder=place, log=log) as running:
        wait_for(lambda: done(place) >= 3 or running.poll() is not None, "chunks")
        workers[1].send_signal(signal.SIGSTOP)  # a worker that does not answer is not waited for
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=600) == 130, log.read_text()
    first = done(place)
    assert 3 <= first < CHUNKS
    results = place / "results"
    assert complaint(log) == f"symdual: interrupted; what is done is kept in {results}, continue with --resume"
    workers[1].send_signal(signal.SIGKILL)
    cluster.allow(20)
    log.unlink()
    with process(*simulate(place, "--resume", "--cluster", cluster.address), folder=place, log=log) as running:
        wait_for(lambda: done(place) >= first + 3 or running.poll() is not None, "more chunks")
        cluster.scheduler.send_signal(signal.SIGKILL)
        assert running.wait(timeout=600) == 2, log.read_text()
    assert first + 3 <= done(place) < CHUNKS
    lost = "symdual: the connection to the cluster was lost; what is done is kept, "
    lost += "continue with --resume (in Python resume=True)"
    assert complaint(log) == lost
    with process(*simulate(place, "--resume"), folder=place, log=log) as running:
        assert running.wait(timeout=600) == 0, log.read_text()
    assert (place / "results/toy/results.npz").read_bytes() == undisturbed


@pytest.mark.soak
def test_when_the_last_worker_has_gone_it_is_said_and_another_one_continues(
    undisturbed: bytes, place: Path, cluster: Cluster
) -> None:
    only = cluster.gated("only")
    cluster.allow(3)
    log = place / "simulate.log"
    sentence = "the cluster has no workers any more; waiting up to 600 s for one to join, what is done is kept"
    with process(*simulate(place, "--cluster", cluster.address), folder=place, log=log) as running:
        wait_for(lambda: done(place) >= 3 or running.poll() is not None, "chunks")
        only.kill()
        wait_for(lambda: sentence in log.read_text() or running.poll() is not None, "the sentence")
        assert running.poll() is None and done(place) < CHUNKS, log.read_text()
        cluster.worker("another")
        assert running.wait(timeout=600) == 0, log.read_text()
    assert (place / "results/toy/results.npz").read_bytes() == undisturbed


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_that_stays_without_workers_is_given_up(
    numba_toy_package: LoadedPackage, place: Path, cluster: Cluster, undisturbed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    from symdual.runtime import cluster as module

    monkeypatch.setattr(module, "_LOOK", 0.05)
    monkeypatch.setattr(module, "_LONGEST_WAIT", 0.5)
    only = cluster.worker("only")
    client = module.connect(cluster.address)
    said: list[str] = []
    told: list[str] = []
    try:
        cluster.dismiss("only", only)
        with pytest.raises(
            SymdualError, match="the cluster has had no workers for 0 s; what is done is kept, continue"
        ):
            run_sweep(
                sweep(symdual.problem(numba_toy_package), ["ce"], 20),
                place / "alone",
                module.on_cluster(client, said.append, told.append),
            )
    finally:
        client.close(timeout=1)
    assert told == ["the cluster has no workers any more; waiting up to 0 s for one to join, what is done is kept"]
    assert said[2] == "waiting for a worker for 0 s"


def test_a_worker_is_given_the_numbers_of_the_problem_not_those_of_its_files(
    numba_toy_package: LoadedPackage, tmp_path: Path
) -> None:
    from symdual.runtime.cluster import _Delivered, parcel

    numbers = {**numba_toy_package.numbers, "process_noise": np.array([[0.7]])}
    louder = replace(numba_toy_package, numbers=numbers)
    content = parcel(sweep(replace(symdual.problem(numba_toy_package), package=louder), ["ce"], 4))
    (tmp_path / "toy").mkdir()
    for name, text in content.files["toy"].items():
        (tmp_path / "toy" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "toy" / name).write_bytes(text)
    received = _Delivered(content, tmp_path).sweep.problem
    assert received.package.numbers["process_noise"].tolist() == [[0.7]]
    assert received.plant.numbers["process_noise"].tolist() == numba_toy_package.numbers["process_noise"].tolist()


def complaint(log: Path) -> str:
    """All that a process has said, but for how soon it was ready."""
    lines = log.read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("ready in ")).strip()


# what is different on a worker, done to it before it takes part, and what the client then says
STRANGERS = {
    "another version": (
        "import symdual; symdual.__version__ = '9.9'",
        r"a worker of the cluster has symdual 9\.9 instead of [\d.]+; the results would not be the same",
    ),
    "other libraries": (
        "import importlib.metadata as m, numba, numpy; own = m.version; numpy.__version__ = '1.99'\n"
        "m.version = lambda name: '2.0' if name == 'numba' else own(name)",
        r"a worker of the cluster has numpy 1\.99 instead of [\d.]+, numba 2\.0 instead of [\d.]+; the results would",
    ),
    "no place to write": (
        "def dask_setup(worker): worker.local_directory = '/dev/null/nowhere'",
        r"the worker tcp://\S+ cannot write to /dev/null/nowhere/symdual-\w+: Not a directory",
    ),
    "a failure": (
        "import symdual.runtime.sweep as sweep\ndef fail(*a, **k): raise MemoryError('no room')\nsweep.run_part = fail",
        r"runs 0 to 15 of (dual|ce) failed on a worker of the cluster \(MemoryError: no room\); what is done is kept",
    ),
    "libraries that do not fit together": (
        "import numpy; numpy.__version__ = '1.0'",
        r"a worker of the cluster cannot load symdual: .*Numba needs NumPy",
    ),
    "no symdual": (
        "import sys; sys.modules['symdual'] = None",
        r"a worker of the cluster cannot load symdual: .*ModuleNotFoundError.* install the same symdual there",
    ),
}


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_workers_that_must_not_or_cannot_take_part(
    undisturbed: bytes, place: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    for number, (code, sentence) in enumerate(STRANGERS.values()):
        (place / "different.py").write_text(code + "\n")
        stranger = cluster.worker(f"stranger{number}", "--preload", str(place / "different.py"))
        result = CliRunner().invoke(main, [*simulate(place, "--cluster", cluster.address)[1:]])
        assert result.exit_code == 2 and re.match(f"symdual: {sentence}", result.stderr), result.stderr
        assert len(result.stderr.strip().splitlines()) == 1 and not done(place)
        cluster.dismiss(f"stranger{number}", stranger)


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_same_workers_take_more_controllers_of_the_same_sweep(
    numba_toy_package: LoadedPackage, place: Path, cluster: Cluster, undisturbed: bytes
) -> None:
    from symdual.runtime.cluster import connect, on_cluster

    cluster.worker("first")
    problem = symdual.problem(numba_toy_package)
    client = connect(cluster.address)
    try:
        run_sweep(sweep(problem, ["ce"], 20), place / "grown", on_cluster(client))
        grown = run_sweep(sweep(problem, ["ce", "dual"], 40), place / "grown", on_cluster(client), resume=True)
    finally:
        client.close(timeout=1)
    expected = run_sweep(sweep(problem, ["ce", "dual"], 40), place / "expected", on_this_machine())
    assert grown.read_bytes() == expected.read_bytes()


def test_no_scheduler_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    from symdual.runtime import cluster as module
    from symdual.runtime.cluster import connect

    monkeypatch.setattr(module, "_ANSWER", 2.0)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(SymdualError, match=f"no Dask scheduler answers at {address}"):
        connect(address)


@pytest.mark.parametrize("address", ["foo", "", "tcp://", "tcp://[::1", "tcp://127.0.0.1:x", "nonsense://x"])
def test_what_is_no_address(address: str) -> None:
    from symdual.runtime.cluster import connect

    with pytest.raises(SymdualError, match=f'"{re.escape(address)}" is no address of a Dask scheduler, which looks'):
        connect(address)


def test_something_else_at_the_address() -> None:
    from symdual.runtime.cluster import connect

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        def answer() -> None:
            with server.accept()[0] as visitor:
                visitor.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                visitor.recv(1000)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(SymdualError, match=f"no Dask scheduler answers at {address}"):
            connect(address)
        thread.join()


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_scheduler_without_workers(cluster: Cluster) -> None:
    from symdual.runtime.cluster import connect

    told: list[str] = []
    with pytest.raises(SymdualError, match="has no workers and got none in 10 s; start some with `dask worker`"):
        connect(cluster.address, told.append)
    assert told == [f"the Dask scheduler at {cluster.address} has no workers yet; waiting up to 10 s for one to join"]


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_python_is_told_that_there_are_no_workers_before_it_waits(
    numba_toy_package: LoadedPackage, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from symdual.runtime import cluster as module

    monkeypatch.setattr(module, "_PATIENCE", 0.5)
    with (
        pytest.raises(SymdualError, match="has no workers and got none in 0 s; start some with `dask worker`"),
        pytest.warns(
            SymdualWarning, match=f"at {cluster.address} has no workers yet; waiting up to 0 s for one to join"
        ),
    ):
        symdual.sweep(numba_toy_package, "ce", runs=2, folder=tmp_path, cluster=cluster.address)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_python_is_told_that_the_last_worker_has_gone(
    numba_toy_package: LoadedPackage, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from symdual.runtime import cluster as module

    monkeypatch.setattr(module, "_LOOK", 0.05)
    monkeypatch.setattr(module, "_LONGEST_WAIT", 0.5)
    only, deliver = cluster.worker("only"), module._deliver

    def dismiss_and_deliver(client: object, delivery: module.Delivery) -> None:
        cluster.dismiss("only", only)
        deliver(client, delivery)

    monkeypatch.setattr(module, "_deliver", dismiss_and_deliver)
    with (
        pytest.raises(SymdualError, match="the cluster has had no workers for 0 s; what is done is kept"),
        pytest.warns(SymdualWarning, match="the cluster has no workers any more; waiting up to 0 s for one to join"),
    ):
        symdual.sweep(numba_toy_package, "ce", runs=2, folder=tmp_path, cluster=cluster.address)


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("scenarios", "valved"),
        ("scenarios", "heated"),
        ("scenarios", "walled"),
        ("scenarios", "squeezed"),
        ("noises", "lit_rooted"),
    ],
)
def test_a_parcel_carries_all_that_a_task_says(
    shared_models: Callable[[Path], Path], tmp_path: Path, file: str, name: str
) -> None:
    """Choices, signals, costs, constraints, the past, truths that jump, noise: the worker's sweep is the same one."""
    from symdual.runtime.cluster import _Delivered, _place, parcel

    folder = shared_models(ROOT / f"tests/models/{file}.py")
    plan = sweep(symdual.problem(load(folder / name)), ["ce", "dual"], 3)
    content = pickle.loads(pickle.dumps(parcel(plan)))
    for package, files in content.files.items():
        for own, code in files.items():
            _place(tmp_path / package / own, code)
    there = _Delivered(content, tmp_path).sweep
    assert there.description == plan.description
    here, drawn = (one.noise_draws([Chunk("ce", 0, 3)]) for one in (plan, there))
    assert all(np.array_equal(a, b) for a, b in zip(here, drawn, strict=True))


def test_packages_through_c_stay_at_home(shared_models: Callable[[Path], Path]) -> None:
    from symdual.backends.c import compilers
    from symdual.runtime.cluster import parcel

    try:
        compilers.compiler()
    except compilers.NoCompiler as missing:
        pytest.skip(str(missing))
    folder = shared_models(ROOT / "tests/models/scenarios.py")
    with pytest.raises(SymdualError, match="load valved with the backend numba"):
        parcel(sweep(symdual.problem(symdual.load(folder / "valved", backend="c")), ["ce"], 2))
