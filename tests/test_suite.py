"""The suite itself: what was not tested, and what took longest, is said at its end."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
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


HEADER = """
from collections import Counter
from collections.abc import Iterator
import pytest
"""


def our_hook() -> str:
    """The text of the hook alone: the rest of its file imports much that has to be waited for."""
    text = (ROOT / "tests/conftest.py").read_text()
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    (hook,) = [node for node in functions if node.name == "pytest_terminal_summary"]
    return ast.unparse(hook)


def printed(folder: Path, *options: str) -> list[str]:
    """What a suite that uses our hook prints."""
    (folder / "conftest.py").write_text(HEADER + our_hook())
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(folder), *options, str(folder)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()


def test_what_was_skipped_is_said_at_the_end_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "test_small.py").write_text(SUITE)
    *_, title, first, second, totals = printed(tmp_path, "-n", "2")
    assert "not tested here" in title
    assert (first, second) == ("3 skipped: no Chromium", "1 skipped: needs fork")
    assert "1 passed, 4 skipped" in totals
    assert not any("not tested here" in line for line in printed(tmp_path, "-k", "fine"))


def test_the_slowest_tests_are_named_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "test_slow.py").write_text("import time\n\ndef test_long():\n    time.sleep(2.1)\n")
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    text = "\n".join(printed(tmp_path, "-n", "2", *(option for option in ours if option.startswith("--durations"))))
    assert "slowest" in text and "test_slow.py::test_long" in text
