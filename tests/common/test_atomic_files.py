"""Files are whole or as they were, and nothing else is left; what is no ordinary file is written into."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from symdual import SymdualError
from symdual.common.atomic_files import atomic_file, remove_unfinished, require_writable, write_atomically


def test_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    write_atomically(file, b"old")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_in_the_middle_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    write_atomically(file, b"old")
    with pytest.raises(OSError, match="no space left"), atomic_file(file) as stream:
        stream.write(b"ne")
        raise OSError("no space left on device")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_failure_at_the_end_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "numbers.json"
    write_atomically(file, b"old")

    def fail(path: Path, *arguments: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_two_writers_do_not_meet(tmp_path: Path) -> None:
    """A slow writer and a quick one: each content is whole, the last to finish stays."""
    file = tmp_path / "numbers.json"
    with atomic_file(file) as slow:
        slow.write(b"sl")
        slow.flush()
        quick = threading.Thread(target=write_atomically, args=(file, b"quick"))
        quick.start()
        quick.join()
        assert file.read_bytes() == b"quick"
        slow.write(b"ow")
    assert file.read_bytes() == b"slow"
    assert list(tmp_path.iterdir()) == [file]


def test_a_name_of_the_largest_length(tmp_path: Path) -> None:
    file = tmp_path / ("n" * 255)
    write_atomically(file, b"content")
    assert list(tmp_path.iterdir()) == [file]


def test_what_killed_writers_left_is_removed(tmp_path: Path) -> None:
    file = tmp_path / "results[1].npz"
    other = tmp_path / ".other.npz.1-1.new"
    for left in (tmp_path / ".results[1].npz.12-34.new", other):
        left.write_bytes(b"half")
    remove_unfinished(file)
    assert list(tmp_path.iterdir()) == [other]


# -------------------------------------------------------------------- what is there already


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen([sys.executable, "-c", f"print(open({str(pipe)!r}).read())"], stdout=-1, text=True) as reader:
        require_writable(pipe)
        write_atomically(pipe, b"through")
        assert reader.communicate()[0].strip() == "through"
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="needs devices")
def test_a_device_is_written_into(tmp_path: Path) -> None:
    link = tmp_path / "null"
    link.symlink_to("/dev/null")  # were it replaced, the link would be, not the device
    require_writable(link)
    write_atomically(link, b"gone")
    assert link.is_symlink()
    assert link.is_char_device()
    assert list(tmp_path.iterdir()) == [link]


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs the device that is always full")
def test_a_full_device_is_an_error() -> None:
    with pytest.raises(OSError, match="No space left"):
        write_atomically(Path("/dev/full"), b"content")
    assert Path("/dev/full").is_char_device()


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    link, target = tmp_path / "link", tmp_path / "far" / "target"
    link.symlink_to("far/target")
    for content in (b"the target is not there yet", b"now it is"):
        require_writable(link)
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_bytes() == content
    assert {file.name for file in tmp_path.rglob("*")} == {"far", "link", "target"}


@pytest.mark.skipif(os.name != "posix", reason="modes")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_the_mode_is_kept(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "private"
    file.write_bytes(b"old")
    file.chmod(mode)
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == mode


@pytest.mark.skipif(os.name != "posix", reason="modes")
def test_a_new_file_has_the_mode_that_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o640


OWN_OUTPUT = """
from pathlib import Path
from symdual.common.atomic_files import require_writable, write_atomically
print("before")
require_writable(Path("/dev/stdout"))
write_atomically(Path("/dev/stdout"), b"content\\n")
print("after")
"""


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="needs /dev/stdout")
@pytest.mark.parametrize("redirected", [False, True])
def test_own_output_is_written_in_its_turn(tmp_path: Path, redirected: bool) -> None:
    """Into a pipe as into a file, which must neither be replaced nor cut."""
    file = tmp_path / "out"
    with file.open("wb") as stream:
        done = subprocess.run([sys.executable, "-c", OWN_OUTPUT], stdout=stream if redirected else -1, check=True)
    assert (file.read_bytes() if redirected else done.stdout).split() == [b"before", b"content", b"after"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SymdualError, match="it is a folder"):
        require_writable(tmp_path)
    with pytest.raises(SymdualError, match="its folder is missing"):
        require_writable(tmp_path / "missing" / "file")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(SymdualError, match="symbolic links"):
        require_writable(tmp_path / "circle")
    with pytest.raises(SymdualError, match="too long"):
        require_writable(tmp_path / ("n" * 300))
    (tmp_path / "circle").unlink()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path, b"")
    assert not list(tmp_path.iterdir())
