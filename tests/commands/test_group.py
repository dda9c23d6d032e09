"""The command line: exit status, one sentence for each kind of bad input, and nothing written."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from symdual import __version__
from symdual.commands import main
from symdual.commands.group import COMMANDS

HEAD = """\
import numpy as np
import sympy as sp
from symdual import Model, Scenario, constant, features, unknown
x, v, u = sp.symbols("x v u")
"""
GOOD = HEAD + "model = Model([x], [u], [x + unknown('b', 1.0) * u])\n"

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def entries(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))


#: what is wrong, the end of the model file, and what must be said
BAD = {
    "undeclared": ("m = Model([x], [u], [x + sp.Symbol('uu')])", "'uu'", 'did you mean "u"'),
    "without dynamics": ("m = Model([x, v], [u], [x + u])", '"v" has no dynamics'),
    "name twice": ("m = Model([x], [u], [x + unknown('x')])", '"x"'),
    "state and input": ("m = Model([x], [x], [x])", '"x"'),
    "keyword": ("s = sp.Symbol('lambda'); m = Model([s], [u], [s])", "keyword"),
    "identifier": ("s = sp.Symbol('a b'); m = Model([s], [u], [s])", "identifier"),
    "shadowing": ("s = sp.Symbol('work'); m = Model([s], [u], [s])", '"work"'),
    "code": ("s = sp.Symbol('x); import os #'); m = Model([s], [u], [s])", "x); import os #"),
    "undefined function": ("m = Model([x], [u], [sp.Function('q')(x)])", "'q'"),
    "function": ("m = Model([x], [u], [sp.gamma(x)])", "gamma"),
    "jump": ("m = Model([x], [u], [sp.floor(x)])", "floor", "derivative"),
    "shape": ("m = Model([x], [u], [x], process_noise=[1, 2])", "process_noise", "shape (2,)"),
    "covariance": ("m = Model([x, v], [u], [x, v], process_noise=[[1, 2], [2, 1]])", "smallest eigenvalue is -1"),
    "nan": ("m = Model([x], [u], [x], measurement_noise=np.nan)", "measurement_noise", "NaN"),
    "infinite": ("c = constant('c', np.inf)", '"c"', "infinite"),
    "no features": ("g = features.fourier('g', x, count=0)", '"g"', "0 features"),
    "argument": ("s = Scenario(Model([x], [u], [x + u]), 3, target=1.0)", 'no argument "target"', '"reference"'),
    "raises": ("1 / 0", "ZeroDivisionError"),
    "syntax": ("x = (", "not valid Python"),
    "no model": ("m = 3", "contains no Model"),
}


@pytest.mark.parametrize("command", ["generate", "show", "check"])
@pytest.mark.parametrize("case", BAD)
def test_bad_models(here: Path, command: str, case: str) -> None:
    text, *said = BAD[case]
    (here / "bad.py").write_text(HEAD + text + "\n")
    result = run(command, "bad.py")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("symdual: bad.py")
    assert case == "no model" or line.startswith("symdual: bad.py:5: ")
    for part in said:
        assert part in line
    assert result.stdout.strip() == ""
    assert entries(here) == ["bad.py"]


@pytest.mark.parametrize("command", ["generate", "show", "check"])
def test_missing_model_file(here: Path, command: str) -> None:
    result = run(command, "missing.py")
    assert result.exit_code == 2
    assert result.stderr == "symdual: the model file missing.py does not exist\n"
    assert entries(here) == []
    (here / "good.py").write_text(GOOD)
    assert run(command, "good").stderr == 'symdual: the model file good does not exist; did you mean "good.py"?\n'


@pytest.mark.parametrize("command", ["generate", "check"])
def test_a_folder_that_cannot_be_written(here: Path, command: str) -> None:
    (here / "good.py").write_text(GOOD)
    (here / "occupied").write_text("")
    result = run(command, "good.py", "-o", "occupied")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "cannot write to the folder" in line
    assert entries(here) == ["good.py", "occupied"]


@pytest.mark.parametrize("command", ["generate", "show", "check"])
@pytest.mark.parametrize("file", ["missing/result.json", "."])
def test_a_json_file_that_cannot_be_written_is_refused_before_any_work(here: Path, command: str, file: str) -> None:
    (here / "good.py").write_text(GOOD)
    result = run(command, "good.py", "--json", file)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert f"cannot write {file}" in line
    assert entries(here) == ["good.py"]


def test_debug_shows_the_traceback(here: Path) -> None:
    (here / "bad.py").write_text(HEAD + "1 / 0\n")
    result = run("--debug", "generate", "bad.py")
    assert isinstance(result.exception, Exception)
    assert isinstance(result.exception.__cause__, ZeroDivisionError)


def test_help_and_version_import_nothing_heavy(fresh_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = """
        import sys
        from symdual.commands import main
        for option in ("--help", "--version"):
            try:
                main([option], prog_name="symdual")
            except SystemExit as finished:
                assert finished.code == 0
        print([name for name in ("sympy", "numpy", "numba", "jinja2", "rich", "matplotlib") if name in sys.modules])
    """
    printed = fresh_python(code, ROOT).stdout
    assert "generate" in printed
    assert __version__ in printed
    assert printed.endswith("[]\n")


def test_a_command_imports_its_own_module_only(fresh_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    code = """
        import sys
        from symdual.commands import main
        try:
            main(["show", "--help"], prog_name="symdual")
        except SystemExit as finished:
            assert finished.code == 0
        print([name for name in sys.modules if name.startswith("symdual.commands.")])
    """
    printed = fresh_python(code, ROOT).stdout
    assert "symdual.commands.show" in printed
    assert not any(f"'symdual.commands.{other}'" in printed for other in set(COMMANDS) - {"show"})


def test_every_module_of_a_command_is_listed() -> None:
    modules = {file.stem for file in (ROOT / "symdual/commands").glob("*.py")}
    assert modules - {"__init__", "faults", "group", "options", "terminal", "json_file"} == set(COMMANDS)
    listed = run("--help").stdout.partition("Commands:")[2].splitlines()
    assert [line.split()[0] for line in listed if line.strip()] == list(COMMANDS)
    assert not any(line.endswith("...") for line in listed)


def test_a_similar_name_is_suggested() -> None:
    # in a process of its own, in which no command has been imported before
    result = subprocess.run([sys.executable, "-m", "symdual", "generat"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.endswith("No such command 'generat'. Did you mean 'generate'?\n")


def test_python_dash_m() -> None:
    result = subprocess.run([sys.executable, "-m", "symdual", "--version"], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0
    assert __version__ in result.stdout


# ------------------------------------------------------------ Ctrl-C

INTERRUPTED = """
    import os, signal
    from llvmlite.binding import executionengine
    from symdual.commands import main

    # Ctrl-C while LLVM compiles is heard in the first line of Python that runs afterwards: in this callback
    code = "def _raw_object_cache_notify(self, data): os.kill(os.getpid(), signal.SIGINT); return real(self, data)"
    space = {"os": os, "signal": signal, "real": executionengine.ExecutionEngine._raw_object_cache_notify}
    exec(compile(code, executionengine.__file__, "exec"), space)
    executionengine._notify_c_hook = executionengine._ObjectCacheNotifyFunc(space["_raw_object_cache_notify"])
    main(["check", "--kernels", "good.py"], prog_name="symdual")
