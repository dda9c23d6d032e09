"""Runs the chunks of a sweep on a Dask cluster.

Every worker receives the generated packages once, with the machine code that numba has cached beside them, and so does
every worker that joins later. A task is then no more than the name of a chunk; its result comes back as bytes. When a
worker dies, Dask gives its chunks to another one.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from symdual.errors import SymdualError
from symdual.runtime.closed_loop import Settings
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.problem import Problem
from symdual.runtime.results import Chunk
from symdual.runtime.sweep import Execute, Sweep, versions
from symdual.runtime.threads import warm

try:
    import distributed
except ImportError as missing:
    raise SymdualError("a sweep on a cluster needs dask.distributed: pip install 'symdual[cluster]'") from missing

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

_PATIENCE = 4.0  # seconds to wait for the scheduler, and again for its first worker
_LOST = "the connection to the cluster was lost; what is done is kept, continue with --resume"
_KNOWN: dict[str, Parcel] = {}
_one_at_a_time = threading.Lock()  # numba's threads serve one caller at a time


@dataclass(frozen=True, eq=False)
class Parcel:
    """All that a worker needs to know of a sweep; `digest` names it."""

    digest: str
    files: Mapping[str, Mapping[str, bytes]]
    names: tuple[str, str]
    task: Mapping[str, Any]
    plan: tuple[tuple[str, ...], int, int, Settings]
    versions: Mapping[str, str]


def parcel(sweep: Sweep) -> Parcel:
    """Pack a sweep: the files of its packages, the task as arrays, and the plan."""
    problem = sweep.problem
    packages = {package.name: package for package in (problem.package, problem.plant)}
    task = {f.name: getattr(problem, f.name) for f in fields(Problem) if f.name not in ("package", "plant")}
    return Parcel(
        digest=sweep.description.digest,
        files={name: _files(package) for name, package in packages.items()},
        names=(problem.package.name, problem.plant.name),
        task=task,
        plan=(sweep.controllers, sweep.runs, sweep.seed, sweep.settings),
        versions=versions(),
    )


def _files(package: LoadedPackage) -> dict[str, bytes]:
    """The files of a package, and the compiled code that numba keeps for it, here or in a cache folder of its own."""
    files = {file.name: file.read_bytes() for file in sorted(package.folder.iterdir()) if file.is_file()}
    cache = Path(package.kernels.dynamics.stats.cache_path)
    compiled = sorted(file for file in cache.iterdir() if file.suffix in (".nbi", ".nbc"))
    return files | {f"__pycache__/{file.name}": file.read_bytes() for file in compiled}


class Delivery(distributed.WorkerPlugin):
    """Puts the packages of a sweep on the disk of each worker, before its first task."""

    def __init__(self, content: Parcel) -> None:
        self.name = f"symdual-{content.digest}"
        self._content = content

    def setup(self, worker: Worker) -> None:
        """Unpack on a worker that has joined."""
        folder = _place(Path(worker.local_directory), self._content.digest)
        for package, files in self._content.files.items():
            for name, content in files.items():
                file = folder / package / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        _KNOWN[self._content.digest] = self._content

    def teardown(self, worker: Worker) -> None:
        """Forget the sweep; its files go with the worker's folder."""
        _KNOWN.pop(self._content.digest, None)


def _place(local_directory: Path, digest: str) -> Path:
    return local_directory / f"symdual-{digest[:16]}"


def run_chunk(digest: str, chunk: Chunk) -> bytes:
    """Run one chunk on a worker, with all of the worker's threads."""
    import numba

    worker = distributed.get_worker()
    with _one_at_a_time:
        numba.set_num_threads(max(1, min(worker.state.nthreads, numba.get_num_threads())))
        sweep = _unpacked(digest, _place(Path(worker.local_directory), digest))
        ((_, payload),) = sweep.payloads([chunk], sweep.luck([chunk]))
        return payload


@cache
def _unpacked(digest: str, folder: Path) -> Sweep:
    content = _KNOWN[digest]
    own = versions()
    pairs = [(name, own[name], wanted) for name, wanted in content.versions.items() if own[name] != wanted]
    different = [f"{name} {there} instead of {wanted}" for name, there, wanted in pairs]
    if different:
        raise SymdualError(f"a worker of the cluster has {', '.join(different)}; the results would not be the same")
    package, plant = (load(folder / name) for name in content.names)
    return Sweep(Problem(package=package, plant=plant, **content.task), *content.plan)


def connect(address: str) -> Client:
    """Connect to a scheduler that has workers, or say within ten seconds what is missing."""
    try:
        client = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError) as problem:
        raise SymdualError(f"no Dask scheduler answers at {address}") from problem
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except (TimeoutError, distributed.TimeoutError) as problem:
        client.close(timeout=1)
        raise SymdualError(
            f"the Dask scheduler at {address} has no workers; start some with `dask worker`"
        ) from problem
    return client


def on_cluster(client: Client, say: Callable[[str], None] = lambda what: None) -> Execute:
    """How `run_sweep` runs chunks on a cluster; `say` is told what is going on before the first chunk."""

    def execute(sweep: Sweep, pending: list[Chunk]) -> Iterator[tuple[Chunk, bytes]]:
        for name in dict.fromkeys(chunk.controller for chunk in pending):
            say(f"compiling or loading {name}")
            warm(sweep, name)  # so that the workers receive compiled code
        say("delivering to the workers")
        content = parcel(sweep)
        delivery = Delivery(content)
        try:
            client.register_plugin(delivery)
            yield from _gather(client, content.digest, pending)
        except ModuleNotFoundError as problem:
            raise SymdualError(f"the workers of the cluster have no {problem.name}; install symdual there") from problem
        except OSError as problem:
            raise SymdualError(_LOST) from problem
        finally:
            _take_back(client, delivery.name)

    return execute


def _gather(client: Client, digest: str, pending: list[Chunk]) -> Iterator[tuple[Chunk, bytes]]:
    """Keep every thread of the cluster busy, and no more chunks on the way than that takes."""
    waiting = iter(pending)
    chunks: dict[Any, Chunk] = {}
    arriving = distributed.as_completed(loop=client.loop, with_results=True, raise_errors=False)

    def send(count: int) -> None:
        for chunk in itertools.islice(waiting, max(0, count)):
            future = client.submit(run_chunk, digest, chunk, pure=False)
            chunks[future.key] = chunk
            arriving.add(future)

    send(_ahead(client))
    for future, result in arriving:
        chunk = chunks.pop(future.key)
        if future.status != "finished":
            _explain(chunk, future, result)
        yield chunk, result
        send(_ahead(client) - len(chunks))


def _ahead(client: Client) -> int:
    return 2 * max(1, int(sum(client.nthreads().values()))) + 4


def _explain(chunk: Chunk, future: Future, result: Any) -> NoReturn:
    """Raise what has become of a chunk that did not arrive."""
    if future.status != "error":
        raise SymdualError(_LOST)
    _, problem, _ = result
    if isinstance(problem, distributed.KilledWorker):
        raise SymdualError(
            f"{chunk} ended several workers of the cluster one after the other; what is done is kept, "
            "look at the workers' logs and continue with --resume"
        )
    raise problem


def _take_back(client: Client, name: str) -> None:
    """Tell the workers to forget the sweep; a cluster that is gone has forgotten it already."""
    if client.status == "running":
        with suppress(OSError, ValueError):
            client.unregister_worker_plugin(name)
