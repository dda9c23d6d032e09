"""numba's cache of our functions: a place that works, never another source's code, and damage that is noticed.

numba keeps compiled functions in two kinds of files, an index (.nbi) and data (.nbc), both pickled. It takes what it
finds for what it wrote. Importing this module gives the functions of generated packages and of symdual itself

- a place for them wherever they run: numba's own places as far as nobody else may write there, for what is pickled is
  executed, or a folder of symdual's; none where the user wants no cache;
- the digest of the source that was really compiled, which need not be what lies in its file by now;
- files that end in a seal, so that those that a power cut left empty, torn or scrambled are dropped and made again.

A seal is some bytes behind the end of the pickled content, where a numba without symdual does not look: both read the
files of the other. Functions of other packages are cached as ever.
"""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from symdual.common.errors import SymdualError, warn_once
from symdual.common.package_folders import source_of
from symdual.runtime.places import cache_folder, is_private, own_content
from symdual.runtime.places import caching as caching_wanted

caching: Any = importlib.import_module("numba.core.caching")  # which has types in part only

_MARK = b"symdual seal 1\n"
_SIZE = hashlib.sha256().digest_size
_NOWHERE = str(Path(os.devnull) / "numba")  # a path at which nothing can be


class _Stamp(bytes):
    """The SHA-256 of a source, which is also what numba takes, with the file that the source was in."""

    file: Path


class _Locator(caching._CacheLocator):
    """Where the compiled form of a function of ours lies, and what it was compiled from."""

    def __init__(self, function: Callable[..., Any], file: str, source: bytes) -> None:
        self._py_file = file  # numba's warnings name it
        self._line = function.__code__.co_firstlineno
        self._stamp = _Stamp(hashlib.sha256(source).digest())
        self._stamp.file = Path(file)
        self._place = _place(function, file)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> Self | None:
        """The locator of one of our functions; None for any other, and numba looks further."""
        source = getattr(py_func.__globals__.get("__loader__"), "verified_source", None)
        if source is not None:
            return cls(py_func, py_file, source(py_file))
        if str(py_func.__globals__.get("__name__")).startswith("symdual."):
            with suppress(OSError):
                return cls(py_func, py_file, Path(py_file).read_bytes())
        return None

    def get_cache_path(self) -> str:
        """The folder of the compiled function."""
        return self._place

    def get_source_stamp(self) -> bytes:
        """What tells one source from another."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """What tells functions of the same name in one file apart."""
        return str(self._line)

    def ensure_cache_path(self) -> None:
        """Make the folder if it has gone; what cannot be kept is said when it is to be kept."""
        with suppress(OSError):
            super().ensure_cache_path()


def _place(function: Callable[..., Any], file: str) -> str:
    """numba's own places first, if they are private: its variable, beside the source, the user's cache folder."""
    kinds = [caching.UserProvidedCacheLocator, caching.InTreeCacheLocator]
    if Path(caching.AppDirs(appname="numba", appauthor=False).user_cache_dir).is_absolute():  # "~" without a home
        kinds.append(caching.UserWideCacheLocator)
    for kind in kinds:
        if (found := kind.from_function(function, file)) is not None:
            path = os.path.realpath(str(found.get_cache_path()))
            if is_private(Path(path)):
                return path
            if kind is caching.UserProvidedCacheLocator:
                warn_once("others may write to what NUMBA_CACHE_DIR names; compiled code is kept elsewhere")
    try:
        return str(cache_folder() / "numba" / _Locator.get_suitable_cache_subpath(file))
    except SymdualError:
        return _NOWHERE


class _SealedFile(caching.IndexDataCacheFile):
    """Index and data of one function, each with a seal: mark, stamp, and the SHA-256 of name, stamp and content."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: _Stamp) -> None:
        super().__init__(cache_path, filename_base, bytes(source_stamp))
        self._source = source_stamp.file

    def save(self, key: Any, data: Any) -> None:
        """Keep a compiled function, unless its source is gone or has been replaced: it would lie beside another's."""
        with suppress(OSError):
            if hashlib.sha256(self._source.read_bytes()).digest() == self._source_stamp:
                self._keep(key, data)

    def _keep(self, key: Any, data: Any) -> None:
        try:
            super().save(key, data)
        except OSError as failure:
            warn_once(
                f"compiled code of {self._source.parent} cannot be kept ({failure.strerror}) and is compiled again in "
                "every process; set NUMBA_CACHE_DIR to a folder that can be written"
            )

    def _load_index(self) -> dict[Any, str]:
        return self._loaded(self._index_path, self._index) or {}

    def _load_data(self, name: str) -> Any:
        return self._loaded(self._data_path(name), pickle.loads)

    def _index(self, content: bytes) -> dict[Any, str]:
        """What numba's index holds: its version, and behind that the stamp of the source and the names of data."""
        stream = io.BytesIO(content)
        if pickle.load(stream) != self._version:
            return {}
        stamp, overloads = pickle.loads(stream.read())
        if not isinstance(overloads, dict):
            raise ValueError("not an index")
        return overloads if stamp == self._source_stamp else {}

    def _loaded(self, path: str, unpickled: Callable[[bytes], Any]) -> Any:
        """What a file holds; None for none, or one of another source. It is read once, verified, and unpickled then."""
        try:
            whole = own_content(Path(path))
            if whole is None:
                return None
            content, stamp = _unsealed(path, whole)
            return unpickled(content) if stamp in (None, self._source_stamp) else None
        except Exception:  # whatever comes of unpickling what nobody pickled
            self._drop(path)
            return None

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[io.BytesIO]:
        content = io.BytesIO()
        with super()._open_for_write(filepath) as file:
            if hasattr(os, "fchmod"):  # whatever the user lets others do with new files: `own_content` would refuse it
                os.fchmod(file.fileno(), 0o644)
            yield content
            file.write(content.getvalue() + _seal(filepath, self._source_stamp, content.getvalue()))

    def _drop(self, path: str) -> None:
        with suppress(OSError):
            Path(path).unlink()
        warn_once(f"compiled code in {Path(path).parent} was damaged; it is compiled again")


