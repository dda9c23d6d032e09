"""The results of a sweep: one file of arrays by controller, run and time that numpy reads without symdual.

    stored = numpy.load("results.npz")
    stored["dual.costs"]                     # L of every run with the controller `dual`, (runs,)
    stored["dual.states"]                    # (runs, T + 1, states)
    json.loads(stored["about.json"])         # settings, seed, digests, versions, and what every array means

The file is an uncompressed .npz archive. Its first member is `about.json`; then come arrays of the problem
(`reference`, `state_cost`, `input_cost`) and, for each controller, the arrays of `FIELDS` under the names
`<controller>.<field>`. The same sweep always gives the same bytes. `about.json` lists the runs computed together
(chunks) with the SHA-256 of their numbers, so that what is whole in a damaged file can be told from what is lost.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from symdual.common.archives import Member, array_member, data_offsets, text_member, write_archive
from symdual.common.arrays import Array
from symdual.common.atomic_files import atomic_file, remove_unfinished
from symdual.common.errors import SymdualError
from symdual.runtime.labelled import Labelled

FORMAT = "symdual sweep, version 4"
ABOUT = "about.json"
SHARED = ("reference", "state_cost", "input_cost")

#: what reading a damaged file, or one that somebody made up, may raise; too deep a nesting is a RuntimeError
UNREADABLE = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RuntimeError, OverflowError, MemoryError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)


class Field(NamedTuple):
    """An array that is kept of every controller; its first axis is the run."""

    name: str
    dtype: str
    axes: tuple[str, ...]
    meaning: str


FIELDS = (
    Field("states", "<f8", ("run", "time", "state"), "true states x_0 .. x_T"),
    Field("inputs", "<f8", ("run", "step", "input"), "inputs u_0 .. u_{T-1}"),
    Field("means", "<f8", ("run", "time", "belief"), "mean of the belief on states and unknowns"),
    Field("variances", "<f8", ("run", "time", "belief"), "variances of the belief on states and unknowns"),
    Field("step_costs", "<f8", ("run", "time"), "(x_k - r_k)' W_k (x_k - r_k) + u_k' U_k u_k; without u at T"),
    Field("plan_status", "<f8", ("run", "time"), "0 if the certainty-equivalent plan converged; NaN at T"),
    Field("fallbacks", "<f8", ("run", "time"), "candidates that fell back to order 1; NaN at T"),
    Field("nis", "<f8", ("run", "time"), "normalised innovation squared of y_k; NaN at 0"),
    Field("measured", "<f8", ("run", "time"), "measured entries of y_k; NaN at 0"),
    Field("log_likelihood", "<f8", ("run", "time"), "log-likelihood of y_k; NaN at 0"),
    Field("planned_costs", "<f8", ("run", "time"), "nominal cost to go of the chosen input; NaN at T"),
    Field("costs", "<f8", ("run",), "L, the sum of step_costs; NaN if the episode failed"),
    Field("nees_state", "<f8", ("run",), "(x - m)' S^-1 (x - m) / rank S of the state at T; NaN if S = 0"),
    Field("nees_parameters", "<f8", ("run",), "the same of theta; NaN if unknown to the plant or if S = 0"),
    Field("outcomes", "<i8", ("run",), "how the episode ended: an index into `outcomes` of about.json"),
    Field(
        "constraints", "<f8", ("run", "time", "constraint"), "constraints at the true states, kept where at most zero"
    ),
    Field("truths", "<f8", ("run", "parameter"), "the plant's true parameters at the start"),
    Field(
        "losses",
        "<f8",
        ("run", "process", "loss"),
        "of each Gaussian process: values taken as combinations of remembered ones, the largest share of a prior "
        "variance that this left open, steps with raised process noise",
    ),
)


def axis_of(field: str) -> str:
    """What the last axis of a field goes over."""
    return next(known.axes[-1] for known in FIELDS if known.name == field)


class Chunk(NamedTuple):
    """The runs start .. stop-1 of one controller, which are computed and kept together."""

    controller: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"runs {self.start} to {self.stop - 1} of {self.controller}"


@dataclass(frozen=True)
class Description:
    """What a results file says about itself besides its numbers.

    Args:
        identity: model, scenario, digests, settings, seed, versions: what must agree for runs to belong together.
        sizes: for each controller the length of every axis but `run`.
    """

    identity: Mapping[str, Any]
    controllers: tuple[str, ...]
    runs: int
    sizes: Mapping[str, Mapping[str, int]]

    @property
    def digest(self) -> str:
        """The SHA-256 of the identity."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()

    def shape(self, controller: str, field: Field, runs: int) -> tuple[int, ...]:
        """The shape of a field of some runs."""
        return (runs, *(self.sizes[controller][axis] for axis in field.axes[1:]))

    def spans(self, controller: str, runs: int) -> list[tuple[int, int]]:
        """First byte and number of bytes of each field in the payload of some runs."""
        sizes = [math.prod(self.shape(controller, f, runs)) * np.dtype(f.dtype).itemsize for f in FIELDS]
        return [(sum(sizes[:i]), size) for i, size in enumerate(sizes)]

    def payload(self, chunk: Chunk, arrays: Mapping[str, NDArray[Any]]) -> bytes:
        """The fields of a chunk, one after the other, as bytes."""
        parts = []
        for field in FIELDS:
            array = np.ascontiguousarray(arrays[field.name], dtype=field.dtype)
            assert array.shape == self.shape(chunk.controller, field, chunk.stop - chunk.start), field.name
            parts.append(array.tobytes())
        return b"".join(parts)

    def to_json(self) -> dict[str, Any]:
        """The description as plain data."""
        return {
            **self.identity,
            "runs": self.runs,
            "controllers": list(self.controllers),
            "sizes": {name: dict(self.sizes[name]) for name in self.controllers},
        }


