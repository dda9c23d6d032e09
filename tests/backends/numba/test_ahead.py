"""Compiling ahead: what is missing, in which order, and how long it is said to take."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numba
import pytest

import symdual
from symdual.backends.numba import ahead
from symdual.backends.numba.ahead import Doing, Expected, Work, missing, works_for
from symdual.common import errors
from symdual.common.errors import SymdualError, SymdualWarning
from symdual.common.numba_versions import is_known
from symdual.runtime import sealed_cache as compiled
from symdual.runtime.loading import LoadedPackage


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "symdual" / "compile_seconds.json"


@pytest.fixture
def cart(tmp_path: Path) -> Path:
    """A folder with the sources of a package, and a cache that holds two parts and half of a third."""
    folder = tmp_path / "cart"
    (folder / "__pycache__").mkdir(parents=True)
    for name in ("filter", "decision", "episode"):
        (folder / f"{name}.py").write_text(f"the source of {name}")
    for function in ("decision._ce", "filter.predict", "decision.decide_at", "decision.price_at"):
        keep(folder, function)
    return folder


def keep(folder: Path, function: str) -> None:
    """What numba leaves when a function was compiled."""
    source = folder / f"{function.split('.')[0]}.py"
    stamp = compiled._Stamp(hashlib.sha256(source.read_bytes()).digest())
    stamp.file = source
    version = f"py{sys.version_info.major}{sys.version_info.minor}"
    compiled._cache_file(str(folder / "__pycache__"), f"{function}-3.{version}", stamp).save(
        "key", {"code": bytes(range(256))}
    )


PARTS = ["ce+structured", "decision+filter", "episode"]


def missing_parts(folder: Path) -> list[str]:
    return [work.part for work in missing(folder, PARTS)]


def test_what_is_missing(tmp_path: Path, cart: Path, cache: Path) -> None:
    assert missing_parts(cart) == ["structured", "filter", "episode"]
    keep(cart, "filter.update")
    assert missing_parts(cart) == ["structured", "episode"]
    (tmp_path / "empty").mkdir()
    assert missing_parts(tmp_path / "empty") == PARTS


@pytest.mark.skipif(not is_known(numba.__version__), reason="this version of numba keeps its files without seals")
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("left", [0, 30])
def test_what_is_damaged_is_missing_and_is_said(cart: Path, cache: Path, suffix: str, left: int) -> None:
    errors.SAID.clear()
    (file,) = (cart / "__pycache__").glob(f"decision._ce*{suffix}")
    file.write_bytes(file.read_bytes()[:left])
    with pytest.warns(
        SymdualWarning, match=f"compiled code in {cart / '__pycache__'} was damaged; it is compiled again"
    ):
        assert missing_parts(cart) == ["ce+structured", "filter", "episode"]
    assert not file.exists()


def test_what_was_compiled_from_another_source_or_for_another_python_is_missing(cart: Path, cache: Path) -> None:
    (cart / "decision.py").write_text("another source")
    assert missing_parts(cart) == ["ce+structured", "decision+filter", "episode"]
    keep(cart, "episode.episodes")
    (file,) = (cart / "__pycache__").glob("episode*.nbi")
    file.rename(file.with_name("episode.episodes-3.py27.nbi"))
    assert "episode" in missing_parts(cart)


def test_a_cache_elsewhere_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert missing(tmp_path, ["filter"]) == []


def test_parts_of_controllers(numba_toy_package: LoadedPackage, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("symdual.backends.numba.ahead.missing", lambda folder, parts: [Work(folder, p) for p in parts])
    problem = symdual.problem(numba_toy_package)
    parts = [work.part for work in works_for(problem, ["dual", "ce", "planned"], episodes=True)]
    assert parts == ["ce+structured", "planned", "decision+filter", "episode"]
    assert [work.part for work in works_for(problem, ["exact"])] == ["decision+filter"]


def test_times_are_learned(cache: Path) -> None:
    cart, other = Path("cart"), Path("other")
    first = Expected()
    assert first.seconds(Work(cart, "planned")) > first.seconds(Work(cart, "filter"))
    usual = first.seconds(Work(cart, "decision"))
    first.learn(Work(cart, "filter"), 3 * first.seconds(Work(cart, "filter")))
    first.keep()
    again = Expected()
    assert again.seconds(Work(cart, "filter")) == json.loads(cache.read_text())["cart filter"]
    assert again.seconds(Work(other, "decision")) == pytest.approx(3 * usual)  # the machine is three times as slow


@pytest.mark.parametrize("content", ["", "[1, 2]", '{"cart filter": "long", "cart decision": -1}', "\x00"])
def test_a_damaged_record_is_no_record(cache: Path, content: str) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text(content)
    assert Expected().seconds(Work(Path("cart"), "filter")) == ahead._USUAL["filter"]


def test_parts_are_compiled_and_told(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With programs that do nothing instead of compilers: the longest first, and the time left is told and shrinks."""
    begun: list[str] = []

    def started(folder: Path, part: str) -> object:
        begun.append(part)
        return _Process()

    monkeypatch.setattr(ahead, "_started", started)
    monkeypatch.setattr(ahead.os, "cpu_count", lambda: 2)
    told: list[Doing] = []
    works = [Work(tmp_path / "cart", part) for part in ("filter", "planned", "decision")]
    seconds = ahead.warm(works, told.append)
    assert set(seconds) == {"filter", "planned", "decision"} and begun[0] == "planned"
    assert told[0].what == "planned, filter" and told[0].left > 12.0 and told[-1].left < told[0].left
    assert all(0.0 <= doing.share < 1.0 for doing in told)
    assert set(json.loads(cache.read_text())) == {"cart filter", "cart planned", "cart decision"}


def test_a_compiler_that_fails_says_why(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ahead, "_started", lambda folder, part: _Process(1, "Traceback\nNoMemory: none left\n"))
    with pytest.raises(SymdualError, match=r"the part filter of .*cart could not be compiled: NoMemory: none left"):
        ahead.warm([Work(tmp_path / "cart", "filter")])


class _Process:
    """A compiler that is done when it is asked for the third time."""

    def __init__(self, returncode: int = 0, errors: str = "") -> None:
        self.returncode, self._errors, self._asked = returncode, errors, 0

    def poll(self) -> int | None:
        self._asked += 1
        return self.returncode if self._asked > 2 else None

    def communicate(self) -> tuple[str, str]:
        return "", self._errors
