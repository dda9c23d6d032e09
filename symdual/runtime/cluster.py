"""Runs the chunks of a sweep on a Dask cluster.

Every worker receives the generated packages once, with the machine code that numba has cached beside them, and so does
every worker that joins later. A task is then no more than the name of a chunk; its result comes back as bytes. When a
worker dies, Dask gives its chunks to another one.
"""

from __future__ import annotations

import asyncio
import importlib
import itertools
import logging
import sys
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn

from symdual.common.atomic_files import write_atomically
from symdual.common.errors import SymdualError
from symdual.common.lazy import cached_property
from symdual.runtime.checkpoints import CONTINUE
from symdual.runtime.closed_loop import Settings
from symdual.runtime.forking import Lock
from symdual.runtime.loading import LoadedPackage, load
from symdual.runtime.problem import Problem
from symdual.runtime.results import Chunk
from symdual.runtime.sweep import Execute, Sweep, versions
from symdual.runtime.threads import Background, warm

try:
    import distributed
except ImportError as missing:
    raise SymdualError("a sweep on a cluster needs dask.distributed: pip install 'symdual[cluster]'") from missing

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

_ANSWER = 30.0  # seconds to wait for an answer of the scheduler, which may be busy
_PATIENCE = 10.0  # seconds to wait for its first worker
_FAREWELL = 0.5  # seconds to wait when all is over or interrupted
_LOOK = 2.0  # seconds without a finished chunk after which it is looked whether there are workers at all
_LONGEST_WAIT = 600.0  # seconds to wait for a worker when the last one has gone
_LOST = f"the connection to the cluster was lost; what is done is kept, {CONTINUE}"
_DELIVERED: dict[tuple[str, str], _Delivered] = {}  # by the worker's address and the key of the parcel
_one_at_a_time = Lock()  # numba's threads serve one caller at a time


@dataclass(frozen=True, eq=False)
class Parcel:
    """All that a worker needs to know of a sweep; `key` names this delivery among all others, `digest` its packages."""

    key: str
    digest: str
    files: Mapping[str, Mapping[str, bytes]]
    names: tuple[str, str]
    numbers: tuple[dict[str, Any], dict[str, Any]]
    arrays: Mapping[str, Any]
    plan: tuple[tuple[str, ...], int, int, Settings]
    versions: Mapping[str, str]


def parcel(sweep: Sweep) -> Parcel:
    """Pack a sweep: the files of its packages, the problem as arrays, and the plan."""
    problem = sweep.problem
    if problem.package.backend != "numba":
        raise SymdualError(
            f"workers of a cluster run code that numba compiles: load {problem.package.name} with the backend numba"
        )
    packages = {package.name: package for package in (problem.package, problem.plant)}
    arrays = {f.name: getattr(problem, f.name) for f in fields(Problem) if f.name not in ("package", "plant")}
    return Parcel(
        key=uuid.uuid4().hex,
        digest=sweep.description.digest,
        files={name: _files(package) for name, package in packages.items()},
        names=(problem.package.name, problem.plant.name),
        numbers=(problem.package.numbers, problem.plant.numbers),  # which may be other ones than the files'
        arrays=arrays,
        plan=(sweep.controllers, sweep.runs, sweep.seed, sweep.settings),
        versions=versions(),
    )


def _files(package: LoadedPackage) -> dict[str, bytes]:
    """The files of a package, and the compiled code that numba keeps for it, here or in a cache folder of its own."""
    found = dict(package.files)
    for folder, cache in _caches(package).items():
        compiled = sorted(file for file in cache.glob("*") if file.suffix in (".nbi", ".nbc"))
        found |= {f"{folder}/__pycache__/{file.name}".removeprefix("./"): file.read_bytes() for file in compiled}
    return found


def _caches(package: LoadedPackage) -> dict[str, Path]:
    """Where numba keeps the compiled code of each folder of a package, as far as modules of it are imported."""
    found = {}
    for place in package.modules.values():
        name = f"{package.module.__name__}.{place.removesuffix('.py').replace('/', '.')}"
        for value in vars(sys.modules[name]).values() if name in sys.modules else ():
            if getattr(value, "__module__", None) == name and (kept := _cache_path(value)):
                found[str(PurePosixPath(place).parent)] = Path(kept)
    return found


def _cache_path(function: Any) -> str | None:
    """Where numba keeps a function; None for one that is not kept, or not numba's."""
    return getattr(getattr(function, "stats", None), "cache_path", None)


