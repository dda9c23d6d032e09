"""A place for packages and compiled code, with a home folder and without."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from symdual import SymdualError, SymdualWarning
from symdual.common import errors
from symdual.runtime import places
from symdual.runtime.places import cache_folder, is_private, private_folder, scratch

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files of its own, and a current folder in which nothing may appear."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(places, "_OF_PROCESSES", {})
    errors.SAID.clear()
    return tmp_path / "tmp"


def test_the_variable_comes_first_then_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home/.cache/symdual"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert cache_folder() == tmp_path / "cache/symdual"
    assert not (tmp_path / "home").exists() and not (tmp_path / "cache").exists()  # asking makes nothing


@pytest.mark.skipif(os.name != "posix", reason="users have numbers")
@pytest.mark.parametrize("home", [None, "~", "relative", "/dev/null", "/dev/null/below"])
@pytest.mark.parametrize("variable", [None, "~/.cache", "relative", "/dev/null"])
def test_without_a_home_there_is_a_private_place(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, home: str | None, variable: str | None
) -> None:
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # a user that the system does not know
    for name, value in (("HOME", home), ("XDG_CACHE_HOME", variable)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    folder = cache_folder()
    assert folder == temporary / f"symdual-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert cache_folder() == folder  # the next process finds what this one leaves
    assert not list(Path.cwd().iterdir())


@pytest.mark.skipif(os.name != "posix", reason="users have numbers")
def test_a_home_that_may_not_be_looked_into_is_none(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """HOME=/root for a user who is not root, as containers have it."""
    closed, look = temporary / "root", os.stat

    def stat_outside(path: Any, *rest: Any, **keywords: Any) -> os.stat_result:
        if str(path).startswith(f"{closed}/"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return look(path, *rest, **keywords)

    closed.mkdir()
    monkeypatch.setenv("HOME", str(closed))
    monkeypatch.setattr("os.access", lambda path, mode: str(path) != str(closed))
    monkeypatch.setattr("os.stat", stat_outside)
    assert cache_folder() == temporary / f"symdual-{os.getuid()}"


@pytest.mark.skipif(os.name != "posix", reason="users have numbers")
@pytest.mark.parametrize("planted", ["owner", "mode", "link", "file"])
def test_a_folder_of_somebody_else_is_not_trusted(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, planted: str
) -> None:
    monkeypatch.setenv("HOME", "/dev/null")
    folder = temporary / f"symdual-{os.getuid()}"
    if planted == "link":
        folder.symlink_to(temporary)
    elif planted == "file":
        folder.write_text("")
    else:
        folder.mkdir()
        folder.chmod(0o777 if planted == "mode" else 0o700)
        if planted == "owner":
            own = os.getuid()
            folder.rename(temporary / f"symdual-{own + 1}")
            temporary.chmod(0o1777)
            monkeypatch.setattr("os.geteuid", lambda: own + 1)
            monkeypatch.setattr(places, "_temporary", lambda: temporary)  # which is of another owner too
    with pytest.warns(SymdualWarning, match=f"{folder.name.rpartition('-')[0]}.* is not a folder of your own"):
        found = cache_folder()
    assert (
        found.parent == temporary and found.name.startswith("symdual-") and stat.S_IMODE(found.stat().st_mode) == 0o700
    )
    assert cache_folder() == found != folder  # as long as the process lives


def test_no_place_at_all_names_the_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null")
    with pytest.raises(SymdualError, match=r"no place for what symdual keeps: .*; set XDG_CACHE_HOME"):
        cache_folder()


@pytest.mark.skipif(os.name != "posix", reason="users have numbers")
@pytest.mark.parametrize("loose", ["cache", "symdual", "above"])
def test_a_folder_that_others_may_write_is_not_used(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch, loose: str
) -> None:
    base = tmp_path / "above" / "cache"
    (base / "symdual").mkdir(parents=True)
    {"cache": base, "symdual": base / "symdual", "above": tmp_path / "above"}[loose].chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(base))
    with pytest.warns(
        SymdualWarning, match=f"others may write to {base}/symdual or replace it; .* goes to {temporary}"
    ):
        assert cache_folder() == temporary / f"symdual-{os.getuid()}"
    assert cache_folder() == temporary / f"symdual-{os.getuid()}"  # which is said once
    (tmp_path / "above").chmod(0o1777)  # like /tmp: what belongs to others cannot be replaced
    base.chmod(0o755)
    (base / "symdual").chmod(0o755)
    assert cache_folder() == base / "symdual"


@pytest.mark.skipif(os.name != "posix", reason="users have numbers")
def test_who_else_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    assert is_private(folder)
    folder.mkdir(mode=0o755)
    assert is_private(folder)
    (tmp_path / "file").write_text("")
    assert not is_private(tmp_path / "file")
    folder.chmod(0o775)
    monkeypatch.setattr(places, "_is_of_one", lambda group: True)
    assert is_private(folder)  # a group of the user alone, as many systems have it
    monkeypatch.setattr(places, "_is_of_one", lambda group: False)
    assert not is_private(folder)
    with pytest.raises(SymdualError, match=f"others may write to {folder}"):
        private_folder(folder)
    folder.chmod(0o755)
    own = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: own + 1)
    assert not is_private(folder)


def test_whoever_is_on_a_list_may_write_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The most generous entry of a list is shown as the group's mode, of a group with one member."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_text("")
    monkeypatch.setattr(places, "_is_of_one", lambda group: True)
    for place in (folder, folder / "file"):
        place.chmod(0o770)
    assert is_private(folder) and places.own_content(folder / "file") == b""
    entries = [(1, 7, -1), (2, 7, 54321), (4, 5, -1), (16, 7, -1), (32, 0, -1)]  # tag, permissions, number
    for place in (folder, folder / "file"):
        try:
            os.setxattr(
                place,
                "system.posix_acl_access",
                struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries),
            )
        except (OSError, AttributeError):
            pytest.skip("no lists of access here")
    with pytest.raises(ValueError, match="it is no file of your own"):
        places.own_content(folder / "file")
    assert not is_private(folder)


def test_a_link_is_followed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "one")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    assert cache_folder() == tmp_path / "one/symdual"
    (tmp_path / "one/symdual").symlink_to(tmp_path / "private")
    (tmp_path / "private").mkdir()
    (tmp_path / "one").chmod(0o777)  # anybody may turn the link elsewhere
    assert cache_folder() == tmp_path / "private"


@pytest.mark.parametrize("wish", ["off", " OFF "])
def test_without_a_cache_everything_goes_with_the_process(
    wish: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMDUAL_CACHE", wish)
    folder = cache_folder()
    assert folder.parent == temporary and folder == cache_folder()
    with scratch() as own:
        assert own.parent == folder and stat.S_IMODE(own.stat().st_mode) == 0o700
    assert not own.exists()
    places._remove(os.getpid() + 1, folder)  # what a forked process does at its end
    assert folder.exists()
    places._remove(os.getpid(), folder)
    assert not folder.exists()


def test_another_wish_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYMDUAL_CACHE", "no")
    with pytest.raises(SymdualError, match='SYMDUAL_CACHE may be "on" or "off", not "no"'):
        cache_folder()


HOMELESS = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from symdual.runtime import nested_quadrature
print(nested_quadrature.last_cost.stats.cache_path)
from symdual.commands import main
main(["generate", "m.py", "--no-compile"])
"""
MODEL = "import sympy as sp\nfrom symdual import Model\nx, u = sp.symbols('x u')\nmodel = Model([x], [u], [x + u])\n"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv (util-linux) is not installed")
def test_an_arbitrary_user_in_a_folder_that_only_can_be_read() -> None:
    """As in a container: a home of somebody else, no name, and symdual itself installed by somebody else."""
    user = "54321"
    python = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", sys.executable, "-B", "-c"]
    alone = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    if subprocess.run([*python, "import numba, symdual"], cwd="/", env=alone, capture_output=True).returncode:
        pytest.skip("this interpreter cannot be run by another user")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        here, place = Path(folder) / "here", Path(folder) / "tmp"
        here.mkdir()
        place.mkdir()
        for open_folder, mode in ((Path(folder), 0o755), (here, 0o755), (place, 0o1777)):
            open_folder.chmod(mode)
        (Path(folder) / "closed").mkdir(mode=0o700)
        alone["HOME"] = f"{folder}/closed"
        (here / "m.py").write_text(MODEL)
        done = subprocess.run([*python, HOMELESS, str(place)], cwd=here, env=alone, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[0].startswith(f"{place}/symdual-{user}/numba/")
        assert lines[1] == f"m -> {place}/symdual-{user}/generated/m"
        assert [file.name for file in here.iterdir()] == ["m.py"]
