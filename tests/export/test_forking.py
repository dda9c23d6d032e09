"""Processes that are forked at any moment: while something is compiled, afterwards, while another thread has a lock."""

from __future__ import annotations

import ast
import importlib
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symdual
from symdual.backends.c import backend, compilation, kept
from symdual.backends.c.backend import CBackend
from symdual.backends.c.program import Program
from symdual.common.package_folders import locked
from symdual.runtime import forking, loading, places
from symdual.runtime.forking import Lock
from symdual.runtime.threads import Background

from .conftest import ROOT, files_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
PATIENCE = 120.0  # seconds; what is stuck is stuck for ever
TEXT = "int answer(void) { return 42; }\n"


def in_child(work: Callable[[], object]) -> None:
    """Do something in a forked process, which must end well."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            assert status == 0
            return
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the forked process is stuck")


@pytest.fixture
def held() -> Any:
    """Return a function that lets another thread hold something for as long as the test lasts."""
    over, threads = threading.Event(), []

    def hold(lock: Any) -> None:
        taken = threading.Event()

        def work() -> None:
            with lock:
                taken.set()
                over.wait()

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        taken.wait()

    yield hold
    over.set()
    for thread in threads:
        thread.join()


@pytest.fixture
def slow_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, c_compiler: str) -> Path:
    """A compiler that waits until a file is there, unless it is asked by another process than this one."""
    go, command = tmp_path / "go", tmp_path / "slowcc"
    command.write_text(
        f"""#!/bin/sh
case "$*" in *package.c*)
    while [ $PPID = {os.getpid()} ] && [ ! -e {go} ] && [ -e {tmp_path}/slow ]; do sleep 0.05; done