class Delivery(distributed.WorkerPlugin):
    """Puts the packages of a sweep on the disk of each worker, before its first task."""

    def __init__(self, content: Parcel) -> None:
        self.name = f"symdual-{content.key}"
        self._content = content

    def setup(self, worker: Worker) -> None:
        """Unpack on a worker that has joined; one that has no room for it says so when it is to run a chunk."""
        importlib.import_module("numba")  # one that cannot import it is known before it is given work
        folder = Path(worker.local_directory) / f"symdual-{self._content.digest[:16]}"
        delivered = _DELIVERED[worker.address, self._content.key] = _Delivered(self._content, folder)
        try:
            for package, files in self._content.files.items():
                for name, content in files.items():
                    _place(folder / package / name, content)
        except OSError as failure:
            delivered.refusal = f"the worker {worker.address} cannot write to {folder}: {failure.strerror}"

    def teardown(self, worker: Worker) -> None:
        """Forget the sweep; its files go with the worker's folder, since numba looks at those of loaded code again."""
        del _DELIVERED[worker.address, self._content.key]


def _place(file: Path, content: bytes) -> None:
    """Write a file that is not there yet; one that another sweep may be reading is replaced in one go."""
    if file.is_file() and file.read_bytes() == content:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, content)


@dataclass(eq=False)
class _Delivered:
    """A parcel on a worker."""

    content: Parcel
    folder: Path
    refusal: str | None = None

    @cached_property
    def sweep(self) -> Sweep:
        """The sweep, or in one sentence why this worker must not take part in it."""
        if self.refusal is not None:
            raise SymdualError(self.refusal)
        own, content = versions(), self.content
        pairs = [(name, own[name], wanted) for name, wanted in content.versions.items() if own[name] != wanted]
        different = [f"{name} {there} instead of {wanted}" for name, there, wanted in pairs]
        if different:
            raise SymdualError(f"a worker of the cluster has {', '.join(different)}; the results would not be the same")
        package, plant = (
            replace(load(self.folder / name), numbers=numbers)
            for name, numbers in zip(content.names, content.numbers, strict=True)
        )
        return Sweep(Problem(package=package, plant=plant, **content.arrays), *content.plan)


def run_chunk(key: str, chunk: Chunk) -> bytes:
    """Run one chunk on a worker, with all of the worker's threads."""
    import numba

    worker = distributed.get_worker()
    with _one_at_a_time:
        numba.set_num_threads(max(1, min(worker.state.nthreads, numba.get_num_threads())))
        sweep = _DELIVERED[worker.address, key].sweep
        ((_, payload),) = sweep.payloads([chunk], sweep.noise_draws([chunk]))
        return payload


def connect(address: str, tell: Callable[[str], None] = lambda sentence: None) -> Client:
    """Connect to a scheduler that has workers, or say within a minute what is missing.

    `tell` is told, in a whole sentence, when there are no workers yet and for how long one is waited for.

    From then on Dask logs nothing below a critical fault in this process: what becomes of the connection is said in
    sentences, and its tracebacks would only hide them.
    """
    for name in ("distributed", "distributed.client", "tornado.application"):  # those that Dask gives a level
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with Background() as background:
        background.call(asyncio.run, _require_scheduler(address))
    try:
        client = distributed.Client(address, timeout=_ANSWER, set_as_default=False)
    except OSError as failure:
        raise SymdualError(f"no Dask scheduler answers at {address}") from failure
    try:
        if not client.scheduler_info()["workers"]:
            tell(f"the Dask scheduler at {address} has no workers yet; waiting up to {_PATIENCE:.0f} s for one to join")
        client.wait_for_workers(1, timeout=_PATIENCE)
    except (TimeoutError, distributed.TimeoutError) as failure:
        client.close(timeout=1)
        raise SymdualError(
            f"the Dask scheduler at {address} has no workers and got none in {_PATIENCE:.0f} s; "
            "start some with `dask worker`"
        ) from failure
    return client


async def _require_scheduler(address: str) -> None:
    """Raise unless there is a scheduler; asked before there is a client, which would not get over anything else."""
    security = distributed.Security().get_connection_args("client")  # as Dask's configuration has it
    try:
        async with asyncio.timeout(_ANSWER), distributed.rpc(address, connection_args=security) as remote:
            kind = (await remote.identity())["type"]
    except ValueError as failure:
        raise SymdualError(
            f'"{address}" is no address of a Dask scheduler, which looks like tcp://host:8786'
        ) from failure
    except Exception as failure:  # whatever comes of it when something else answers
        raise SymdualError(f"no Dask scheduler answers at {address}") from failure
    if kind != "Scheduler":
        raise SymdualError(f"the Dask {kind.lower()} at {address} is not a scheduler")


