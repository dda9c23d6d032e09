"""Odd C compilers: each ends in a sentence, soon, and numba compiles instead."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import symdual
from symdual.backends.c import compilation, compilers, kept
from symdual.common import errors
from symdual.common.errors import SymdualError

from .conftest import other_compiler

NOTHING = "int nothing;"


@pytest.fixture(autouse=True)
def nothing_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own, and nothing said or found out about compilers so far."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compilation._fault.cache_clear()
    compilers.version.cache_clear()
    errors.SAID.clear()


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Return a function that makes a script the compiler."""

    def use(script: str) -> Path:
        command = tmp_path / "oddcc"
        command.write_text(script if script.startswith("no ") else f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        monkeypatch.setenv("CC", str(command))
        return command

    return use


GOOD = 'exec gcc "$@"'
TARGET = 'while [ $# -gt 0 ]; do [ "$1" = -o ] && out="$2"; shift; done'
#: what ends well with --version, and does something else with a file
ODD = {
    "fails silently": ("exit 3", r"refused the translation: .*oddcc ended with status 3 and said nothing"),
    "fails with a word": ("echo error: no licence; exit 1", r"refused the translation: error: no licence"),
    "fails in no known writing": (r"printf '\377\376\n'; exit 1", "refused the translation: "),
    "writes nothing": ("exit 0", r"oddcc ended well but wrote nothing"),
    "no program": ("no program", r"oddcc cannot be run: Exec format error"),
    "writes rubbish": (f'{TARGET}; echo rubbish > "$out"', r"no whole library"),
    "writes half a library": (
        f'gcc "$@" || exit 1; {TARGET}; case "$out" in *.so) truncate -s 4000 "$out";; esac',
        "no whole library",
    ),
    "writes a folder": (f'{TARGET}; mkdir "$out"', r"ended well but wrote nothing"),
    "is killed": ("kill -9 $$", r"oddcc was ended by the signal SIGKILL"),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_compiler_is_a_sentence_and_numba_takes_its_place(
    package_of: Callable[[str], Path], kind: str, odd: Callable[[str], Path]
) -> None:
    other_compiler("gcc")
    script, sentence = ODD[kind]
    odd(script if script.startswith("no ") else f'[ "$1" = --version ] && exec gcc --version\n{script}')
    with pytest.raises(SymdualError, match=sentence):
        compilation.shared_library(NOTHING)
    with pytest.warns(symdual.SymdualWarning, match=f"{sentence}.*; numba compiles instead"):
        assert symdual.load(package_of("toy")).backend == "numba"
    with pytest.raises(SymdualError, match=sentence):
        symdual.load(package_of("toy"), backend="c").kernels.dynamics  # noqa: B018


@pytest.mark.parametrize("script", ["sleep 1000", "sleep 1000 & sleep 1000", "while :; do echo y; done"])
def test_a_compiler_that_hangs_is_ended(
    script: str, odd: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    odd(script)
    monkeypatch.setattr(compilers, "_ANSWER", 0.5)
    began = time.monotonic()
    with pytest.warns(symdual.SymdualWarning, match="oddcc took more than 0 s and was ended; numba"):
        assert compilation.quickest() == "numba"
    assert compilation.quickest() == "numba"  # it is not asked again
    assert time.monotonic() - began < 100.0  # of a thousand
    assert not compilers._RUNNING


def test_a_compiler_may_leave_something_running(odd: Callable[[str], Path]) -> None:
    """As those do that start a server at first use, which holds their output open."""
    other_compiler("gcc")
    odd(f"sleep 1000 & {GOOD}")
    began = time.monotonic()
    kept.loaded(compilation.shared_library(NOTHING))
    assert time.monotonic() - began < 900.0


@pytest.mark.parametrize("arguments", ["", " -m64", " -DWITH='a b'"])
def test_the_variable_may_hold_arguments(
    arguments: str, odd: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    other_compiler("gcc")
    command = odd(f"echo hello from a wrapper; echo and again >&2; {GOOD}")
    monkeypatch.setenv("CC", f"{command}{arguments}")
    assert compilation.quickest() == "c"
    assert kept.loaded(compilation.shared_library("int one(void) { return 1; }")).one() == 1


def test_the_path_of_a_compiler_may_have_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my compilers").mkdir()
    (tmp_path / "my compilers/cc").symlink_to(other_compiler("gcc"))
    monkeypatch.setenv("CC", str(tmp_path / "my compilers/cc"))
    assert compilation.quickest() == "c"


@pytest.mark.parametrize(
    ("named", "sentence"),
    [
        ("{folder}", "{folder}, which $CC names, is a folder"),
        ("{folder}/file", "{folder}/file, which $CC names, may not be executed"),
        ("{folder}/none -m64", "{folder}/none, which $CC names, is not there"),
        ("{folder}/none -DLONG=" + 500 * "x", "{folder}/none, which $CC names, is not there"),
        (500 * "x", f"{500 * 'x'}, which $CC names, is not there"),
        ("{folder}/file/below", "{folder}/file/below, which $CC names, is not there"),
        ("''", "which $CC names, is not there"),
        ("gcc 'half", "$CC is no command (No closing quotation): gcc 'half"),
    ],
)
def test_what_is_no_compiler_is_said(
    named: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CC", named.format(folder=tmp_path))
    with pytest.raises(compilers.NoCompiler) as caught:
        compilation.working()
    assert sentence.format(folder=tmp_path) in str(caught.value)
    with pytest.warns(symdual.SymdualWarning, match="numba compiles instead"):
        assert compilation.quickest() == "numba"


def test_code_for_another_machine_is_noticed(monkeypatch: pytest.MonkeyPatch, odd: Callable[[str], Path]) -> None:
    """Here by a library that is whole and says that it is for another processor."""
    other_compiler("gcc")
    patch = "printf '\\007\\000' | dd of=\"$out\" bs=1 seek=18 conv=notrunc 2>/dev/null"
    odd(
        f'[ "$1" = --version ] && exec gcc --version; gcc "$@" || exit 1; {TARGET}; case "$out" in *.so) {patch};; esac'
    )
    with pytest.raises(SymdualError, match="compiled code cannot be loaded"):
        compilation.working()


def test_the_order_of_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    zig = (sys.executable, "-P", "-m", "ziglang", "cc")
    assert list(compilers.candidates()) == [zig]
    for name in ("clang", "gcc", "cc"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        assert compilers.compiler() == (str(tmp_path / name),)
    assert [command[0].rpartition("/")[2] for command in compilers.candidates()][:3] == ["cc", "gcc", "clang"]
    monkeypatch.setenv("CC", "gcc")
    assert list(compilers.candidates()) == [(str(tmp_path / "gcc"),)]


def test_the_next_compiler_is_tried_when_one_does_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "cc").chmod(0o755)
    (tmp_path / "gcc").symlink_to(other_compiler("gcc"))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert compilation.working() == (str(tmp_path / "gcc"),)


def test_the_compiler_of_the_extra_makes_libraries(
    package_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the others hidden."""
    pytest.importorskip("ziglang", reason='ziglang is not installed (pip install "symdual[compiler]")')
    monkeypatch.delenv("CC", raising=False)
    hidden = {name: shutil.which(name) for name in ("cc", "gcc", "clang")}
    which = shutil.which
    monkeypatch.setattr("shutil.which", lambda name, *more: None if name in hidden else which(name, *more))
    assert compilers.is_zig(compilation.working())
    assert symdual.load(package_of("toy")).backend == "c"
    text = "#include <math.h>\ndouble root(double x) { return sqrt(x); }\n"
    library = kept.loaded(compilation.shared_library(text, compilation.fast_flags(few=True)))
    from ctypes import c_double

    library.root.restype, library.root.argtypes = c_double, [c_double]
    assert library.root(2.0) == 2.0**0.5
