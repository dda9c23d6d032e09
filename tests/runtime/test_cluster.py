"""Sweeps on a real Dask cluster on this machine: workers and the process itself are killed, the bytes stay the same."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from symdual.errors import SymdualError
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import problem
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


class Cluster:
    """A scheduler with workers that are processes of their own."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._file = folder / "scheduler.json"
        options = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        self._start("distributed.cli.dask_scheduler", *options, name="scheduler")
        # the scheduler does not write its file in one go
        wait_for(lambda: self._file.exists() and self._file.read_text().rstrip().endswith("}"), "the scheduler")
        self.address = str(json.loads(self._file.read_text())["address"])

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        options = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(self.folder / name))
        return self._start("distributed.cli.dask_worker", *options, name=name)

    def _start(self, *arguments: str, name: str) -> subprocess.Popen[bytes]:
        log = self.folder / f"{name}.log"
        files = ("--scheduler-file", str(self._file))
        return self._stack.enter_context(process(*arguments, *files, folder=self.folder, log=log, numba=False))


def wait_for(condition: Callable[[], object], what: str, seconds: float = 120.0) -> None:
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
def undisturbed(toy_package: LoadedPackage, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of the sweep when it runs here; also compiles the package."""
    plan = sweep(problem(toy_package), ["dual", "ce"], RUNS)
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


def test_killed_workers_do_not_show(undisturbed: bytes, place: Path, cluster: Cluster, packages: Path) -> None:
    first, second = cluster.worker("first"), cluster.worker("second")
    log, late = place / "simulate.log", cluster.folder / "late"
    seen: set[str] = set()

    def over() -> bool:
        seen.update(compiled(late))
        return running.poll() is not None

    with process(*simulate(place, "--cluster", cluster.address), folder=place, log=log) as running:
        wait_for(lambda: done(place) >= 3 or running.poll() is not None, "chunks")
        second.send_signal(signal.SIGSTOP)  # nothing is finished until the late worker is there
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
    cluster.worker("first")
    log = place / "simulate.log"
    with process(*simulate(place, "--cluster", cluster.address), folder=place, log=log) as running:
        wait_for(lambda: done(place) >= 5 or running.poll() is not None, "chunks")
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert 5 <= done(place) < CHUNKS, log.read_text()
    with process(*simulate(place, "--resume"), folder=place, log=log) as running:
        assert running.wait(timeout=120) == 0, log.read_text()
    assert (place / "results/toy/results.npz").read_bytes() == undisturbed


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_scheduler_at_the_address() -> None:
    from symdual.runtime.cluster import connect

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    for wrong in (address, "nonsense://x"):
        with pytest.raises(SymdualError, match=f"no Dask scheduler answers at {wrong}"):
            connect(wrong)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_scheduler_without_workers(cluster: Cluster) -> None:
    from symdual.runtime.cluster import connect

    with pytest.raises(SymdualError, match="has no workers; start some with `dask worker`"):
        connect(cluster.address)