def described(about: Any) -> Description:
    """The description that `Description.to_json` gave, further keys left out; one of `UNREADABLE` for anything else."""
    if not (isinstance(about, dict) and all(isinstance(about.get(key), kind) for key, kind in _KINDS.items())):
        raise ValueError("a description lacks something")
    controllers, sizes = tuple(about["controllers"]), about["sizes"]
    axes = {axis for field in FIELDS for axis in field.axes[1:]}
    known = all(isinstance(name, str) for name in controllers) and len(set(controllers)) == len(controllers)
    if not (known and controllers and set(sizes) == set(controllers) and _is_count(about["runs"], least=1)):
        raise ValueError("a description names no controllers or no runs")
    if not all(isinstance(own, dict) and axes <= set(own) and _are_sizes(own) for own in sizes.values()):
        raise ValueError("a description has sizes that are none")
    _require_sense(about)
    own = {"runs", "controllers", "sizes", "chunks", "arrays"}
    identity = {key: value for key, value in about.items() if key not in own}
    return Description(identity, controllers, about["runs"], sizes)


def _require_sense(about: Mapping[str, Any]) -> None:
    """Raise one of `UNREADABLE` where a description contradicts itself: numbers would be taken for others."""
    names, horizon = about["names"], about["horizon"]
    listed = [names.get(key) for key in ("states", "inputs", "measurements", "unknowns")]
    if not all(map(_are_texts, [*listed, *(names.get(key, []) for key in ("belief", "parameters"))])):
        raise ValueError("a description names no states or inputs")
    if not (about["settings"].get("truth") in _TRUTHS and _is_count(horizon, least=1)):
        raise ValueError("a description does not say how the runs were made")
    for own in about["sizes"].values():
        named = len(names["states"]), len(names["inputs"])
        if (own["step"], own["time"], own["state"], own["input"]) != (horizon, horizon + 1, *named):
            raise ValueError("a description has sizes that contradict its horizon or its names")
        if not (_are_texts(about.get("constraints", []), own["constraint"]) and _are_texts(about["outcomes"])):
            raise ValueError("a description does not name its constraints or outcomes")
    for kept in about["processes"].values():
        if not all(isinstance(kept[key], int | float) for key in ("memory", "noise_floor")):
            raise ValueError("a description does not say what was remembered")


#: what every description has, and of which kind
_KINDS = {
    **dict.fromkeys(("format", "model", "plant", "scenario"), str),
    **dict.fromkeys(("settings", "digests", "names", "processes", "versions", "sizes"), dict),
    **dict.fromkeys(("outcomes", "controllers"), list),
    **dict.fromkeys(("seed", "horizon", "runs"), int),
}


_TRUTHS = ("scenario", "prior", "drift")  #: where true parameters come from, see `closed_loop.Settings`

#: axes that are never empty, whatever the model
_FILLED = ("time", "step", "state", "input", "belief")


def _are_sizes(sizes: Mapping[str, Any]) -> bool:
    return all(_is_count(size, least=axis in _FILLED) for axis, size in sizes.items())


def _are_texts(values: Any, count: int | None = None) -> bool:
    return isinstance(values, list) and all(isinstance(v, str) for v in values) and count in (None, len(values))


