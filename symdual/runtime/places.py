"""Where things go that can be made again, whether there is a home folder or not, and who else could write there.

What lies in these folders is executed, so they belong to the user and nobody else may write to them (docs/security.md).
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from symdual.common.errors import SymdualError, warn_once

_SWITCH = "SYMDUAL_CACHE"
_MEND = "set XDG_CACHE_HOME to a folder that can be written"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def caching() -> bool:
    """Whether anything is kept from one process to the next: not where $SYMDUAL_CACHE says "off"."""
    wish = os.environ.get(_SWITCH, "").strip().lower()
    if wish not in ("", "on", "off"):
        raise SymdualError(f'the variable {_SWITCH} may be "on" or "off", not "{wish}"')
    return wish != "off"


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/symdual` or `~/.cache/symdual`; where neither is there for this user alone, a private one.

    Services and containers often have no home folder, or one that they must not write. Links on the way are followed
    here, once: nobody can turn them elsewhere afterwards.
    """
    if not caching():
        return _of_this_process()
    for base in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):  # noqa: PTH111 (it never raises)
        if Path(base).is_absolute() and _can_be_made(Path(base)):
            folder = Path(os.path.realpath(Path(base) / "symdual"))
            if is_private(folder):
                return folder
            fallback = _of_this_user()
            warn_once(f"others may write to {folder} or replace it; what symdual keeps goes to {fallback}")
            return fallback
    return _of_this_user()


@contextmanager
def scratch() -> Iterator[Path]:
    """A fresh folder that only this user can look into; it is gone afterwards.

    Not by `TemporaryDirectory`, which a forked process would clean up at its own end.
    """
    folder = private_folder(cache_folder())
    try:
        own = Path(tempfile.mkdtemp(dir=folder, prefix="at-work-"))
        clear = partial(_remove, os.getpid(), own)
        atexit.register(clear)  # for threads that do not get to their end
        try:
            yield own
        finally:
            clear()
            atexit.unregister(clear)
    except OSError as failure:
        raise SymdualError(f"cannot write to the folder {folder}: {failure.strerror}") from failure


def private_folder(folder: Path) -> Path:
    """A folder below `cache_folder`, made for this user alone if it is not there."""
    try:
        for place in (*reversed(folder.parents), folder):
            if not place.exists():
                place.mkdir(mode=0o700, exist_ok=True)
    except OSError as failure:
        raise SymdualError(f"cannot make the folder {folder}: {failure.strerror}") from failure
    if not is_private(folder):  # somebody may have been quicker
        raise SymdualError(f"others may write to {folder} or replace it; {_MEND}")
    return folder


def is_private(folder: Path) -> bool:
    """Whether nobody but this user, or root, can put anything into a folder, or another one into its place.

    The folder belongs to the user, each folder on the way to the user or to root, and nobody else may write to them. On
    the way there may be one like /tmp, which everybody writes and in which nobody can move what belongs to others. Of a
    folder that is not there yet, those are looked at in which it would be made. Links are followed, and somebody may
    turn them elsewhere afterwards: what is used is the path behind them. Windows has no such owners; there the user's
    profile is private.
    """
    if not hasattr(os, "geteuid"):
        return True
    path = Path(os.path.realpath(folder))
    try:
        for place in (*reversed(path.parents), path):
            found = place.lstat()
            at_end = place == path
            owners = {os.geteuid()} if at_end else {os.geteuid(), 0}
            shared = bool(_writers(found, place)) and (at_end or not found.st_mode & stat.S_ISVTX)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners or shared:
                return False
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def own_content(file: Path) -> bytes | None:
    """What is in a file, opened once; None for no file, ValueError for a link, a pipe, or a file of somebody else."""
    flags = (getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    try:
        handle = os.open(file, sum(flags, os.O_RDONLY))
        try:
            if not _is_own(handle):
                raise ValueError("it is no file of your own")
            with open(handle, "rb", closefd=False) as stream:
                return stream.read()
        finally:
            os.close(handle)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        raise ValueError(failure.strerror) from failure


def _is_own(handle: int) -> bool:
    """Whether an open file is an ordinary one that belongs to this user, and that nobody else may write."""
    found = os.fstat(handle)
    mine = not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not _writers(found, handle))
    return stat.S_ISREG(found.st_mode) and mine


def _writers(found: os.stat_result, file: Path | int) -> int:
    """Which others may write: the group only where it has other members than the user, and nobody else is listed."""
    mode = found.st_mode & _OTHERS_WRITE
    alone = bool(mode & stat.S_IWGRP) and _is_of_one(found.st_gid) and not _has_list(file)
    return mode & ~stat.S_IWGRP if alone else mode


def _has_list(file: Path | int) -> bool:
    """Whether access is given to further users by a list, whose most generous entry is what the group's mode shows."""
    if not hasattr(os, "listxattr"):
        return False  # such systems show lists in no mode
    try:
        return "system.posix_acl_access" in os.listxattr(file)
    except OSError:  # a file system without such lists
        return False


def _is_of_one(group: int) -> bool:
    """Whether a group is the one that many systems make for each user, with the user's name and no other member."""
    import grp
    import pwd

    try:
        own, user = grp.getgrgid(group), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    named = (own.gr_gid, own.gr_name) == (user.pw_gid, user.pw_name) and group != 0  # in containers that is everybody's
    return named and set(own.gr_mem) <= {user.pw_name}


def _can_be_made(folder: Path) -> bool:
    """Whether it is there and can be written, or can be made below the last of its parents that is there.

    Somebody else's home folder may not even be looked into: what cannot be seen is not there.
    """
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))  # noqa: PTH110 (it never raises)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _of_this_user() -> Path:
    """A folder of this user among temporary files; where somebody else has made it, one of this process."""
    user = os.geteuid() if hasattr(os, "geteuid") else None
    folder = _temporary() / ("symdual" if user is None else f"symdual-{user}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as failure:
        if not folder.exists() and not folder.is_symlink():
            raise SymdualError(f"there is no place for what symdual keeps: {failure.strerror}; {_MEND}") from failure
    if not folder.is_symlink() and folder.is_dir() and is_private(folder):
        return folder
    own = _of_this_process()
    warn_once(f"{folder} is not a folder of your own, so nothing is kept for later processes; {_MEND}")
    return own


_OF_PROCESSES: dict[int, Path] = {}  # a forked process has another number, and makes its own


def _of_this_process() -> Path:
    """A folder that goes with the process."""
    process = os.getpid()
    if process not in _OF_PROCESSES:
        try:
            made = Path(tempfile.mkdtemp(prefix="symdual-", dir=_temporary()))
        except OSError as failure:
            raise SymdualError(f"there is no place for what symdual keeps: {failure.strerror}; {_MEND}") from failure
        _OF_PROCESSES[process] = made
        atexit.register(_remove, process, made)
    return _OF_PROCESSES[process]


def _remove(process: int, folder: Path) -> None:
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _temporary() -> Path:
    """The folder of temporary files, in which nobody may replace what belongs to others."""
    try:
        folder = Path(os.path.realpath(tempfile.gettempdir()))
    except OSError as failure:
        raise SymdualError(f"there is no place for what symdual keeps: {failure.strerror}; {_MEND}") from failure
    if folder.is_dir() and not is_private(folder / "symdual-probe"):
        raise SymdualError(f"anybody may replace what lies in {folder}, the folder of temporary files; {_MEND}")
    return folder
