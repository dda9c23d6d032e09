"""The suite itself: what was not tested is said at its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SUITE = """
import pytest

@pytest.mark.parametrize("i", range(3))
def test_page(i):
    pytest.skip("no Chromium")

@pytest.mark.skipif(True, reason="needs fork")
def test_fork():
    pass

def test_fine():
    pass
"""


def printed(folder: Path, *options: str) -> list[str]:
    """What a suite that uses our hooks prints."""
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", "/dev/null", "--rootdir", str(folder)]
    command += [*options, str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_was_skipped_is_said_at_the_end_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "test_small.py").write_text(SUITE)
    *_, title, first, second, totals = printed(tmp_path, "-n", "2")
    assert "not tested here" in title
    assert (first, second) == ("3 skipped: no Chromium", "1 skipped: needs fork")
    assert "1 passed, 4 skipped" in totals
    assert not any("not tested here" in line for line in printed(tmp_path, "-k", "fine"))
