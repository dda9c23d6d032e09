"""Libraries on disk: what is planted never runs, what is damaged is noticed and made again."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import symdual
from symdual.backends.c import compilation, kept
from symdual.common import errors
from symdual.common.errors import SymdualError

ROOT = Path(__file__).resolve().parents[2]
TEXT = "int answer(void) { return 42; }\n"
SLOW = """#!/bin/sh
for last; do :; done
case "$last" in *package.c) grep -q probe "$last" || sleep 300;; esac
exec gcc "$@"
"""
EVIL = "__attribute__((constructor)) static void run(void) { __builtin_trap(); }\nint answer(void) { return 13; }\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, c_compiler: str) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    errors.SAID.clear()
    return tmp_path / "cache/symdual"


@pytest.fixture
def library(cache: Path) -> Path:
    """The file of a library that was kept."""
    before = set((cache / "libraries").glob("*"))
    compilation.shared_library(TEXT)
    (file,) = set((cache / "libraries").glob("*")) - before - {_probe(cache)}
    return file


def _probe(cache: Path) -> Path | None:
    files = [file for file in (cache / "libraries").glob("*") if b"probe\0" in file.read_bytes()]
    return files[0] if files else None


def answer() -> int:
    return int(kept.loaded(compilation.shared_library(TEXT)).answer())


def test_a_library_is_made_once(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_made", None)  # nothing is compiled
    assert answer() == 42


def test_other_flags_are_another_library(library: Path) -> None:
    compilation.shared_library(TEXT, ("-O1", "-DOTHER"))
    assert len(list(library.parent.glob("*.so"))) >= 2


def test_two_libraries_are_never_taken_for_each_other() -> None:
    """Files in memory have numbers that are used again."""
    texts = [f"int answer(void) {{ return {n}; }}\n" for n in range(5)]
    made = [compilation.shared_library(text) for text in texts]
    assert [kept.loaded(content).answer() for content in made] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("failing", [False, True])
def test_where_there_are_no_files_in_memory_a_private_folder_serves(
    failing: bool, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = compilation.shared_library(TEXT)
    if failing:
        monkeypatch.setattr(kept, "_from_memory", lambda content: ctypes.CDLL("/nowhere"))
    else:
        monkeypatch.delattr("os.memfd_create")
    assert kept.loaded(content).answer() == 42
    assert not list(cache.glob("at-work-*"))


def test_nothing_is_kept_without_a_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDUAL_CACHE", "off")
    assert answer() == 42
    assert not cache.exists()


@pytest.mark.parametrize(
    "damage", ["planted", "link", "pipe", "folder", "owner", "mode", "unlinked", "note", "swapped"]
)
def test_what_is_planted_never_runs(
    damage: str, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = compilation.shared_library(EVIL)  # which is not loaded: that would be the end
    stages = library.parent.parent / "digests"
    if damage == "planted":
        library.write_bytes(evil)
    elif damage == "mode":
        library.chmod(0o666)
    elif damage == "note":
        next(note for note in stages.iterdir() if note.read_text() == library.stem).write_text("../../planted")
    elif damage == "swapped":  # both are whole, and neither is what the other was made from
        own = next(note for note in stages.iterdir() if note.read_text() == library.stem)
        other = next(note for note in stages.iterdir() if kept._digest(note.name, evil) == note.read_text())
        own.write_text(other.read_text())
    elif damage == "owner":
        status, user = os.fstat, os.geteuid()
        monkeypatch.setattr(
            "os.fstat", lambda handle: os.stat_result((*status(handle)[:4], user + 1, *status(handle)[5:]))
        )
    else:
        library.unlink()
        if damage == "link":
            (tmp_path / "evil.so").write_bytes(evil)
            library.symlink_to(tmp_path / "evil.so")
        elif damage == "pipe":
            os.mkfifo(library)
        elif damage == "folder":
            library.mkdir()
    with pytest.warns(symdual.SymdualWarning) as said:
        assert answer() == 42
    assert str(said[0].message).startswith(f"compiled code in {library.parent} was damaged")
    assert str(said[0].message).endswith("it is compiled again")
    if damage not in ("owner", "folder"):
        assert answer() == 42  # and now it is whole, without a word


def test_a_folder_that_others_may_write_is_not_looked_into(library: Path, cache: Path) -> None:
    library.write_bytes(compilation.shared_library(EVIL))
    library.parent.chmod(0o777)
    with pytest.warns(symdual.SymdualWarning, match=f"compiled code is not kept: others may write to {library.parent}"):
        assert answer() == 42


def test_what_is_loaded_is_what_was_verified(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between check and load the file is replaced."""
    evil, load = compilation.shared_library(EVIL), kept._from_memory

    def replaced(content: bytes) -> ctypes.CDLL:
        library.write_bytes(evil)
        return load(content)

    monkeypatch.setattr(kept, "_from_memory", replaced)
    assert answer() == 42


