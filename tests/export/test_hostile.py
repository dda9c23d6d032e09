"""Folders that others really try to write to, and compilers that do whatever chance decides."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from symdual.backends.c import compilation, compilers, kept
from symdual.common import errors
from symdual.common.errors import SymdualError
from symdual.runtime.places import is_private

from .conftest import ROOT, other_compiler

STRANGER = 54321

# ------------------------------------------------------------ folders

#: for each folder, whether a stranger can put something into it, or move it or one above it out of the way
ATTACK = """
import json, os, sys

def succeeds(step):
    try:
        step()
    except OSError:
        return False
    return True

def planted(folder):
    with open(folder + "/planted", "w"):
        pass
    os.unlink(folder + "/planted")

def moved(folder):
    os.rename(folder, folder + ".moved")
    os.rename(folder + ".moved", folder)

def attacked(top, folder):
    chain = [folder]
    while chain[-1] != top:
        chain.append(os.path.dirname(chain[-1]))
    return succeeds(lambda: planted(folder)) or any(succeeds(lambda: moved(one)) for one in chain[:-1])

print(json.dumps([attacked(*pair) for pair in json.loads(sys.argv[1])]))
"""


@pytest.fixture
def ground() -> Iterator[Path]:
    """A folder that a stranger can reach; those of pytest are closed."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def tree(ground: Path, number: int, chance: random.Random) -> tuple[Path, Path]:
    """A chain of folders with modes and owners by chance, mostly harmless ones."""
    top = folder = ground / str(number)
    chain = []
    for name in ("", *"abc"[: chance.randrange(4)]):
        folder = folder / name
        folder.mkdir()
        chain.append(folder)
    for one in reversed(chain):
        os.chown(one, chance.choice([0, 0, 0, 0, 0, STRANGER]), chance.choice([0, 0, STRANGER]))
        one.chmod(chance.choice([0o700, 0o755, 0o755, 0o755, 0o775, 0o1777, 0o1777, 0o777]))
    return top, folder


def needs_others(test: Any) -> Any:
    """A test that acts for several users."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    test = pytest.mark.skipif(not is_root, reason="only root can be somebody else")(test)
    return pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not installed")(test)


def become(user: int) -> list[str]:
    """The beginning of a command of somebody else."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


@needs_others
@pytest.mark.parametrize("count", [150, pytest.param(5000, marks=pytest.mark.soak)])
def test_no_folder_is_trusted_that_a_stranger_can_write_or_replace(ground: Path, count: int) -> None:
    """The stranger really tries."""
    chance = random.Random(count)
    trees = [tree(ground, number, chance) for number in range(count)]
    succeeded: list[bool] = []
    for start in range(0, count, 500):
        some = json.dumps([[str(top), str(folder)] for top, folder in trees[start : start + 500]])
        command = [*become(STRANGER), sys.executable, "-S", "-c", ATTACK, some]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True)
        if done.returncode:
            pytest.skip("this interpreter cannot be run by another user")
        succeeded += json.loads(done.stdout)
    trusted = [is_private(folder) for _, folder in trees]
    wrong = [str(folder) for (_, folder), bad, good in zip(trees, succeeded, trusted, strict=True) if bad and good]
    assert not wrong
    assert sum(trusted) / count > 0.1 and sum(succeeded) / count > 0.1  # both happen


# ------------------------------------------------------------ what strangers have planted

USER = 54322
VICTIM = """
import warnings
from symdual.backends.c import compilation, kept
warnings.simplefilter("always")
compilation.FAST = ("-O0",)
print(kept.loaded(compilation.shared_library("int answer(void) { return 42; }")).answer())
"""
EVIL = "__attribute__((constructor)) static void run(void) { __builtin_trap(); }\nint answer(void) { return 13; }\n"


def given(folder: Path, user: int) -> None:
    """Give a folder and all in it to a user."""
    for place in (folder, *folder.rglob("*")):
        os.lchown(place, user, user)


def turned(place: Path, elsewhere: Path) -> None:
    """A link in the place of a folder, which lies elsewhere now and belongs to a stranger."""
    shutil.move(place, elsewhere)
    given(elsewhere, STRANGER)
    place.symlink_to(elsewhere)
    os.lchown(place, USER, USER)


#: what happens to the cache of a user, or to a folder above it, and a word of the sentence that tells
PLANTED: dict[str, tuple[Callable[[Path], object], str]] = {
    "all of another": (lambda cache: given(cache, STRANGER), "others may write to"),
    "libraries of another": (lambda cache: given(cache / "libraries", STRANGER), "others may write to"),
    "files of another": (
        lambda cache: [os.chown(file, STRANGER, STRANGER) for file in (cache / "libraries").iterdir()],
        "no file of your own",
    ),
    "digests of another": (
        lambda cache: [os.chown(file, STRANGER, STRANGER) for file in (cache / "digests").iterdir()],
        "was damaged",
    ),
    "libraries open": (lambda cache: (cache / "libraries").chmod(0o777), "others may write to"),
    "home open": (lambda cache: cache.parents[1].chmod(0o777), "others may write to"),
    "home of another": (lambda cache: os.chown(cache.parents[1], STRANGER, STRANGER), "others may write to"),
    "a link": (lambda cache: turned(cache, cache.parents[2] / "elsewhere"), "others may write to"),
    "a link below": (lambda cache: turned(cache / "libraries", cache.parents[2] / "below"), "others may write to"),
}  # fmt: skip
QUICK = ("all of another", "files of another", "libraries open", "a link below")


