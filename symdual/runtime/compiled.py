"""numba's cache of our functions: sealed where numba is known from inside, numba's own everywhere else.

To be imported before the first function is compiled. numba's own cache is only used where nobody else can write: what
lies there is unpickled, which executes it.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import numba

from symdual.common.numba_versions import is_known
from symdual.common.package_folders import source_of
from symdual.runtime.forking import await_lock
from symdual.runtime.places import caching, is_private

with suppress(ImportError, AttributeError):  # one lock for all that numba compiles
    await_lock(importlib.import_module("numba.core.compiler_lock").global_compiler_lock)
with suppress(ImportError, AttributeError):  # and one for each call of LLVM, also where code is thrown away
    await_lock(importlib.import_module("llvmlite.binding.ffi").lib._lock._lock)

if is_known(numba.__version__):
    from symdual.runtime.sealed_cache import holds as holds

    def may_keep(folder: Path) -> bool:
        """Whether functions of a folder may be kept by numba: always, because every place and file is looked at."""
        return True
else:

    def may_keep(folder: Path) -> bool:
        """Whether functions of a folder may be kept by numba: only if nobody else can write where it looks for them."""
        return caching() and is_private(_place(folder))

    def _place(folder: Path) -> Path:
        """Where numba looks, as its manual says: its variable, beside the source, the user's cache folder."""
        named = os.environ.get("NUMBA_CACHE_DIR")
        beside, users = folder / "__pycache__", os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        elsewhere = Path(os.path.expanduser(users)) / "numba"  # noqa: PTH111 (it never raises)
        if named:
            return Path(named)
        return beside if os.access(beside if beside.exists() else folder, os.W_OK) else elsewhere

    def holds(folder: Path, function: str) -> bool:
        """Whether the cache beside a package has an index of one of its functions that is newer than its source."""
        source = source_of(folder, function.split(".")[0])
        version = f"py{sys.version_info.major}{sys.version_info.minor}"
        indices = (source.parent / "__pycache__").glob(f"{function}-*.{version}*.nbi")
        return any(index.stat().st_mtime >= source.stat().st_mtime for index in indices)
