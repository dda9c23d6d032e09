"""The results file: what numpy reads, stable bytes, and what is left of a damaged file."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from symdual.common import archives
from symdual.common.archives import array_member, data_offsets, text_member, write_archive
from symdual.common.errors import SymdualError
from symdual.runtime.checkpoints import Checkpoints, kept, owner
from symdual.runtime.results import FIELDS, FORMAT, Chunk, Description, Results, described, remains, write_results

SIZES = {
    "time": 4,
    "step": 3,
    "state": 2,
    "input": 1,
    "belief": 5,
    "parameter": 3,
    "process": 1,
    "loss": 3,
    "constraint": 2,
}
CHUNKS = [Chunk(name, start, min(start + 4, 10)) for start in (0, 4, 8) for name in ("dual", "ce")]
COSTS = {"reference": np.ones((4, 2)), "state_cost": np.ones((4, 2, 2)), "input_cost": np.ones((3, 1, 1))}


def description(seed: int = 0) -> Description:
    identity = {
        **dict.fromkeys(("model", "plant", "scenario"), "toy"),
        **{key: {} for key in ("digests", "processes", "versions")},
        "format": FORMAT,
        "seed": seed,
        "settings": {"truth": "scenario"},
        "horizon": 3,
        "names": {"states": ["p", "q"], "inputs": ["u"], "measurements": ["p", "q"], "unknowns": ["a", "b", "c"]},
        "outcomes": ["finished"],
        "constraints": ["p <= 1", "q <= 1"],
    }
    return Description(identity, ("dual", "ce"), 10, {"dual": SIZES, "ce": SIZES | {"belief": 3}})


def random_arrays(chunk: Chunk) -> dict[str, np.ndarray]:
    random = np.random.default_rng([chunk.start, len(chunk.controller)])
    runs = chunk.stop - chunk.start
    return {f.name: random.integers(0, 100, description().shape(chunk.controller, f, runs)) / 8 for f in FIELDS}


def payloads() -> dict[Chunk, bytes]:
    return {chunk: description().payload(chunk, random_arrays(chunk)) for chunk in CHUNKS}


def written(path: Path) -> Path:
    stored = payloads()
    digests = {chunk: hashlib.sha256(stored[chunk]).hexdigest() for chunk in CHUNKS}
    write_results(path, description(), COSTS, digests, lambda chunk, first, size: stored[chunk][first : first + size])
    return path


def test_numpy_reads_every_array_and_the_description(tmp_path: Path) -> None:
    with np.load(written(tmp_path / "r.npz")) as stored:
        about = json.loads(stored["about.json"])
        assert about["seed"] == 0 and about["runs"] == 10
        assert np.array_equal(stored["state_cost"], COSTS["state_cost"])
        for name in ("dual", "ce"):
            for field in FIELDS:
                expected = np.concatenate([random_arrays(c)[field.name] for c in CHUNKS if c.controller == name])
                array = stored[f"{name}.{field.name}"]
                assert array.dtype == np.dtype(field.dtype)
                assert np.array_equal(array, expected.astype(field.dtype))
                assert about["arrays"][f"<controller>.{field.name}"]["axes"] == list(field.axes)


def test_the_same_sweep_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = written(tmp_path / "a.npz"), written(tmp_path / "b.npz")
    assert first.read_bytes() == second.read_bytes()
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["a.npz", "b.npz"]


def test_description_survives_json() -> None:
    own = description()
    assert described(json.loads(json.dumps(own.to_json()))) == own
    assert own.digest != description(seed=1).digest


@pytest.mark.parametrize("limit", [zipfile.ZIP64_LIMIT, 200], ids=["small", "large"])
def test_offsets_are_where_the_bytes_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: int) -> None:
    monkeypatch.setattr(archives.zipfile, "ZIP64_LIMIT", limit)
    contents = [b"0123456789abcdef" * 2, b"x" * 8 * 50, b"y" * 8 * 3]
    members = [text_member("about.json", contents[0])]
    members.append(array_member("large", "<f8", (5, 10), lambda: (contents[1][:100], contents[1][100:])))
    members.append(array_member("small", "<i8", (3,), lambda: (contents[2],)))
    with (tmp_path / "a.npz").open("wb") as file:
        write_archive(file, members)
    stored = (tmp_path / "a.npz").read_bytes()
    for member, offset, content in zip(members, data_offsets(members), contents, strict=True):
        assert stored[offset : offset + member.size] == content


def test_a_whole_file_gives_back_every_chunk(tmp_path: Path) -> None:
    left = remains(written(tmp_path / "r.npz"))
    assert left is not None and left.is_whole()
    assert dict(left.payloads()) == payloads()


def test_one_wrong_byte_costs_one_chunk(tmp_path: Path) -> None:
    path = written(tmp_path / "r.npz")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as stored:
        member = stored.getinfo("ce.states.npy")
    row = 4 * SIZES["time"] * SIZES["state"] * 8  # of the array, the first run of the second chunk
    head = 30 + len(member.filename) + 128
    content[member.header_offset + head + row] ^= 1
    path.write_bytes(content)
    left = remains(path)
    assert left is not None and not left.is_whole()
    found = dict(left.payloads())
    assert [chunk for chunk, payload in found.items() if payload is None] == [Chunk("ce", 4, 8)]
    assert all(payload == payloads()[chunk] for chunk, payload in found.items() if payload is not None)


@pytest.mark.parametrize("share", [0.55, 0.8, 0.999])
def test_a_torn_file_keeps_what_lies_before_the_tear(tmp_path: Path, share: float) -> None:
    path = written(tmp_path / "r.npz")
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(SymdualError, match=r"r\.npz is not a whole results file"):
        Results(path)
    left = remains(path)
    assert left is not None and not left.is_whole()
    found = {chunk: payload for chunk, payload in left.payloads() if payload is not None}
    assert all(payload == payloads()[chunk] for chunk, payload in found.items())
    lost = [chunk.controller for chunk in CHUNKS if chunk not in found]
    assert "dual" not in lost or share < 0.8  # `dual` lies in the first half of the arrays
    assert ("ce" in lost) == (share < 0.9)  # the last bytes are the directory alone


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:200],
        lambda content: b"?" + content[1:],
        lambda content: content.replace(b"symdual sweep", b"another sweep"),
        lambda content: b"no archive at all" * 100,
    ],
    ids=["empty", "head only", "first byte", "description", "other file"],
)
def test_a_file_without_its_description_is_no_use(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    path = written(tmp_path / "r.npz")
    path.write_bytes(damage(path.read_bytes()))
    assert remains(path) is None


@pytest.mark.parametrize("about", [[], {}, {"format": FORMAT}, {"format": FORMAT, "runs": 3, "chunks": 1}])
def test_of_an_archive_with_a_foreign_description_nothing_remains(tmp_path: Path, about: object) -> None:
    with (tmp_path / "r.npz").open("wb") as file:
        write_archive(file, [text_member("about.json", json.dumps(about).encode())])
    assert remains(tmp_path / "r.npz") is None
    with pytest.raises(SymdualError, match=r"r\.npz is not a whole results file"):
        Results(tmp_path / "r.npz")


def test_another_format_is_named(tmp_path: Path) -> None:
    about = {**description().to_json(), "format": "symdual sweep, version 99"}
    with (tmp_path / "r.npz").open("wb") as file:
        write_archive(file, [text_member("about.json", json.dumps(about).encode())])
    with pytest.raises(
        SymdualError, match=r'r\.npz is in the format "symdual sweep, version 99", and this is "symdual'
    ):
        Results(tmp_path / "r.npz")


def test_results_read_lazily_and_name_the_file_when_a_part_is_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "r.npz")
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as stored:
        content[stored.getinfo("ce.costs.npy").header_offset + 180] ^= 1
    path.write_bytes(content)
    with Results(path) as results:
        assert results.array("dual", "costs").shape == (10,)
        with pytest.raises(SymdualError, match=r"r\.npz is not a whole results file"):
            results.array("ce", "costs")


def test_checkpoints_keep_whole_chunks_only(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "chunks", description())
    checkpoints.begin()
    assert owner(tmp_path / "chunks") == description()
    chunk, payload = next(iter(payloads().items()))
    assert not checkpoints.find(chunk)
    checkpoints.write(chunk, payload)
    assert kept(tmp_path / "chunks") == 1
    again = Checkpoints(tmp_path / "chunks", description())
    assert again.find(chunk) and again.digests == {chunk: hashlib.sha256(payload).hexdigest()}
    assert again.read(chunk, 16, 40) == payload[16:56]
    with pytest.raises(ValueError, match="another sweep"):
        Checkpoints(tmp_path / "chunks", description(seed=1)).find(chunk)
    (file,) = (tmp_path / "chunks").glob("*.chunk")
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match="checksum"):
        Checkpoints(tmp_path / "chunks", description()).find(chunk)
