"""`symdual` itself: a group that imports the module of a command when it is asked for."""

from __future__ import annotations

import errno
import io
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from types import FrameType
from typing import Any

import click

from symdual import __version__
from symdual.commands.faults import STATUS, told
from symdual.common.errors import SymdualError, SymdualWarning

#: in the order of their use; each is the command of the same name in the module of the same name beside this one
COMMANDS = (
    "demo",
    "new",
    "generate",
    "show",
    "check",
    "simulate",
    "replay",
    "fit",
    "identify",
    "export",
    "paper",
    "bench",
)


class _Commands(click.Group):
    """A group that turns errors into one sentence: exit status 2 for symdual's own, 3 for what nobody expected."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> Any:
        """Run the command line; nothing but `--debug` lets a traceback reach a user."""
        arguments = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in takewhile(lambda argument: argument.startswith("-"), arguments)
        try:
            with _no_traceback_of_threads(arguments, debug):
                return super().main(arguments, *rest, **options)
        except Exception as failure:  # whatever it is, a user is told in one sentence
            if debug:
                raise
            click.echo(f"symdual: {told(failure, arguments)}", err=True)
            sys.exit(STATUS)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, imported or not."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; all of them for a name that does not exist, so that click can suggest a similar one."""
        for name in (cmd_name,) if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                command: click.Command = getattr(import_module(f"symdual.commands.{name}"), name)
                self.add_command(command, name)
        return self.commands.get(cmd_name)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; `--debug` lets errors through with their traceback."""
        try:
            with warnings.catch_warnings(), _interruptible():
                warnings.showwarning = _show
                _print_anything()
                _require_current_folder()
                return super().invoke(ctx)
        except SymdualError as failure:
            if ctx.params.get("debug"):
                raise
            click.echo(f"symdual: {failure}", err=True)
            sys.exit(2)
        except OSError as failure:  # of what is printed: files have sentences of their own
            if ctx.params.get("debug") or failure.errno == errno.EPIPE:  # click ends quietly when nobody reads on
                raise
            file = f"{failure.filename}: " if failure.filename else ""
            click.echo(f"symdual: {file}{failure.strerror or failure}", err=True)
            sys.exit(2)
        except KeyboardInterrupt:
            click.echo("symdual: interrupted", err=True)
            sys.exit(130)


@contextmanager
def _no_traceback_of_threads(arguments: Sequence[str], debug: bool) -> Iterator[None]:
    """Tell of an error in a thread, which nobody waits for, in a sentence too."""

    def tell(failed: threading.ExceptHookArgs) -> None:
        if failed.exc_value is not None and not isinstance(failed.exc_value, SystemExit | BrokenPipeError):
            click.echo(f"symdual: {told(failed.exc_value, arguments)}", err=True)

    usual = threading.excepthook
    threading.excepthook = usual if debug else tell
    try:
        yield
    finally:
        threading.excepthook = usual


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C be heard while LLVM compiles; only the main thread may decide that, and only if nobody else has."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, but a moment later if LLVM has just called back.

    LLVM hands over what it has compiled in a callback. An exception raised there is printed and forgotten, and then
    numba misses the compiled code.
    """
    while frame is not None:
        if "llvmlite" in frame.f_code.co_filename and frame.f_code.co_name.startswith("_raw_object_cache"):
            again = threading.Timer(0.02, signal.raise_signal, (number,))
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _print_anything() -> None:
    """Let a terminal or a file that cannot show a character have a question mark in its place."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _require_current_folder() -> None:
    try:
        Path.cwd()
    except OSError as failure:
        raise SymdualError("the current folder does not exist any more; change to another one") from failure


_python_shows = warnings.showwarning


def _show(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning of ours as a sentence, and leave all others to Python."""
    if issubclass(category, SymdualWarning):
        click.echo(f"symdual: {message}", err=True)
    else:
        _python_shows(message, category, filename, lineno, file, line)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="symdual")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Derive, generate and run dual controllers: controllers that learn a system while they steer it."""