def on_cluster(
    client: Client,
    say: Callable[[str], None] = lambda what: None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Execute:
    """How `run_sweep` runs chunks on a cluster.

    Args:
        say: is told what is going on while no chunk arrives.
        tell: is told, in a whole sentence, when there are no workers any more.
    """

    def execute(sweep: Sweep, pending: list[Chunk]) -> Generator[tuple[Chunk, bytes], None, None]:
        with Background() as background:
            for name in dict.fromkeys(chunk.controller for chunk in pending):
                say(f"compiling or loading {name}")
                background.call(warm, sweep, name)  # so that the workers receive compiled code
        say("delivering to the workers")
        content = parcel(sweep)
        delivery = Delivery(content)
        try:
            _deliver(client, delivery)
            yield from _gather(client, content.key, pending, _Watch(client, say, tell))
        except (OSError, CancelledError) as failure:
            raise SymdualError(_LOST) from failure
        finally:
            _take_back(client, delivery.name)

    return execute


def _deliver(client: Client, delivery: Delivery) -> None:
    try:
        client.register_plugin(delivery)
    except (OSError, CancelledError):
        raise
    except Exception as failure:  # whatever importing symdual may raise on a worker
        raise SymdualError(
            f"a worker of the cluster cannot load symdual: {failure}; install the same symdual there"
        ) from failure


class _Watch:
    """Looks now and then, while no chunk arrives, whether there is anybody who could run one."""

    def __init__(self, client: Client, say: Callable[[str], None], tell: Callable[[str], None]) -> None:
        self._client, self._say, self._tell = client, say, tell
        self._alone: float | None = None  # since when there is no worker
        self._looked = time.monotonic()

    def look(self) -> None:
        """Say that there is none, and for how long; raise when that was too long."""
        now = time.monotonic()
        if now - self._looked < _LOOK:
            return
        self._looked = now
        try:
            threads = _threads(self._client)
        except TimeoutError:  # a scheduler that has no time to answer is at work
            return
        if threads:
            self._alone = None
            return
        if self._alone is None:
            self._alone = now
            self._tell(
                f"the cluster has no workers any more; waiting up to {_LONGEST_WAIT:.0f} s for one to join, "
                "what is done is kept"
            )
        self._say(f"waiting for a worker for {now - self._alone:.0f} s")
        if now - self._alone > _LONGEST_WAIT:
            raise SymdualError(
                f"the cluster has had no workers for {_LONGEST_WAIT:.0f} s; what is done is kept, {CONTINUE}"
            )


def _gather(client: Client, key: str, pending: list[Chunk], watch: _Watch) -> Iterator[tuple[Chunk, bytes]]:
    """Keep every thread of the cluster busy, and no more chunks on the way than that takes."""
    waiting = iter(pending)
    chunks: dict[Any, Chunk] = {}
    arriving = distributed.as_completed(loop=client.loop)  # with_results would wait for ever if the scheduler ended

    def send(count: int) -> None:
        for chunk in itertools.islice(waiting, max(0, count)):
            future = client.submit(run_chunk, key, chunk, pure=False)
            chunks[future.key] = chunk
            arriving.add(future)

    send(_ahead(client))
    with Background() as background:
        while chunks:
            batch = background.call(arriving.next_batch, meanwhile=watch.look)
            for future in batch:
                if future.status != "finished":
                    _explain(chunks[future.key], future)
            # a result that was lost with its worker is waited for until it is there again
            payloads = background.call(client.gather, batch, meanwhile=watch.look)
            for future, payload in zip(batch, payloads, strict=True):
                yield chunks.pop(future.key), payload
            send(_ahead(client) - len(chunks))


def _ahead(client: Client) -> int:
    """How many chunks may be on the way."""
    return 2 * max(1, _threads(client)) + 4


def _threads(client: Client) -> int:
    """The threads of all workers: a scheduler that is gone is not waited for, as `client.nthreads` would."""
    if client.status != "running":
        raise SymdualError(_LOST)
    return int(sum(client.sync(client.scheduler.ncores, callback_timeout=_ANSWER).values()))


def _explain(chunk: Chunk, future: Future) -> NoReturn:
    """Raise what has become of a chunk that did not arrive."""
    if future.status != "error":
        raise SymdualError(_LOST)
    problem = future.exception(timeout=_ANSWER)
    if isinstance(problem, distributed.KilledWorker):
        raise SymdualError(
            f"{chunk} ended several workers of the cluster one after the other; what is done is kept, "
            f"look at the workers' logs and {CONTINUE}"
        )
    if isinstance(problem, SymdualError):
        raise problem
    raise SymdualError(
        f"{chunk} failed on a worker of the cluster ({type(problem).__name__}: {problem}); what is done is "
        f"kept, {CONTINUE}"
    ) from problem


def _take_back(client: Client, name: str) -> None:
    """Tell the workers to forget the sweep; a cluster that is gone has forgotten it already."""
    if client.status == "running":
        with suppress(OSError, ValueError):
            client.sync(client.scheduler.unregister_worker_plugin, name=name, callback_timeout=_FAREWELL)