def holds(folder: Path, function: str) -> bool:
    """Whether the cache beside a package holds one of its functions, whole, of the source that lies there, for this
    Python and this numba. What is damaged is dropped, and said."""
    source = source_of(folder, function.split(".")[0])
    cache = source.parent / "__pycache__"
    for index in cache.glob(f"{function}-*.py{sys.version_info.major}{sys.version_info.minor}*.nbi"):
        stamp = _Stamp(hashlib.sha256(source.read_bytes()).digest())
        stamp.file = source
        kept = _SealedFile(str(cache), index.stem, stamp)
        names = set(kept._load_index().values())
        if names and all(kept._load_data(name) is not None for name in names):
            return True
    return False


def _seal(path: str, stamp: bytes, content: bytes) -> bytes:
    return _MARK + stamp + hashlib.sha256(Path(path).name.encode() + stamp + content).digest()


def _unsealed(path: str, whole: bytes) -> tuple[bytes, bytes | None]:
    """Content and stamp of a file, without a stamp where numba wrote it by itself; ValueError for a broken seal."""
    content, seal = whole[: -len(_MARK) - 2 * _SIZE], whole[-len(_MARK) - 2 * _SIZE :]
    if not seal.startswith(_MARK):
        return whole, None
    stamp = seal[len(_MARK) : -_SIZE]
    if seal != _seal(path, stamp, content):
        raise ValueError("a broken seal")
    return content, stamp


class _NoFile:
    """The cache of those who want none."""

    def load(self, key: Any) -> None:
        """Find nothing."""

    def save(self, key: Any, data: Any) -> None:
        """Keep nothing."""

    def flush(self) -> None:
        """Forget nothing."""


_numbas_own = caching.IndexDataCacheFile


def _cache_file(cache_path: str, filename_base: str, source_stamp: Any) -> Any:
    ours = isinstance(source_stamp, _Stamp)
    if ours and not caching_wanted():
        return _NoFile()
    kind = _SealedFile if ours else _numbas_own
    return kind(cache_path=cache_path, filename_base=filename_base, source_stamp=source_stamp)


caching.CacheImpl._locator_classes.insert(0, _Locator)
caching.IndexDataCacheFile = _cache_file