def test_a_full_disk_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    def full(file: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    compilation.working()
    monkeypatch.setattr(kept, "_write", full)
    with pytest.warns(symdual.SymdualWarning, match=r"cannot be kept in .* \(No space left on device\)"):
        assert answer() == 42


def test_a_disk_that_is_full_earlier_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, text: str) -> int:
        raise OSError(28, "No space left on device")

    compilation.working()
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(SymdualError, match=r"cannot write to the folder .*: No space left on device"):
        compilation.shared_library(TEXT)


def test_what_is_not_finished_at_the_end_of_a_process_is_removed(cache: Path, tmp_path: Path) -> None:
    command = tmp_path / "slowcc"
    command.write_text(SLOW)
    command.chmod(0o755)
    code = "from symdual.backends.c import compilation; compilation.begun('int nothing;'); import time; time.sleep(1)"
    environment = {**os.environ, "CC": str(command), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=120)
    assert not list(cache.glob("at-work-*")) and list(cache.glob("libraries/*"))


def test_half_a_library_is_refused_before_it_ends_the_process() -> None:
    content = compilation.shared_library(TEXT)
    kept.require_whole(content)
    for part in (
        b"",
        b"\x7fELF",
        b"rubbish" * 1000,
        content[:100],
        content[: len(content) // 2],
        b"\0" * 100 + content,
    ):
        with pytest.raises(SymdualError, match="no whole library"):
            kept.loaded(part)


# ------------------------------------------------------------ many damages, each in a process of its own

VICTIM = """
import sys, warnings
from symdual.backends.c import compilation, kept
warnings.simplefilter("always")
compilation.FAST = ("-O1",)
for _ in range(2):
    print(kept.loaded(compilation.shared_library(sys.argv[1])).answer())
"""


def victim(cache: Path) -> subprocess.CompletedProcess[str]:
    """A process that needs the library."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache.parent), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(VICTIM), TEXT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Some bytes flipped, zeroed, cut off, added or written over."""
    changed, at = bytearray(content), chance.randrange(len(content))
    kind = chance.choice(["flip", "zero", "cut", "longer", "page", "empty"])
    if kind == "flip":
        for _ in range(chance.choice([1, 1, 8])):
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    elif kind == "zero":
        changed[at:] = bytes(len(changed) - at)
    elif kind == "cut":
        del changed[at:]
    elif kind == "longer":
        changed += chance.randbytes(1 + at)
    elif kind == "page":
        length = min(len(changed) - at, 4096)
        changed[at : at + length] = chance.randbytes(length)
    else:
        changed.clear()
    return bytes(changed)


def hurt(cache: Path, chance: random.Random) -> str:
    """Damage one file of the cache."""
    file = chance.choice(sorted(file for place in ("libraries", "digests") for file in (cache / place).iterdir()))
    content = file.read_bytes()
    changed = damaged(content, chance)
    file.write_bytes(changed)
    return "" if changed == content else f"{file.parent.name}/{file.name}"


def survives(cache: Path, chance: random.Random, times: int) -> None:
    assert victim(cache).stdout.split() == ["42", "42"]
    for n in range(times):
        what = hurt(cache, chance)
        done = victim(cache)
        assert (done.returncode, done.stdout.split()) == (0, ["42", "42"]), (n, what, done)
        sentences = [line for line in done.stderr.splitlines() if "SymdualWarning" in line]
        assert len(sentences) == bool(what), (n, what, done.stderr)
        assert not what or "was damaged" in sentences[0]
        again = victim(cache)
        assert (again.returncode, again.stdout.split(), again.stderr) == (0, ["42", "42"], "")


def test_damage_is_noticed_and_mended(cache: Path) -> None:
    survives(cache, random.Random(1), 4)


@pytest.mark.soak
def test_two_hundred_damages_and_none_is_fatal(cache: Path) -> None:
    survives(cache, random.Random(2), 200)
