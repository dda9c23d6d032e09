"""Errors that nobody expected: one sentence, a private report, and no traceback, whatever the command."""

from __future__ import annotations

import shutil
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from symdual.commands import main
from symdual.commands.group import COMMANDS

ROOT = Path(__file__).parents[2]
MODEL = """\
import sympy as sp
from symdual import Model, unknown
x, u = sp.symbols("x u")
model = Model([x], [u], [x + unknown("b") * u])
"""


class Mute(Exception):
    """An exception that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.fixture(autouse=True)
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where reports go, in a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "symdual" / "reports"


def break_down(monkeypatch: pytest.MonkeyPatch, command: str, failure: BaseException) -> None:
    def fail(*given: Any, **named: Any) -> None:
        raise failure

    found = main.get_command(click.Context(main), command)
    monkeypatch.setattr(found, "invoke", fail)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_one_sentence(command: str, reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_down(monkeypatch, command, KeyError("b"))
    arguments = [command] if command in ("bench", "demo", "paper") else [command, "my model.py"]
    arguments += {"paper": ["check"], "replay": ["data.csv"], "fit": ["data.csv"], "export": ["--c"]}.get(command, [])
    result = run(*arguments)
    assert result.exit_code == 3 and result.stdout == ""
    (line,) = result.stderr.splitlines()
    (report,) = reports.iterdir()
    assert line.startswith("symdual: this should not have happened (KeyError: 'b'); a report is in ")
    assert str(report) in line and f"`symdual --debug {command}" in line
    text = report.read_text()
    assert text.startswith(f"symdual {command}") and "Traceback" in text and "numpy" in text and "Python 3" in text


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (RecursionError("maximum recursion depth exceeded"), "nested more deeply than Python allows; a report is in"),
        (MemoryError(), "there is not enough memory for this; a report is in"),
        (Mute(), "(Mute)"),
        (ValueError("two\nlines"), "(ValueError: two lines)"),
        (AssertionError(), "(AssertionError)"),
        (EOFError(), "Aborted!"),
        (KeyboardInterrupt(), "interrupted"),
        (PermissionError(13, "Permission denied", "there/it"), "there/it: Permission denied"),
    ],
)
def test_every_kind_of_failure_does(failure: BaseException, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_down(monkeypatch, "show", failure)
    result = run("show", "m.py")
    assert result.exit_code != 0 and said in result.stderr and "Traceback" not in result.output
    assert len(result.stderr.strip().splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="without permissions of this kind")
def test_nobody_else_reads_a_report(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_down(monkeypatch, "show", KeyError("b"))
    run("show", "m.py")
    assert stat.S_IMODE(reports.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in reports.iterdir()] == [0o600]


def test_old_reports_make_room(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_down(monkeypatch, "show", KeyError("b"))
    for _ in range(22):
        last = run("show", "m.py").stderr
    kept = list(reports.iterdir())
    assert len(kept) == 20 and any(str(file) in last for file in kept)


def test_a_report_that_cannot_be_written_is_no_second_error(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports.parent.mkdir(parents=True)
    reports.write_text("in the way")
    break_down(monkeypatch, "show", KeyError("b"))
    result = run("show", "m.py")
    assert result.exit_code == 3 and "no report could be written" in result.stderr


def test_debug_lets_it_through(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    break_down(monkeypatch, "show", KeyError("b"))
    assert isinstance(run("--debug", "show", "m.py").exception, KeyError)
    assert not reports.exists()


def test_a_command_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "symdual.commands.show", None)
    monkeypatch.delitem(main.commands, "show", raising=False)
    result = run("--help")
    assert result.exit_code == 3 and "this should not have happened" in result.stderr


def test_an_error_in_a_thread_is_a_sentence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*given: Any, **named: Any) -> None:
        thread = threading.Thread(target=lambda: 1 // 0)
        thread.start()
        thread.join()

    before = threading.excepthook
    monkeypatch.setattr(main.get_command(click.Context(main), "show"), "invoke", work)
    result = run("show", "m.py")
    assert "(ZeroDivisionError: " in result.stderr and "Traceback" not in result.stderr
    assert threading.excepthook is before


@pytest.mark.skipif(sys.platform == "win32" or shutil.which("true") is None, reason="needs a shell")
@pytest.mark.parametrize("command", ["show m.py", "--help"])
def test_nobody_reads_on(tmp_path: Path, command: str) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    line = f"PYTHONPATH={ROOT} {sys.executable} -m symdual {command} | true"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-"])
def test_nowhere_to_print(tmp_path: Path, closed: str) -> None:
    (tmp_path / "m.py").write_text(MODEL)
    line = f"PYTHONPATH={ROOT} {sys.executable} -m symdual show m.py {closed}"
    done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert "Traceback" not in done.stderr