def _is_count(value: Any, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


# ------------------------------------------------------------ writing


def write_results(
    path: Path,
    description: Description,
    problem: Mapping[str, Array],
    digests: Mapping[Chunk, str],
    read: Callable[[Chunk, int, int], bytes],
) -> None:
    """Write a results file in one go.

    Args:
        problem: the arrays named by `SHARED`.
        digests: every chunk, in the order of its runs, with the SHA-256 of its payload.
        read: gives bytes of the payload of a chunk, by the first byte and the number of bytes.
    """
    about = _about(description, problem, digests)
    remove_unfinished(path)
    with atomic_file(path) as file:
        write_archive(file, _members(about, problem, read))
        file.flush()
        os.fsync(file.fileno())


def _about(description: Description, problem: Mapping[str, Array], digests: Mapping[Chunk, str]) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "reference": {"axes": ["time", "state"], "meaning": "r_k"},
        "state_cost": {"axes": ["time", "state", "state"], "meaning": "W_k"},
        "input_cost": {"axes": ["step", "input", "input"], "meaning": "U_k"},
    }
    for name in SHARED:
        arrays[name]["shape"] = list(problem[name].shape)
    for field in FIELDS:
        arrays[f"<controller>.{field.name}"] = {"axes": list(field.axes), "meaning": field.meaning}
    chunks = [[*chunk, digest] for chunk, digest in digests.items()]
    return {**description.to_json(), "arrays": arrays, "chunks": chunks}


def _members(
    about: Mapping[str, Any], problem: Mapping[str, Array], read: Callable[[Chunk, int, int], bytes]
) -> list[Member]:
    """All members of a results file; names and sizes follow from `about.json` alone."""
    description = described(about)
    members = [text_member(ABOUT, (json.dumps(about, indent=1) + "\n").encode())]
    for name in SHARED:

        def whole(name: str = name) -> Iterator[bytes]:
            yield np.ascontiguousarray(problem[name], dtype="<f8").tobytes()

        shape = about["arrays"][name]["shape"]
        if not (isinstance(shape, list) and all(map(_is_count, shape))):
            raise ValueError("the shape of an array is none")
        members.append(array_member(name, "<f8", tuple(shape), whole))
    for controller in description.controllers:
        chunks = [chunk for chunk in _digests(about) if chunk.controller == controller]
        for position, field in enumerate(FIELDS):

            def parts(position: int = position, chunks: list[Chunk] = chunks) -> Iterator[bytes]:
                for chunk in chunks:
                    yield read(chunk, *description.spans(chunk.controller, chunk.stop - chunk.start)[position])

            size = description.shape(controller, field, description.runs)
            members.append(array_member(f"{controller}.{field.name}", field.dtype, size, parts))
    return members


def _digests(about: Mapping[str, Any]) -> dict[Chunk, str]:
    """The chunks of a file; raises ValueError unless they are runs of its controllers."""
    found = {Chunk(name, start, stop): digest for name, start, stop, digest in about["chunks"]}
    for chunk in found:
        counts = _is_count(chunk.start) and _is_count(chunk.stop, least=1)
        if not (chunk.controller in about["controllers"] and counts and chunk.start < chunk.stop <= about["runs"]):
            raise ValueError("a chunk is no range of runs")
    return found


# ------------------------------------------------------------ reading