@needs_others
@pytest.mark.parametrize("how", [pytest.param(how, marks=() if how in QUICK else pytest.mark.soak) for how in PLANTED])
def test_what_strangers_plant_does_not_run(how: str, ground: Path) -> None:
    """Libraries that end the process, with digests that fit: only who has written them is wrong."""
    other_compiler("gcc")
    home, temporary = ground / "home", ground / "tmp"
    home.mkdir()
    temporary.mkdir()
    os.chown(home, USER, USER)
    temporary.chmod(0o1777)
    environment = {"HOME": str(home), "TMPDIR": str(temporary), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}

    def use() -> subprocess.CompletedProcess[str]:
        command = [*become(USER), sys.executable, "-B", "-c", VICTIM]
        return subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)

    if use().returncode:
        pytest.skip("this interpreter cannot be run by another user")
    cache = home / ".cache/symdual"
    evil = compilation.shared_library(EVIL)
    for note in (cache / "digests").iterdir():
        note.write_text(kept._digest(note.name, evil))
        (cache / "libraries" / f"{note.read_text()}.so").write_bytes(evil)
        os.chown(cache / "libraries" / f"{note.read_text()}.so", USER, USER)
    assert use().returncode == -4  # what has been planted works
    prepare, word = PLANTED[how]
    prepare(cache)
    done = use()
    assert (done.returncode, done.stdout) == (0, "42\n"), done
    sentences = [line for line in done.stderr.splitlines() if "SymdualWarning" in line]
    assert sentences and word in sentences[0]


@pytest.mark.parametrize("seconds", [1.0, pytest.param(30.0, marks=pytest.mark.soak)])
@pytest.mark.filterwarnings("ignore:compiled code")
def test_what_is_loaded_was_verified_while_somebody_replaces_it_all_the_time(
    seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_compiler("gcc")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = "int answer(void) { return 42; }\n"
    evil, good = compilation.shared_library(EVIL), compilation.shared_library(text)
    (file,) = (file for file in (tmp_path / "cache/symdual/libraries").iterdir() if file.read_bytes() == good)
    over = threading.Event()

    def attack() -> None:
        for number in itertools.count():
            if over.is_set():
                return
            fresh = file.with_name("fresh")
            fresh.write_bytes(evil if number % 2 else good)
            if number % 3:
                fresh.replace(file)
            else:
                file.write_bytes(fresh.read_bytes())

    thread = threading.Thread(target=attack)
    thread.start()
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            assert kept.loaded(compilation.shared_library(text)).answer() == 42
    finally:
        over.set()
        thread.join()


# ------------------------------------------------------------ compilers

TARGET = 'out=; for w; do [ "$last" = -o ] && out="$w"; last="$w"; done'
DEEDS = {
    "compile": 'gcc "$@"',
    "compile and print": 'echo hello; gcc "$@"; s=$?; printf "\\377\\n" >&2; exit $s',
    "leave something running": 'sleep 30 & gcc "$@"',
    "fail": "exit 7",
    "fail with words": "echo 'fatal error: no such thing' >&2; exit 1",
    "do nothing": "exit 0",
    "write rubbish": 'head -c 5000 /dev/urandom > "$out"',
    "write zeroes": 'head -c 20000 /dev/zero > "$out"',
    "cut": 'gcc "$@"; truncate -s 3000 "$out"',
    "cut late": 'gcc "$@"; truncate -s -500 "$out"',
    "write a link": 'ln -s /dev/zero "$out"',
    "write a link to nothing": 'ln -s nowhere "$out"',
    "write a pipe": 'mkfifo "$out"',
    "hang": "sleep 600",
    "hang in the background": "sleep 600 & wait",
    "print for ever": "while :; do echo y; done",
    "crash": "kill -SEGV $$",
    "end quietly": "kill -9 $$",
}


def odd_compiler(file: Path, chance: random.Random) -> list[str]:
    """A compiler whose three jobs are done by chance, one of them at least as it should be."""
    deeds = [chance.choice(["compile", chance.choice(list(DEEDS))]) for _ in range(3)]
    version, code, library = (f"({DEEDS[deed]})" for deed in deeds)
    file.write_text(
        f'#!/bin/sh\n{TARGET}\ncase "$*" in\n--version) {version};;\n*" -c "*) {code};;\n*) {library};;\nesac\n'
    )
    file.chmod(0o755)
    return deeds


@pytest.mark.parametrize("count", [6, pytest.param(60, marks=pytest.mark.soak)])
def test_whatever_a_compiler_does_there_is_a_library_or_a_sentence(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_compiler("gcc")
    monkeypatch.setattr(compilers, "_ANSWER", 3.0)
    monkeypatch.setattr(compilation, "_PROBE_SECONDS", 6.0)
    chance, ends = random.Random(4), {"c": 0, "numba": 0}
    for number in range(count):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"cache{number}"))
        monkeypatch.setenv("CC", str(tmp_path / f"cc{number}"))
        deeds = odd_compiler(tmp_path / f"cc{number}", chance)
        errors.SAID.clear()
        try:
            compilation.working()
            assert kept.loaded(compilation.shared_library("int one(void) { return 1; }")).one() == 1, deeds
        except SymdualError as failure:
            ends["numba"] += 1
            assert "\n" not in str(failure).strip(), deeds
        else:
            ends["c"] += 1
    assert min(ends.values()) >= max(1, count // 20)
