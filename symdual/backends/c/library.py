"""Translated functions as functions of Python, through ctypes.

They take the arrays, records and named tuples that the compiled functions of the package take. In single precision, and
where rows in C are longer than those that are given, they work on copies, which are written back.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symdual.backends.c.kept import loaded
from symdual.backends.c.kinds import BOOL, REAL, VOID, Array, Group, Kind, Pointer, Record, Scalar, Several, entries
from symdual.backends.c.translator import Translator
from symdual.backends.c.unit import Unit
from symdual.common.errors import SymdualError
from symdual.runtime.backend import BackendFailure
from symdual.runtime.forking import Lock

_REMEMBERED = 16  # named tuples whose structs are kept


class Library:
    """A compiled translation."""

    def __init__(self, work: Translator, content: bytes | Callable[[], bytes]) -> None:
        """`content` may be what waits for the compiler; then it is waited for when a function is first called."""
        self._work, self._content = work, content
        self._loaded: ctypes.CDLL | None = None
        self._loading = Lock()
        self._single = work.numbers.single
        self._real: Any = ctypes.c_float if self._single else ctypes.c_double
        self._structs: dict[Kind, type[ctypes.Structure]] = {}
        self._kept: dict[tuple[int, Group], tuple[Any, Any]] = {}
        self._keeping = Lock()
        self._threads = threading.local()
        self.types = {name: self._record_type(name) for name in work.records}

    @property
    def _code(self) -> ctypes.CDLL:
        """The library in memory, loaded by whoever comes first."""
        if self._loaded is None:
            with self._loading:
                if self._loaded is None:
                    try:
                        self._loaded = loaded(self._content() if callable(self._content) else self._content)
                    except SymdualError as failure:
                        raise BackendFailure(str(failure)) from failure
        return self._loaded

    def function(self, unit: Unit) -> Callable[..., Any]:
        """A function of the library for callers in Python."""
        native: Any = None
        converters = [self._converter(kind) for kind in unit.kinds]
        names = unit.function.arguments

        def call(*arguments: Any) -> Any:
            nonlocal native
            if native is None:
                found = getattr(self._code, unit.name)
                found.restype = self._c_type(unit.result)
                native = found  # when it is whole: other threads may be here
            if len(arguments) != len(names):
                raise TypeError(f"{unit.function.name} takes {len(names)} arguments: {', '.join(names)}")
            handed: list[Any] = []
            after: list[Callable[[], None]] = []
            for convert, argument in zip(converters, arguments, strict=True):
                convert(argument, handed, after)
            if unit.needs_memory:
                handed.append(self._memory())
            result = native(*handed)
            for step in after:
                step()
            return self._python(unit.result, result)

        call.__name__, call.__doc__ = unit.function.name, unit.function.title
        return call

    def require(self) -> None:
        """Wait until it is loaded, or raise what went wrong."""
        _ = self._code

    def address(self, name: str) -> int:
        """The address of a function, for function pointers."""
        return int(ctypes.cast(getattr(self._code, name), ctypes.c_void_p).value or 0)

    # ------------------------------------------------------------ types

    def _record_type(self, name: str) -> np.dtype[Any]:
        """The layout of a record in C."""
        kind = "f4" if self._single else "f8"
        fields = self._work.records[name].items()
        return np.dtype([(f, kind, k.shape if isinstance(k, Array) else ()) for f, k in fields], align=True)

    def _c_type(self, kind: Kind) -> Any:
        if kind == VOID:
            return None
        if isinstance(kind, Scalar):
            return self._real if kind == REAL else ctypes.c_int
        if isinstance(kind, Several | Group):
            return self._struct(kind)
        return ctypes.c_void_p

    def _struct(self, kind: Several | Group) -> type[ctypes.Structure]:
        if kind not in self._structs:
            fields: list[tuple[str, Any]] = []
            if isinstance(kind, Several):
                fields = [(f"item{n}", self._c_type(item)) for n, item in enumerate(kind.items)]
            else:
                for name, own in kind.fields:
                    if isinstance(own, Array):
                        fields += [] if own.empty else [(name, ctypes.c_void_p)]
                        fields += [(f"{name}_{axis}", ctypes.c_int) for axis in own.run_time]
                    else:
                        fields.append((name, ctypes.c_void_p if isinstance(own, Group) else self._c_type(own)))
            self._structs[kind] = type("Struct", (ctypes.Structure,), {"_fields_": fields})
        return self._structs[kind]

    def _python(self, kind: Kind, result: Any) -> Any:
        if isinstance(kind, Several):
            return tuple(self._python(item, getattr(result, f"item{n}")) for n, item in enumerate(kind.items))
        return bool(result) if kind == BOOL else result

    def _memory(self) -> ctypes.c_void_p:
        """The memory of this thread."""
        if not hasattr(self._threads, "memory"):
            count = sum(entries(kind) + 1 for kind in self._work.memory.values())
            self._threads.memory = np.zeros(count + 1)
        return ctypes.c_void_p(self._threads.memory.ctypes.data)

    # ------------------------------------------------------------ arguments

    def _converter(self, kind: Kind) -> Callable[[Any, list[Any], list[Callable[[], None]]], None]:
        if isinstance(kind, Array):
            return lambda given, handed, after: self._array(kind, given, handed, after)
        if isinstance(kind, Group):
            return lambda given, handed, after: self._group(kind, given, handed, after)
        if isinstance(kind, Pointer):
            return lambda given, handed, after: handed.append(ctypes.c_void_p(address_of(given)))
        if kind == REAL:
            return lambda given, handed, after: handed.append(self._real(float(given)))
        return lambda given, handed, after: handed.append(ctypes.c_int(int(given)))

    def _array(self, kind: Array, given: Any, handed: list[Any], after: list[Callable[[], None]]) -> None:
        if kind.empty:
            return
        array = self._fitted(kind, given, after)
        handed.append(ctypes.c_void_p(array.ctypes.data))
        handed += [array.shape[axis] for axis in kind.run_time]

    def _fitted(self, kind: Array, given: Any, after: list[Callable[[], None]]) -> NDArray[Any]:
        """The array itself, or a copy in the shape and the precision of C that is written back afterwards."""
        element = self.types[kind.element.name] if isinstance(kind.element, Record) else None
        wanted = np.dtype(self._real if element is None else element)
        array = np.asarray(given)
        if array.ndim != len(kind.shape):
            raise SymdualError(f"an array of {len(kind.shape)} dimensions is needed, not {array.ndim}")
        shape = tuple(
            length if needed in (None, -1) else needed for length, needed in zip(array.shape, kind.shape, strict=True)
        )
        if any(own > needed for own, needed in zip(array.shape, shape, strict=True)):
            raise SymdualError(f"an array of the shape {shape} is needed, not {array.shape}")
        alike = array.dtype.itemsize == wanted.itemsize and array.shape == shape
        if alike and array.flags.c_contiguous and not self._single:
            return array
        copy = np.zeros(shape, wanted)
        part = tuple(slice(0, length) for length in array.shape)
        _copied(array, copy[part])
        if array.flags.writeable:
            after.append(lambda: _copied(copy[part], array))
        return copy

    def _group(self, kind: Group, given: Any, handed: list[Any], after: list[Callable[[], None]]) -> None:
        key = (id(given), kind)
        kept = self._kept.get(key)
        if kept is None or self._single:
            fresh: list[Callable[[], None]] = []
            kept = given, self._filled(kind, given, fresh)  # the first keeps it alive, and its id its own
            after += fresh
            if not fresh:
                self._keep(key, kept)
        handed.append(ctypes.byref(kept[1]))

    def _keep(self, key: tuple[int, Group], kept: tuple[Any, Any]) -> None:
        """Remember a struct in the place of the oldest one.

        Threads of a group of threads come here at the same time.
        """
        with self._keeping:
            if len(self._kept) >= _REMEMBERED:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = kept

    def _filled(self, kind: Group, given: Any, after: list[Callable[[], None]]) -> Any:
        struct = self._struct(kind)()
        held: list[Any] = []
        for name, own in kind.fields:
            value = getattr(given, name)
            if isinstance(own, Array):
                if own.empty:
                    continue
                array = self._fitted(own, value, after)
                held.append(array)
                setattr(struct, name, array.ctypes.data)
                for axis in own.run_time:
                    setattr(struct, f"{name}_{axis}", array.shape[axis])
            elif isinstance(own, Group):
                inner = self._filled(own, value, after)
                held.append(inner)
                setattr(struct, name, ctypes.addressof(inner))
            elif isinstance(own, Pointer):
                setattr(struct, name, address_of(value))
            else:
                setattr(struct, name, float(value) if own == REAL else int(value))
        struct.held = held
        return struct


def address_of(given: Any) -> int:
    """The address behind a function pointer."""
    return int(getattr(given, "address", given))


def _copied(source: NDArray[Any], target: NDArray[Any]) -> None:
    """Copy numbers, or the fields of records one by one, between two precisions."""
    if source.dtype.names:
        for name in source.dtype.names:
            target[name] = source[name]
    else:
        target[...] = source
