"""Files are whole or as they were, and nothing else is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from symdual.whole_file import write_whole


def test_new_content_takes_the_place_of_the_old(tmp_path: Path) -> None:
    file = tmp_path / "numbers.json"
    write_whole(file, b"old")
    write_whole(file, b"new")
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
def test_a_failure_leaves_what_was_there_and_nothing_else(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "numbers.json"
    write_whole(file, b"old")
    own = getattr(Path, step)

    def fail(path: Path, *arguments: object) -> None:
        if step == "write_bytes":
            own(path, b"ne")  # the disk is full in the middle
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, step, fail)
    with pytest.raises(OSError, match="no space left"):
        write_whole(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]