"""


def test_an_interruption_while_llvm_compiles_is_one_line(
    here: Path, fresh_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    (here / "good.py").write_text(GOOD)
    done = fresh_python(INTERRUPTED, here, check=False)
    assert done.stderr == "symdual: interrupted\n"
    assert done.returncode in (130, -2)  # Python ends itself by the signal when that went through code in a string


def test_the_handler_of_others_is_left_alone(here: Path) -> None:
    (here / "good.py").write_text(GOOD)
    own = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert run("show", "good.py").exit_code == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, own)


@pytest.mark.skipif(sys.platform == "win32", reason="a folder in use cannot be deleted")
@pytest.mark.parametrize("arguments", [("generate", "m.py"), ("show", "m.py"), ("simulate", "m.py")])
def test_a_current_folder_that_is_gone(here: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.output == "symdual: the current folder does not exist any more; change to another one\n"


def test_a_folder_whose_name_is_too_long(here: Path) -> None:
    (here / "m.py").write_text(GOOD)
    result = run("generate", "m.py", "-o", "n" * 300)
    assert result.exit_code == 2
    assert result.output.startswith("symdual: cannot write to the folder") and "too long" in result.output


@pytest.mark.filterwarnings("always::symdual.common.errors.SymdualWarning")
def test_warnings_of_ours_are_sentences(here: Path) -> None:
    (here / "m.py").write_text(
        GOOD + "import warnings\nfrom symdual import SymdualWarning\nwarnings.warn('mind the gap', SymdualWarning)\n"
    )
    result = run("show", "m.py")
    assert result.exit_code == 0, result.output
    assert result.stderr == "symdual: mind the gap\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_knows_few_characters(here: Path, encoding: str) -> None:
    (here / "m.py").write_text(GOOD)
    command = [sys.executable, "-m", "symdual", "generate", "m.py", "--no-compile", "-o", "to θ"]
    environment = {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode(encoding).startswith("m -> to ?/m\n")
    assert (here / "to θ" / "m").is_dir()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs the device that is always full")
def test_what_cannot_be_printed_is_said(here: Path) -> None:
    (here / "m.py").write_text(GOOD)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "symdual", "show", "m.py"],
            cwd=here,
            env={"PYTHONPATH": str(ROOT)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode != 0
    assert "symdual: No space left on device" in done.stderr and "Traceback" not in done.stderr