class Results(Labelled):
    """A results file that is open for reading; arrays are read when they are asked for. `open_results` opens one.

    >>> results = symdual.sweep(problem, ["ce", "dual"], runs=4, folder=folder)
    >>> results.array("dual", "states").shape
    (4, 3, 1)
    >>> results.close()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path = Path(path) / "results.npz" if Path(path).is_dir() else Path(path)
        with ExitStack() as opened:
            try:
                file = opened.enter_context(path.open("rb"))
                self._stored = opened.enter_context(np.load(file))
                self.about: dict[str, Any] = json.loads(self._stored[ABOUT])
                self.description = described(self.about)
                if self.about["format"] != FORMAT:
                    raise ValueError("another format")
            except UNREADABLE as failure:
                other = written_format(path)
                if other not in (None, FORMAT):
                    raise SymdualError(f'{path} is in the format "{other}", and this is "{FORMAT}"') from failure
                raise self._damaged() from failure
            self._opened = opened.pop_all()

    def __repr__(self) -> str:
        return f"<Results {self.path}: {self.description.runs} runs of {', '.join(self.description.controllers)}>"

    def _damaged(self) -> SymdualError:
        return SymdualError(f"{self.path} is not a whole results file of a sweep; `symdual simulate --resume` mends it")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._opened.close()

    def problem(self, name: str) -> Array:
        """One of the arrays named by `SHARED`."""
        return self._read(name)

    def array(self, controller: str, field: str) -> NDArray[Any]:
        """A field of a controller."""
        array = self._read(f"{controller}.{field}")
        (known,) = (f for f in FIELDS if f.name == field)
        wanted = self.description.shape(controller, known, self.description.runs)
        if (array.dtype, array.shape) != (np.dtype(known.dtype), wanted):
            raise self._damaged()
        if field == "outcomes" and not np.all((array >= 0) & (array < len(self.about["outcomes"]))):
            raise self._damaged()
        return self._with_names(controller, axis_of(field), array)

    def _read(self, name: str) -> NDArray[Any]:
        try:
            return np.asarray(self._stored[name])
        except UNREADABLE as failure:
            raise self._damaged() from failure


def open_results(path: str | Path) -> Results:
    """Open the results of a sweep: the file `results.npz`, or the folder in which it lies.

    >>> symdual.sweep(problem, ["ce", "dual"], runs=4, folder=folder).close()
    >>> with symdual.open_results(folder / "toy") as results:
    ...     frame = results.to_pandas("runs")
    >>> frame.index.names
    FrozenList(['controller', 'run'])
    """
    if not Path(path).exists():
        raise SymdualError(f"there are no results at {path}; `symdual simulate` or `symdual.sweep` writes some")
    return Results(path)


@dataclass(frozen=True)
class Remains:
    """What is left of a results file, damaged or not."""

    about: Mapping[str, Any]
    path: Path

    @property
    def description(self) -> Description:
        """What the file says about itself."""
        return described(self.about)

    def payloads(self) -> Iterator[tuple[Chunk, bytes | None]]:
        """Every chunk of the file, with its payload if that is whole."""
        members = _members(self.about, {}, lambda chunk, first, size: b"")
        offsets = {member.name: offset for member, offset in zip(members, data_offsets(members), strict=True)}
        end = self.path.stat().st_size
        with self.path.open("rb") as file:
            for chunk, digest in _digests(self.about).items():
                payload = self._payload(file, offsets, chunk, end)
                yield chunk, payload if hashlib.sha256(payload).hexdigest() == digest else None

    def _payload(self, file: BinaryIO, offsets: Mapping[str, int], chunk: Chunk, end: int) -> bytes:
        """What lies where the payload of a chunk should; nothing is looked for behind the end of the file."""
        parts = []
        runs = chunk.stop - chunk.start
        for field, (_, size) in zip(FIELDS, self.description.spans(chunk.controller, runs), strict=True):
            file.seek(min(end, offsets[f"{chunk.controller}.{field.name}.npy"] + chunk.start * (size // runs)))
            parts.append(file.read(min(end, size)))
        return b"".join(parts)

    def is_whole(self) -> bool:
        """Whether numpy can read every array and every chunk is what it was."""
        try:
            with zipfile.ZipFile(self.path) as archive:
                if archive.testzip() is not None:
                    return False
        except UNREADABLE:
            return False
        return all(payload is not None for _, payload in self.payloads())


def remains(path: Path) -> Remains | None:
    """What is left of a results file, or None when not even its description can be read."""
    about = _first_member(path)
    try:
        if about is None or about["format"] != FORMAT:
            return None
        _members(about, {}, lambda chunk, first, size: b"")  # raises when anything is missing
    except UNREADABLE:
        return None
    return Remains(about, path)


def written_format(path: Path) -> str | None:
    """The format that a results file says it has, or None when that cannot be read."""
    about = _first_member(path)
    written = None if about is None else about.get("format")
    return written if isinstance(written, str) else None


def _first_member(path: Path) -> dict[str, Any] | None:
    """The description with which a results file begins, in whatever format, if it is whole."""
    try:
        with path.open("rb") as file:
            mark, crc, size, name_size, extra_size = struct.unpack("<4s10x L L 4x H H", file.read(30))
            name = file.read(name_size)
            file.seek(extra_size, os.SEEK_CUR)
            content = file.read(size)
        if mark != b"PK\x03\x04" or name != ABOUT.encode() or zlib.crc32(content) != crc:
            return None
        about = json.loads(content)
    except UNREADABLE:
        return None
    return about if isinstance(about, dict) else None
