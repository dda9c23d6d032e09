"""Where things go that can be made again, whether there is a home folder or not."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from symdual.errors import SymdualError

_MEND = "set XDG_CACHE_HOME to a folder that can be written"


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/symdual` or `~/.cache/symdual`; where neither can be, a private one among temporary files.

    Services and containers often have no home folder, or one that they must not write.
    """
    for base in (os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser("~/.cache")):  # noqa: PTH111 (it never raises)
        if Path(base).is_absolute() and _can_be_made(Path(base)):
            return Path(base) / "symdual"
    return _private()


def _can_be_made(folder: Path) -> bool:
    """Whether it is there and can be written, or can be made below the last of its parents that is there.

    Somebody else's home folder may not even be looked into: what cannot be seen is not there.
    """
    there = next(place for place in (folder, *folder.parents) if os.path.exists(place))  # noqa: PTH110 (it never raises)
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def _private() -> Path:
    """A folder of this user alone: what lies in it is imported, so nobody else may have put it there."""
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / ("symdual" if user is None else f"symdual-{user}")
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as failure:
        raise SymdualError(f"there is no place for what symdual keeps: {failure.strerror}; {_MEND}") from failure
    if user is not None and not (stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o022):
        raise SymdualError(f"{folder} is not a folder of your own; {_MEND}")
    return folder
