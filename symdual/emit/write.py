"""Puts a package on the disk: whole or not at all, one writer at a time, nothing touched that has not changed."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from symdual.common.errors import PackageError, SymdualError
from symdual.common.package_folders import (
    locked,
    note_inputs,
    noted_inputs,
    put_back,
    read_manifest,
    set_aside,
    verified,
)
from symdual.emit.package import Package

PATIENCE = 60.0  #: seconds that a generator waits for another one


def is_unchanged(folder: Path, name: str, input_digest: str) -> bool:
    """Whether `folder` holds an intact package made from the same inputs."""
    try:
        verified(folder / name)
    except PackageError:
        return False
    return noted_inputs(folder / name) == input_digest


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the folder for this process, made if need be; a second generator waits for a while."""
    with ExitStack() as stack:
        try:
            stack.callback(_remove_empty, [place for place in (folder, *folder.parents) if not place.exists()])
            folder.mkdir(parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            held = _held(folder, stack)
        except OSError as failure:
            raise SymdualError(f"cannot write to the folder {folder}: {failure.strerror}") from failure
        if not held:
            raise SymdualError(
                f"another symdual has been generating into {folder} for {PATIENCE:g} s; try again when it is done"
            )
        yield


def _held(folder: Path, stack: ExitStack) -> bool:
    """Whether the folder was or became free; programs that start at the same time generate one after the other."""
    last = time.monotonic() + PATIENCE
    while True:
        with ExitStack() as own:
            if own.enter_context(locked(folder, wait=False)):
                stack.enter_context(own.pop_all())
                return True
        if time.monotonic() >= last:
            return False
        time.sleep(0.05)


def _remove_empty(folders: list[Path]) -> None:
    """Leave no folder behind that was made for packages and then not used."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def clear_up(folder: Path, name: str) -> None:
    """Remove what is left beside a package of a writer that died when its work was all but done."""
    target = folder / name
    leftovers = [place for place in (_fresh(target), set_aside(target)) if place.is_dir()]
    if leftovers and target.is_dir():
        with suppress(OSError), locked(folder, wait=False) as held:
            for place in leftovers if held else ():
                shutil.rmtree(place, ignore_errors=True)


def _fresh(target: Path) -> Path:
    """Where a new package is written before it takes its place."""
    return target.with_name(f".{target.name}.new")


def write(package: Package, folder: Path, keep_compiled: bool = True) -> Path:
    """Write the package as `folder/<name>`, replacing an older one in one go.

    The files are written beside it first. Then the old folder steps aside and the new one takes its place; if the
    process dies in between, the next reader or writer puts the old one back. Files in it that were not generated come
    along. With `keep_compiled`, what Python and numba have compiled is kept when only numbers changed. Otherwise it
    goes: Python takes a compiled file for current when its source has the same size and the same second of writing, and
    a package written twice in a second would wake up with old parts.
    """
    target = folder / package.name
    fresh = _fresh(target)
    aside = set_aside(target)
    try:
        put_back(target)
        for leftover in (fresh, aside):  # of a writer that died
            shutil.rmtree(leftover, ignore_errors=True)
        fresh.mkdir()
        for name, content in package.files.items():
            (fresh / name).parent.mkdir(exist_ok=True)
            with (fresh / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if target.exists():
            if not (target / "manifest.json").is_file() and any(target.iterdir()):
                raise SymdualError(
                    f"{target} exists and is not a generated package; move it away or choose another folder"
                )
            old = read_manifest(target)
            own = {*package.files, *(old["files"] if old else ())}
            folders = {place.parent for place in map(Path, own)}
            _copy_strangers(target, own, folders, fresh)
            if keep_compiled and old is not None and old["package_digest"] == package.package_digest:
                _keep_times(target, package.files, fresh)
                for cache in (
                    folder / "__pycache__" for folder in folders if (target / folder / "__pycache__").is_dir()
                ):
                    (target / cache).replace(fresh / cache)
            target.replace(aside)
        fresh.replace(target)
        note_inputs(target, package.input_digest)
    except OSError as failure:
        raise SymdualError(f"cannot write the package {target}: {failure.strerror or failure}") from failure
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(aside, ignore_errors=True)
    return target


def _keep_times(source: Path, files: Mapping[str, bytes], target: Path) -> None:
    """A file that says the same is not a new one: numba before 0.61 asks for the time of a file, not for its bytes."""
    for name, content in files.items():
        old = source / name
        if old.is_file() and old.read_bytes() == content:
            times = old.stat()
            os.utime(target / name, ns=(times.st_atime_ns, times.st_mtime_ns))


def _copy_strangers(source: Path, own: set[str], folders: set[Path], target: Path) -> None:
    """Copy everything that does not belong to the package: the old folder stays whole until it is replaced."""
    for entry in (entry for folder in folders if (source / folder).is_dir() for entry in (source / folder).iterdir()):
        place = entry.relative_to(source)
        if place.as_posix() in own or place in folders or place.name == "__pycache__":
            continue
        (target / place).parent.mkdir(exist_ok=True)
        if entry.is_dir() and not entry.is_symlink():
            shutil.copytree(entry, target / place, symlinks=True)
        else:
            shutil.copy2(entry, target / place, follow_symlinks=False)
