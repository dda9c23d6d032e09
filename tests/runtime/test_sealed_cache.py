"""numba's cache of our functions: damage is noticed, dropped and said, and another source's code is never run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from symdual.common import errors
from symdual.common.errors import SymdualWarning
from symdual.runtime import sealed_cache as compiled

KEY, DATA = ("signature", "machine"), {"code": bytes(range(256)) * 40}


def stamp(source: Path) -> Any:
    made = compiled._Stamp(hashlib.sha256(source.read_bytes()).digest())
    made.file = source
    return made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "kernels.py"
    file.write_text("the source")
    return file


@pytest.fixture(autouse=True)
def nothing_said() -> None:
    errors.SAID.clear()


def opened(source: Path) -> Any:
    return compiled._cache_file(str(source.parent), "kernels.f-1.py311", stamp(source))


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if file.suffix in (".nbi", ".nbc"))


# -------------------------------------------------------------------- the files


def test_what_is_kept_is_found(source: Path) -> None:
    assert opened(source).load(KEY) is None
    opened(source).save(KEY, DATA)
    assert opened(source).load(KEY) == DATA
    assert opened(source).load("another") is None
    assert names(source.parent) == ["kernels.f-1.py311.1.nbc", "kernels.f-1.py311.nbi"]


def test_numba_alone_reads_what_we_write_and_the_other_way_round(source: Path) -> None:
    plain = compiled._numbas_own(str(source.parent), "kernels.f-1.py311", bytes(stamp(source)))
    opened(source).save(KEY, DATA)
    assert plain.load(KEY) == DATA
    for name in names(source.parent):
        (source.parent / name).unlink()
    plain.save(KEY, DATA)
    assert opened(source).load(KEY) == DATA


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "one byte": lambda content: content[:1],
    "half": lambda content: content[: len(content) // 2],
    "scrambled": lambda content: random.Random(0).randbytes(len(content)),
    "zeros": lambda content: bytes(len(content)),
    "zeros at the end": lambda content: content[:-100] + bytes(100),
    "zeros in the middle": lambda content: content[:20] + bytes(20) + content[40:],
    "text": lambda content: b"I was here",
}


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_said_once_and_mended(source: Path, suffix: str, damage: str) -> None:
    opened(source).save(KEY, DATA)
    (file,) = source.parent.glob(f"*{suffix}")
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    with pytest.warns(SymdualWarning, match=f"compiled code in {source.parent} was damaged; it is compiled again"):
        assert opened(source).load(KEY) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert opened(source).load(KEY) is None
    opened(source).save(KEY, DATA)
    assert opened(source).load(KEY) == DATA


@pytest.mark.filterwarnings("ignore:compiled code")
@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_no_wrong_byte_goes_unnoticed(source: Path, suffix: str) -> None:
    opened(source).save(KEY, DATA)
    (file,) = source.parent.glob(f"*{suffix}")
    content = file.read_bytes()
    for position in range(0, len(content), max(1, len(content) // 300)):
        wrong = bytearray(content)
        wrong[position] ^= 0x10
        file.write_bytes(wrong)
        assert opened(source).load(KEY) in (None, DATA)
        file.write_bytes(content[:position])  # and none that is missing
        assert opened(source).load(KEY) in (None, DATA)
        file.write_bytes(content)
    assert opened(source).load(KEY) == DATA


def test_what_is_kept_is_taken_again_whatever_others_may_do_with_new_files(source: Path) -> None:
    before = os.umask(0)
    try:
        opened(source).save(KEY, DATA)
    finally:
        os.umask(before)
    assert opened(source).load(KEY) == DATA


def test_the_code_of_another_function_is_not_taken(source: Path) -> None:
    opened(source).save(KEY, DATA)
    other = compiled._cache_file(str(source.parent), "kernels.g-9.py311", stamp(source))
    other.save(KEY, {"code": b"another"})
    (source.parent / "kernels.f-1.py311.1.nbc").write_bytes((source.parent / "kernels.g-9.py311.1.nbc").read_bytes())
    with pytest.warns(SymdualWarning, match="was damaged"):
        assert opened(source).load(KEY) is None


def test_the_code_of_another_source_is_not_taken(source: Path) -> None:
    """The index is ours, but between two looks another process has replaced the data."""
    opened(source).save(KEY, DATA)
    index = (source.parent / "kernels.f-1.py311.nbi").read_bytes()
    ours = opened(source)
    source.write_text("another source")
    opened(source).save(KEY, {"code": b"another"})
    (source.parent / "kernels.f-1.py311.nbi").write_bytes(index)
    assert ours.load(KEY) is None
    assert (source.parent / "kernels.f-1.py311.1.nbc").exists()  # it is not damaged, and not ours to drop


def test_nothing_is_kept_beside_a_source_that_it_does_not_come_from(source: Path) -> None:
    ours = opened(source)
    source.write_text("another source")
    ours.save(KEY, DATA)
    assert not names(source.parent)


def test_a_place_that_cannot_be_written_is_said_once(source: Path) -> None:
    file = compiled._cache_file(compiled._NOWHERE, "kernels.f-1.py311", stamp(source))
    assert file.load(KEY) is None
    with pytest.warns(SymdualWarning, match=r"cannot be kept \(.*\) and is compiled again .* set NUMBA_CACHE_DIR"):
        file.save(KEY, DATA)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file.save(KEY, DATA)


def test_functions_of_others_are_cached_as_ever(tmp_path: Path) -> None:
    assert type(compiled._cache_file(str(tmp_path), "f", b"stamp")) is compiled._numbas_own
    assert compiled._Locator.from_function(names, __file__) is None


# -------------------------------------------------------------------- a package in processes of its own

WHOLE = """
    import json, os, random, shutil, warnings
    from pathlib import Path
    import numba, numpy as np, sympy as sp
    import symdual
    from symdual import Model
    from symdual.common.errors import SymdualWarning
    from symdual.runtime import evaluate
    from tests.forked import in_new_process, results

    x, u = sp.symbols("x u")

    def step():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            package = symdual.load("generated/gain", backend="numba")
            value = evaluate.dynamics(package, [0.5], [2.0], [])[0]
            hits = package.plant.move._cache_hits  # a function pointer, which is loaded or compiled at import
        said = [str(w.message) for w in caught if issubclass(w.category, SymdualWarning)]
        return [value, sum(package.kernels.dynamics.stats.cache_hits.values()), hits, said]

    symdual.generate(Model([x], [u], [x + 3 * u], name="gain"), "generated")
    package = Path("generated/gain")
    in_new_process(step)
    in_new_process(step)
    shutil.copytree(package, "whole")
    for damage in ("empty", "half", "scrambled"):
        for suffix in (".nbi", ".nbc"):
            for file in package.rglob(f"*{suffix}"):
                content = ("whole" / file.relative_to(package)).read_bytes()
                scrambled = random.Random(0).randbytes(len(content))
                file.write_bytes({"empty": b"", "half": content[: len(content) // 2], "scrambled": scrambled}[damage])
            in_new_process(step)
            in_new_process(step)
    for file in package.rglob("*.nb?"):
        file.write_bytes(b"")
    symdual.generate(Model([x], [u], [x + 3 * u], name="gain"), "generated", force=True)
    results.append(any(package.rglob("*.nb?")))
    print(json.dumps(results))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_damaged_cache_is_compiled_again(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    first, second, *pairs, carried_over = json.loads(fresh_python(WHOLE, tmp_path).stdout)
    assert first == [6.5, 0, 0, []]
    assert second == [6.5, 1, 1, []]
    places = (f"{tmp_path}/generated/gain/{folder}__pycache__" for folder in ("kernels/", ""))
    said = [f"compiled code in {place} was damaged; it is compiled again" for place in places]
    assert pairs == [[6.5, 0, 0, said], [6.5, 1, 1, []]] * 6
    assert carried_over is False  # after --force nothing compiled is left


EXACT = """
    import warnings
    from pathlib import Path
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from symdual.runtime import nested_quadrature as exact
        print(exact.last_cost.stats.cache_path)
        exact.certain_guess(1.0, 2.0, exact.Two(*[1.0] * 10))
    print(sum(exact.certain_guess.stats.cache_hits.values()), len(caught))
    for file in Path(exact.last_cost.stats.cache_path).glob("nested_quadrature.*.nb?"):
        file.write_bytes(b"")
"""


def test_symduals_own_functions_are_as_safe(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    place, counts = fresh_python(EXACT, tmp_path, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split("\n")[:2]
    assert place.startswith(str(tmp_path)) and counts == "0 0"
    assert fresh_python(EXACT, tmp_path, NUMBA_CACHE_DIR=str(tmp_path)).stdout.split("\n")[1] == "0 1"


# ------------------------------------------------------------ what others could have planted


class Planted:
    """What leaves a file behind where it is unpickled."""

    def __init__(self, proof: Path) -> None:
        self._proof = proof

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._proof,)


def place_of(file: Path) -> Path:
    return Path(compiled._place(place_of, str(file)))


def test_code_is_kept_where_nobody_else_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "package" / "kernels.py"
    source.parent.mkdir()
    source.write_text("the source")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    beside = source.parent / "__pycache__"
    beside.mkdir(mode=0o755)
    assert place_of(source) == beside
    beside.chmod(0o777)
    elsewhere = place_of(source)
    assert tmp_path / "cache" in elsewhere.parents
    beside.chmod(0o755)
    source.parent.chmod(0o777)  # who could put another folder in its place
    assert place_of(source) == elsewhere
    source.parent.chmod(0o755)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setattr(compiled.caching.config, "CACHE_DIR", str(tmp_path / "shared"))
    with pytest.warns(SymdualWarning, match="others may write to what NUMBA_CACHE_DIR names"):
        assert place_of(source) == beside


@pytest.mark.parametrize("how", ["mode", "link"])
def test_a_pickle_that_others_could_have_written_is_not_opened(how: str, source: Path, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    index = source.parent / "kernels.f-1.py311.nbi"
    index.write_bytes(pickle.dumps(Planted(proof)))
    if how == "mode":
        index.chmod(0o666)
    else:
        index.rename(tmp_path / "elsewhere")
        index.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(SymdualWarning, match="was damaged"):
        assert opened(source).load(KEY) is None
    assert not proof.exists() and not index.is_symlink() and not index.exists()


PLAIN = """
    import sys
    from pathlib import Path
    import symdual
    from symdual.runtime import nested_quadrature
    options = symdual.load("package", backend="numba").options
    sealed = "symdual.runtime.sealed_cache" in sys.modules
    print(options.CACHED, options.ENTRY["cache"], nested_quadrature._KEPT, sealed)
"""


@pytest.mark.parametrize(
    ("loose", "environment", "kept"),
    [
        ("", {}, "True True True"),
        ("package/__pycache__", {}, "False False True"),
        ("package/planning/__pycache__", {}, "False False True"),
        ("package", {}, "False False True"),
        ("", {"NUMBA_CACHE_DIR": "named"}, "True True True"),
        ("named", {"NUMBA_CACHE_DIR": "named"}, "False False False"),
        ("", {"SYMDUAL_CACHE": "off"}, "False False False"),
    ],
)
def test_a_numba_that_is_not_known_keeps_nothing_where_others_can_write(
    loose: str,
    environment: dict[str, str],
    kept: str,
    tmp_path: Path,
    package_of: Callable[[str], Path],
    fresh_python: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    """Its own cache unpickles whatever lies there."""
    shutil.copytree(package_of("heated"), tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("package/__pycache__", "package/planning/__pycache__", "named"):
        (tmp_path / folder).mkdir()
    if loose:
        (tmp_path / loose).chmod(0o777)
    printed = fresh_python(PLAIN, tmp_path, SYMDUAL_NUMBA="plain", **environment).stdout
    assert printed == f"{kept} False\n"


def test_without_a_cache_nothing_is_read_or_written(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(source).save(KEY, DATA)
    before = names(source.parent)
    monkeypatch.setenv("SYMDUAL_CACHE", "off")
    assert opened(source).load(KEY) is None
    opened(source).save("another", DATA)
    opened(source).flush()
    assert names(source.parent) == before
    monkeypatch.setenv("SYMDUAL_CACHE", "on")
    assert opened(source).load(KEY) == DATA
