"""numba's cache of our functions: sealed where numba is known from inside, numba's own everywhere else.

To be imported before the first function is compiled.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from pathlib import Path

import numba

from symdual.common.numba_versions import is_known
from symdual.runtime.forking import await_lock

with suppress(ImportError, AttributeError):  # one lock for all that numba compiles; LLVM has more
    await_lock(importlib.import_module("numba.core.compiler_lock").global_compiler_lock)

if is_known(numba.__version__):
    from symdual.runtime.sealed_cache import holds as holds
else:

    def holds(folder: Path, function: str) -> bool:
        """Whether the cache beside a package has an index of one of its functions that is newer than its source."""
        source, cache = folder / f"{function.split('.')[0]}.py", folder / "__pycache__"
        version = f"py{sys.version_info.major}{sys.version_info.minor}"
        indices = cache.glob(f"{function}-*.{version}*.nbi")
        return any(index.stat().st_mtime >= source.stat().st_mtime for index in indices)