esac
exec {c_compiler[0]} "$@"
"""
    )
    command.chmod(0o755)
    monkeypatch.setenv("CC", str(command))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compilation.working()
    (tmp_path / "slow").touch()
    return go


def test_a_fork_while_something_is_compiled(slow_compiler: Path) -> None:
    waiting = [compilation.begun(TEXT.replace("42", str(n))) for n in range(8)]  # more than have a turn
    in_child(lambda: [kept.loaded(one()) for one in waiting])
    slow_compiler.touch()
    assert [kept.loaded(one()).answer() for one in waiting] == list(range(8))


def test_a_fork_while_a_library_is_waited_for(slow_compiler: Path) -> None:
    """The thread that waits holds the lock of the library."""
    c = CBackend("toy", files_of("toy"))
    pointer = c.module("decision").cost_pointer("ce")
    thread = threading.Thread(target=lambda: pointer.address)
    thread.start()
    (library,) = (library for _, library in c._parts.values())
    while not library._loading._lock.locked():
        time.sleep(0.01)
    in_child(lambda: pointer.address)
    slow_compiler.touch()
    thread.join()
    assert pointer.address


def test_the_end_of_a_forked_process_leaves_the_compilers_of_its_parent_alone(slow_compiler: Path) -> None:
    waiting = compilation.begun(TEXT)

    def end_as_usual() -> None:
        import atexit

        atexit._run_exitfuncs()

    in_child(end_as_usual)
    slow_compiler.touch()
    assert kept.loaded(waiting()).answer() == 42


def test_a_fork_after_something_was_compiled(
    package_of: Callable[[str], Path], c_compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "_BACKENDS", {})
    problem = symdual.problem(symdual.load(package_of("toy"), backend="c"))
    before = symdual.controller(problem, "ce").act([0.1])

    def work() -> None:
        assert np.array_equal(symdual.controller(problem, "ce").act([0.1]), before)  # compiled before
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "fresh"))
        symdual.controller(problem, "cautious").act([0.1])  # and now

    in_child(work)
    assert np.array_equal(symdual.controller(problem, "ce").act([0.1]), before)


def _decide(problem: Any) -> list[float]:
    return [float(u) for u in symdual.controller(problem, "dual").act([0.1])]


def test_a_pool_of_forked_processes_decides(package_of: Callable[[str], Path], c_compiler: str) -> None:
    problem = symdual.problem(symdual.load(package_of("toy"), backend="c"))
    here = _decide(problem)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(_decide, [problem] * 3).get(PATIENCE) == [here] * 3


def test_a_lock_that_another_thread_holds_is_open_in_a_forked_process(held: Callable[[Any], None]) -> None:
    lock = Lock()
    held(lock)

    def work() -> None:
        with lock:
            pass
        with lock:  # it was closed properly
            pass

    in_child(work)


def test_no_lock_is_made_that_is_not_renewed() -> None:
    """Whoever needs one takes it from `forking`."""
    root = Path(symdual.__file__).parent
    files = [file for room in ("runtime", "backends", "common") for file in (root / room).rglob("*.py")]
    words = (
        "threading.Lock(",
        "threading.RLock(",
        "threading.Condition(",
        "ThreadPoolExecutor",
        "functools import cached",
    )
    found = [f"{file.name}: {word}" for file in files for word in words if word in file.read_text()]
    assert found == ["forking.py: threading.Lock(", "forking.py: threading.RLock("]


def test_a_fork_and_other_threads_wait_until_the_modules_of_a_package_are_made(
    monkeypatch: pytest.MonkeyPatch, c_compiler: str
) -> None:
    """They are there before they have run, because they import each other."""
    run, begun = Program._run, threading.Event()

    def slowly(self: Program, name: str) -> Any:
        if name == "trajectory":
            begun.set()
            time.sleep(0.3)
        return run(self, name)

    monkeypatch.setattr(Program, "_run", slowly)
    c = CBackend("toy", files_of("toy"))
    failures: list[Exception] = []

    def use() -> None:
        try:
            assert c.module("decision").decide_at
        except Exception as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=use) for _ in range(2)]
    threads[0].start()
    assert begun.wait(PATIENCE)
    threads[1].start()
    in_child(use)
    for thread in threads:
        thread.join()
    assert not failures


def test_one_thread_parses_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 fails now and then when two do (AST constructor recursion depth mismatch)."""
    parse, inside, most = ast.parse, [], []

    def slowly(*arguments: Any) -> Any:
        inside.append(1)
        time.sleep(0.1)
        most.append(len(inside))
        inside.pop()
        return parse(*arguments)

    monkeypatch.setattr("symdual.backends.c.program.ast.parse", slowly)
    threads = [threading.Thread(target=Program(files_of("toy")).trees, args=("plant",)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1]


def test_a_package_is_imported_once(package_of: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread does not meet it half imported."""
    execute, begun = loading._Modules.exec_module, threading.Event()
    found: list[str] = []

    def slowly(self: Any, module: Any) -> None:
        begun.set()
        time.sleep(0.3)
        execute(self, module)

    def use() -> None:
        found.append(loading.load(package_of("toy")).module.DIGEST)

    monkeypatch.setattr(loading, "_PARENT", "symdual_generated_elsewhere")
    monkeypatch.setattr(loading._Modules, "exec_module", slowly)
    thread = threading.Thread(target=use)
    thread.start()
    assert begun.wait(PATIENCE)
    in_child(use)
    use()
    thread.join()
    assert len(found) == 2 and found[0] == found[1]


@pytest.mark.parametrize("family", ["awaited", "unknown"])
def test_a_fork_waits_for_imports_in_other_threads(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of modules that end their import, as those of packages, numba and Python do."""
    name = f"{family}_and_slow"
    (tmp_path / f"{name}.py").write_text("import time\ntime.sleep(0.5)\ndone = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(forking, "_AWAITED_IMPORTS", forking._AWAITED_IMPORTS | {"awaited_and_slow"})
    thread = threading.Thread(target=importlib.import_module, args=(name,))
    thread.start()
    while name not in sys.modules:
        time.sleep(0.01)
    whole: list[bool] = []
    if family == "awaited":
        in_child(lambda: importlib.import_module(name).done)
    else:
        in_child(lambda: None)
        whole.append(hasattr(sys.modules[name], "done"))
    thread.join()
    assert sys.modules.pop(name).done and True not in whole


def test_a_thread_that_imports_may_need_what_the_fork_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As packages do that are compiled while they are imported."""
    (tmp_path / "needing.py").write_text(
        "import time\nfrom symdual.runtime.forking import MAKING\ntime.sleep(0.3)\nwith MAKING:\n    done = True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(forking, "_AWAITED_IMPORTS", forking._AWAITED_IMPORTS | {"needing"})
    thread = threading.Thread(target=importlib.import_module, args=("needing",))
    thread.start()
    while "needing" not in sys.modules:
        time.sleep(0.01)
    in_child(lambda: importlib.import_module("needing").done)
    thread.join()
    assert sys.modules.pop("needing").done


FORKING_AT_ANY_MOMENT = """
    import os, random, sys, threading, time, warnings
    warnings.simplefilter("ignore")
    import symdual
    from symdual.backends.c import backend, compilation

    compilation.FAST, compilation.SHORT_LOOPS = ("-O0",), ()
    folder, by, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    over = threading.Event()

    def use(name):
        symdual.controller(symdual.problem(symdual.load(folder, backend=by)), name).act()

    def work(chance):
        while not over.is_set():
            backend._BACKENDS.clear()  # everything anew
            use(chance.choice(["ce", "cautious", "dual", "beb"]))

    threads = [threading.Thread(target=work, args=(random.Random(n),)) for n in range(2)]
    for thread in threads:
        thread.start()
    chance = random.Random(3)
    ends = []
    for _ in range(rounds):
        time.sleep(0.3 * chance.random())
        child = os.fork()
        if child == 0:
            status = 1
            try:
                use(chance.choice(["ce", "dual"]))
                status = 0
            finally:
                os._exit(status)
        deadline = time.monotonic() + 120
        while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        if not ended[0]:
            os.kill(child, 9)
            os.waitpid(child, 0)
        ends.append("stuck" if not ended[0] else ended[1])
    over.set()
    print(ends)
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.soak
@pytest.mark.parametrize(("by", "rounds"), [("c", 60), ("numba", 200)])
def test_forks_by_chance_while_threads_load_compile_and_decide(
    by: str, rounds: int, package_of: Callable[[str], Path], tmp_path: Path, c_compiler: str
) -> None:
    code = textwrap.dedent(FORKING_AT_ANY_MOMENT)
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(package_of("toy")), by, str(rounds)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=3000,
    )
    assert done.stdout == f"{[0] * rounds}\n" and done.stderr == ""


@pytest.mark.parametrize("whose", ["numba", "LLVM"])
def test_numba_compiles_in_a_process_that_was_forked_while_another_thread_compiled(whose: str) -> None:
    """numba has one lock for all that it compiles, and LLVM one for each call; a fork waits for both."""
    import llvmlite.binding.ffi
    from numba.core.compiler_lock import global_compiler_lock

    import symdual.runtime.compiled  # noqa: F401

    order = []
    entered = threading.Event()
    lock: Any = global_compiler_lock if whose == "numba" else llvmlite.binding.ffi.lib._lock

    def compile_something() -> None:
        with lock:
            entered.set()
            time.sleep(0.3)
            order.append("compiled")

    thread = threading.Thread(target=compile_something)
    thread.start()
    entered.wait()

    def work() -> None:
        assert order == ["compiled"]
        with lock:
            pass

    in_child(work)
    thread.join()
    with lock:
        pass


def test_a_folder_is_not_held_by_a_process_that_was_forked_meanwhile(tmp_path: Path) -> None:
    over, go_on = os.pipe()
    with locked(tmp_path, wait=True):
        child = os.fork()
        if child == 0:
            os.close(go_on)
            os.read(over, 1)
            os._exit(0)
    with locked(tmp_path, wait=False) as free:
        assert free
    os.close(go_on)
    os.waitpid(child, 0)


def test_a_sweep_in_the_background_is_not_waited_for_in_vain() -> None:
    with Background() as background:
        assert background.call(lambda: 1) == 1

        def work() -> None:
            with pytest.raises(symdual.SymdualError, match="cannot go on in a process that was forked from it"):
                background.call(lambda: 2)

        in_child(work)


def test_a_forked_process_has_temporary_folders_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDUAL_CACHE", "off")
    here = places.cache_folder()

    def work() -> None:
        assert places.cache_folder() != here
        places._remove(os.getpid(), places.cache_folder())

    in_child(work)
    assert here.exists()
