"""What becomes of an error that nobody expected: a sentence for the user, a report in a private file for us."""

from __future__ import annotations

import platform
import shlex
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from symdual import __version__
from symdual.common.errors import SymdualError

STATUS = 3  #: of a command that met a fault of symdual itself
_KEPT = 20  # reports, the newest ones
_LONGEST = 200_000  # characters of a traceback, of which the middle is left out
_VERSIONS = ("numpy", "scipy", "sympy", "numba", "llvmlite", "jinja2", "click", "rich")


def told(failure: BaseException, arguments: Sequence[str]) -> str:
    """Write a report of an error, and say in one sentence what happened, where it lies and how to see more."""
    try:
        place = f"a report is in {_write(_report(failure, arguments))}"
    except (OSError, SymdualError, MemoryError) as refusal:
        place = f"no report could be written ({_words(refusal)})"
    again = shlex.join(["symdual", "--debug", *arguments])
    return f"{_what(failure)}; {place}, and `{again}` shows the traceback"


def _what(failure: BaseException) -> str:
    if isinstance(failure, MemoryError):
        return "there is not enough memory for this"
    if isinstance(failure, RecursionError):
        return "something here is nested more deeply than Python allows"
    words = _words(failure)
    return f"this should not have happened ({type(failure).__name__}{': ' if words else ''}{words})"


def _words(failure: BaseException) -> str:
    """What an exception says, on one line; it may be one that cannot even say that."""
    try:
        words = " ".join(str(failure).split())
    except Exception:  # __str__ of any class may raise anything, and this is the last place to say something
        return ""
    return words if len(words) <= 200 else words[:197] + "..."


def _report(failure: BaseException, arguments: Sequence[str]) -> str:
    trace = "".join(traceback.format_exception(failure))
    if len(trace) > _LONGEST:
        trace = f"{trace[: _LONGEST // 2]}\n...\n{trace[-_LONGEST // 2 :]}"
    versions = [f"symdual {__version__}", f"Python {platform.python_version()}", *map(_version, _VERSIONS)]
    return f"{shlex.join(['symdual', *arguments])}\n{', '.join(versions)}\n{platform.platform()}\n\n{trace}"


def _version(name: str) -> str:
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        return f"no {name}"


def _write(text: str) -> Path:
    """A new file that nobody else may read; the oldest ones make room."""
    from symdual.runtime.places import cache_folder

    folder = cache_folder() / "reports"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(".txt", "report-", folder)  # made anew, readable by its owner only
    with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123 (it is open already)
        file.write(text)
    reports = sorted(folder.glob("report-*.txt"), key=lambda file: file.lstat().st_mtime, reverse=True)
    for old in reports[_KEPT:]:
        old.unlink(missing_ok=True)
    return Path(name)
