"""Packages on the disk: whole or not at all, one writer at a time, nothing touched that has not changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sympy as sp

import symdual
from symdual import Model, SymdualError, features, unknown
from symdual.derive.derivation import Derivation, derive
from symdual.emit.package import package
from symdual.emit.write import exclusive, write
from symdual.runtime import evaluate

x, u = sp.symbols("x u")
ROOT = Path(__file__).resolve().parents[2]


def gain(value: float, name: str = "gain") -> Model:
    return Model([x], [u], [x + sp.Float(value) * u], name=name)


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_an_unchanged_model_is_not_written_again(tmp_path: Path) -> None:
    assert symdual.generate(gain(2.0), tmp_path)[0].changed
    before = snapshot(tmp_path)
    assert not symdual.generate(gain(2.0), tmp_path)[0].changed
    assert snapshot(tmp_path) == before
    assert symdual.generate(gain(3.0), tmp_path)[0].changed
    assert snapshot(tmp_path) != before


def test_code_that_stays_keeps_its_time_and_what_was_compiled(tmp_path: Path) -> None:
    """numba before 0.61 compiles again what lies in a file of another time."""
    priors = [Model([x], [u], [x + unknown("b", mean, 1.0) * u], name="gain") for mean in (1.0, 2.0)]
    (made,) = symdual.generate(priors[0], tmp_path)
    (made.folder / "__pycache__").mkdir(exist_ok=True)
    before = snapshot(tmp_path)
    assert symdual.generate(priors[1], tmp_path)[0].changed
    after = snapshot(tmp_path)
    same = {name for name in before if before[name][0] == after[name][0]}
    assert {"gain/kernels/kernels.py", "gain/filters/filter.py"} <= same < set(before)
    assert all(after[name] == before[name] for name in same)
    assert all(after[name][1] > before[name][1] for name in set(before) - same)


def test_force_writes_again(tmp_path: Path) -> None:
    symdual.generate(gain(2.0), tmp_path)
    before = snapshot(tmp_path)
    assert symdual.generate(gain(2.0), tmp_path, force=True)[0].changed
    after = snapshot(tmp_path)
    assert {name: content for name, (content, _) in before.items()} == {
        name: content for name, (content, _) in after.items()
    }
    assert all(after[name][1] > before[name][1] for name in before)


def test_only_the_package_is_in_the_folder(tmp_path: Path) -> None:
    (made,) = symdual.generate(gain(2.0), tmp_path)
    symdual.generate(gain(3.0), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["gain"]
    assert sorted(snapshot(made.folder)) == sorted(package(derive(gain(3.0)), parts=()).files)


@pytest.mark.parametrize("damaged", [False, True])
def test_files_that_were_not_generated_are_kept(tmp_path: Path, damaged: bool) -> None:
    (made,) = symdual.generate(
        Model([x], [u], [x + features.gaussian_process("g", x, memory=4) + u], name="gain"), tmp_path
    )
    assert (made.folder / "kernels/process.py").is_file()
    (made.folder / "stages.txt").write_text("precious")
    (made.folder / "data").mkdir()
    (made.folder / "data/run.csv").write_text("1, 2")
    (made.folder / "kernels/remarks.txt").write_text("mine")
    (made.folder / "link").symlink_to("nowhere")
    (made.folder / "kernels/kernels.py").write_text("edited")
    if damaged:
        (made.folder / "manifest.json").write_text("{")
    symdual.generate(gain(2.0), tmp_path)
    symdual.generate(gain(3.0), tmp_path)
    assert (made.folder / "stages.txt").read_text() == "precious"
    assert (made.folder / "data/run.csv").read_text() == "1, 2"
    assert (made.folder / "kernels/remarks.txt").read_text() == "mine"
    assert (made.folder / "link").readlink() == Path("nowhere")
    assert (made.folder / "kernels/process.py").is_file() == damaged  # what it was is not known any more
    assert evaluate.dynamics(symdual.load(made.folder), [1.0], [1.0], [])[0] == 4.0
    assert [entry.name for entry in tmp_path.iterdir()] == ["gain"]


def test_what_a_writer_left_that_died_late_goes_when_nothing_is_to_be_written(tmp_path: Path) -> None:
    (made,) = symdual.generate(gain(2.0), tmp_path)
    for leftover in (".gain.old", ".gain.new"):
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "records.py").write_text("old")
    before = snapshot(made.folder)
    with exclusive(tmp_path):  # another writer is at work, and they may be its own
        assert not symdual.generate(gain(2.0), tmp_path)[0].changed
        assert (tmp_path / ".gain.old").is_dir()
    assert not symdual.generate(gain(2.0), tmp_path)[0].changed
    assert [entry.name for entry in tmp_path.iterdir()] == ["gain"]
    assert snapshot(made.folder) == before


def test_a_damaged_package_is_written_again(tmp_path: Path) -> None:
    (made,) = symdual.generate(gain(2.0), tmp_path)
    (made.folder / "kernels/kernels.py").write_text("broken")
    assert symdual.generate(gain(2.0), tmp_path)[0].changed
    assert evaluate.dynamics(symdual.load(made.folder), [1.0], [1.0], [])[0] == 3.0


def test_a_folder_that_is_no_package_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "gain").mkdir()
    (tmp_path / "gain" / "thesis.tex").write_text("precious")
    with pytest.raises(SymdualError, match="not a generated package"):
        symdual.generate(gain(2.0), tmp_path)
    assert [file.name for file in (tmp_path / "gain").iterdir()] == ["thesis.tex"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["gain"]


@pytest.mark.parametrize("place", ["file", "file/deeper"])
def test_a_file_in_the_place_of_the_folder(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(SymdualError, match="cannot write to the folder") as failure:
        symdual.generate(gain(2.0), tmp_path / place)
    assert str(tmp_path / place) in str(failure.value)


def test_a_file_in_the_place_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "gain").write_text("not a folder")
    with pytest.raises(SymdualError, match="cannot write the package"):
        symdual.generate(gain(2.0), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["gain"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
def test_a_folder_that_nobody_can_write_to() -> None:
    with pytest.raises(SymdualError, match="cannot write"):
        symdual.generate(gain(2.0), "/proc/self/symdual")


def test_nothing_is_left_behind_when_nothing_could_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise SymdualError("cannot be derived")

    monkeypatch.setattr("symdual.generation.package", fail)
    with pytest.raises(SymdualError, match="derived"):
        symdual.generate(gain(2.0), tmp_path / "new" / "folder")
    assert list(tmp_path.iterdir()) == []


def test_one_bad_model_of_a_file_keeps_the_others_from_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "two.py"
    file.write_text(
        "import sympy as sp\nfrom symdual import Model\nx, u = sp.symbols('x u')\n"
        "good = Model([x], [u], [x + u])\nbad = Model([x], [u], [x - u])\n"
    )
    import symdual.generation

    def picky(derivation: Derivation, *rest: object) -> object:
        if derivation.model.name == "bad":
            raise SymdualError("cannot be derived")
        return package(derivation)

    monkeypatch.setattr(symdual.generation, "package", picky)
    with pytest.raises(SymdualError, match="derived"):
        symdual.generate(file, tmp_path / "generated")
    assert not (tmp_path / "generated").exists()


def test_a_second_generator_waits_and_is_told_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "generated"
    symdual.generate(gain(2.0), folder)
    before = snapshot(folder)
    monkeypatch.setattr("symdual.emit.write.PATIENCE", 0.2)
    with (
        exclusive(folder),
        pytest.raises(SymdualError, match=r"another symdual has been generating .* 0\.2 s"),
    ):
        symdual.generate(gain(3.0), folder)
    assert snapshot(folder) == before
    monkeypatch.undo()
    with exclusive(folder):
        second = threading.Thread(target=symdual.generate, args=(gain(3.0), folder))
        second.start()
        second.join(0.3)
        assert second.is_alive() and snapshot(folder) == before
    second.join()
    assert snapshot(folder) != before  # it went on when the folder was free


KILLED = """
    import json, os, signal
    from pathlib import Path
    import sympy as sp
    import symdual
    from symdual import Model
    from symdual.derive.derivation import derive
    from symdual.emit.package import package
    from symdual.emit.write import write

    x, u = sp.symbols("x u")
    old, new = (Model([x], [u], [x + gain * u], name="gain") for gain in (2.0, 3.0))
    symdual.generate(old, "generated")
    rendered = package(derive(new), parts=())
    Path("generated/gain/__pycache__").mkdir(exist_ok=True)
    real = {name: getattr(os, name) for name in ("replace", "fsync", "mkdir", "rename", "unlink", "rmdir")}

    def die_before(step):
        left = [step]

        def watched(function):
            def call(*arguments, **options):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return function(*arguments, **options)
            return call

        for name, function in real.items():
            setattr(os, name, watched(function))

    def contents():
        return {str(file): file.read_bytes().hex() for file in Path("generated/gain").rglob("*") if file.is_file()}

    before, seen = contents(), []
    for step in range(400):
        child = os.fork()
        if child == 0:
            die_before(step)
            write(rendered, Path("generated"))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        symdual.load("generated/gain")  # verifies every file, and puts the old package back if need be
        seen.append((status, "old" if contents() == before else "new"))
        if status == 0:
            break
    symdual.generate(old, "generated")  # clears up after all that died
    assert contents() == before
    print(json.dumps({"seen": seen, "left": sorted(os.listdir("generated"))}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment_the_old_or_the_new_package_is_whole(
    tmp_path: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The process is killed before each single change that it makes to the disk, one after another."""
    report = json.loads(fresh_python(KILLED, tmp_path).stdout)
    statuses, versions = zip(*report["seen"], strict=True)
    assert set(statuses[:-1]) == {-9}
    assert statuses[-1] == 0
    # the old package until the one move that puts the new one in its place, the new one from then on
    assert versions == tuple(sorted(versions, reverse=True))
    assert versions.count("old") > len(package(derive(gain(3.0)), parts=()).files)
    assert versions[-1] == "new"
    assert report["left"] == ["gain"]


def test_a_reader_between_the_two_moves_waits_for_a_living_writer(tmp_path: Path) -> None:
    """The old package is aside and the folder is held: a reader must not put it back under the writer's hands."""
    (made,) = symdual.generate(gain(2.0), tmp_path)
    aside = made.folder.with_name(".gain.old")
    made.folder.rename(aside)
    code = f"import symdual; print(symdual.load({str(made.folder)!r}).name)"
    with exclusive(tmp_path):
        reader = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
        with pytest.raises(subprocess.TimeoutExpired):
            reader.wait(timeout=3.0)
        assert aside.is_dir()
        write(package(derive(gain(2.0))), tmp_path)
    assert reader.communicate(timeout=600)[0] == "gain\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["gain"]


def test_the_default_folder_is_generated_here_or_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (made,) = symdual.generate(gain(2.0))
    assert made.folder == tmp_path / "generated" / "gain"
    monkeypatch.setattr("os.access", lambda place, mode: "cache" in str(place))
    (made,) = symdual.generate(gain(2.0, "other"))
    assert made.folder == tmp_path / "cache" / "symdual" / "generated" / "other"
    assert symdual.load("other").folder == made.folder


def test_a_model_without_a_name_is_called_model(tmp_path: Path) -> None:
    (made,) = symdual.generate(Model([x], [u], [x + features.fourier("g", x, count=2)]), tmp_path)
    assert made.folder == tmp_path / "model"
