"""Folders that others really try to write to, and compilers that do whatever chance decides."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from symdual.backends.c import compilation, compilers, kept
from symdual.common import errors
from symdual.common.errors import SymdualError
from symdual.runtime.places import is_private

from .conftest import other_compiler

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


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not installed")
@pytest.mark.parametrize("count", [150, pytest.param(5000, marks=pytest.mark.soak)])
def test_no_folder_is_trusted_that_a_stranger_can_write_or_replace(ground: Path, count: int) -> None:
    """The stranger really tries."""
    chance = random.Random(count)
    trees = [tree(ground, number, chance) for number in range(count)]
    become = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    succeeded: list[bool] = []
    for start in range(0, count, 500):
        some = json.dumps([[str(top), str(folder)] for top, folder in trees[start : start + 500]])
        command = [*become, sys.executable, "-S", "-c", ATTACK, some]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True)
        if done.returncode:
            pytest.skip("this interpreter cannot be run by another user")
        succeeded += json.loads(done.stdout)
    trusted = [is_private(folder) for _, folder in trees]
    wrong = [str(folder) for (_, folder), bad, good in zip(trees, succeeded, trusted, strict=True) if bad and good]
    assert not wrong
    assert sum(trusted) / count > 0.1 and sum(succeeded) / count > 0.1  # both happen


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
    """A compiler whose three tasks are done by chance, one of them at least as it should be."""
    deeds = [chance.choice(["compile", chance.choice(list(DEEDS))]) for _ in range(3)]
    version, code, library = (f"({DEEDS[deed]})" for deed in deeds)
    file.write_text(
        f'#!/bin/sh\n{TARGET}\ncase "$*" in\n--version) {version};;\n*" -c "*) {code};;\n*) {library};;\nesac\n'
    )
    file.chmod(0o755)
    return deeds


@pytest.mark.soak
def test_whatever_a_compiler_does_there_is_a_library_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_compiler("gcc")
    monkeypatch.setattr(compilers, "_ANSWER", 3.0)
    monkeypatch.setattr(compilation, "_PROBE_SECONDS", 6.0)
    chance, ends = random.Random(4), {"c": 0, "numba": 0}
    for number in range(60):
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
    assert min(ends.values()) > 3
