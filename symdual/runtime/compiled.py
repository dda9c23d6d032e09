"""numba's cache of our functions: sealed where numba is known from inside, numba's own everywhere else.

To be imported before the first function is compiled.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numba

from symdual.common.numba_versions import is_known
from symdual.common.package_folders import source_of

if is_known(numba.__version__):
    from symdual.runtime.sealed_cache import holds as holds
else:

    def holds(folder: Path, function: str) -> bool:
        """Whether the cache beside a package has an index of one of its functions that is newer than its source."""
        source = source_of(folder, function.split(".")[0])
        version = f"py{sys.version_info.major}{sys.version_info.minor}"
        indices = (source.parent / "__pycache__").glob(f"{function}-*.{version}*.nbi")
        return any(index.stat().st_mtime >= source.stat().st_mtime for index in indices)
