"""Which numbers are fitted: what is named, or all that can be, without what is held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from symdual.common.errors import SymdualError, did_you_mean
from symdual.identification.noise import NOISES, Noises

START = "start"  #: the name of all first states; that of one is start[x]


class Menu(NamedTuple):
    """Everything that has a name: groups of entries, entries fitted by default, and why some cannot be."""

    groups: dict[str, list[str]]
    default: set[str]
    refused: dict[str, str]

    def add(self, group: str, entries: Sequence[str], default: bool = True) -> None:
        """A group of entries that can be fitted."""
        self.groups[group] = list(entries)
        if default:
            self.default.update(entries)

    def add_noise(
        self, labels: Mapping[str, Sequence[str]], noises: Noises, why: Callable[[str, str], str] | None = None
    ) -> None:
        """Variances that are not zero; `why` says of a kind and a name why others cannot be fitted."""
        for kind in NOISES:
            matrix, names = getattr(noises, kind), [f"{kind}[{label}]" for label in labels[kind]]
            self.add(kind, [name for i, name in enumerate(names) if matrix[i, i] > 0])
            for name in (*names, kind):
                if name not in self.groups[kind] and not (name == kind and self.groups[kind]):
                    zero = f"{name} is zero in the model and stays so; give it a value to start from"
                    self.refused[name] = zero if why is None else why(kind, zero)

    def chosen(self, only: Sequence[str] = (), hold: Sequence[str] = (), full: Sequence[str] = ()) -> set[str]:
        """The entries that are fitted: those of `only` and `full`, or all by default, without those of `hold`."""
        for name in full:
            if name not in NOISES:
                raise SymdualError(f'"{name}" is no matrix of noise: only {", ".join(NOISES)} can be full')
        for name in (*only, *full):
            if name in self.refused:
                raise SymdualError(self.refused[name])
        wanted = self._entries(only) if only else set(self.default)
        wanted = (wanted | self._entries(full)) - self._entries(hold)
        if not wanted:
            raise SymdualError("there is nothing to fit: every quantity is known, held, or zero in the model")
        return wanted

    def _entries(self, names: Sequence[str]) -> set[str]:
        known = {entry: [entry] for entries in (*self.groups.values(), self.refused) for entry in entries} | self.groups
        for name in names:
            if name not in known:
                raise SymdualError(f'there is nothing called "{name}" to fit{did_you_mean(name, known)}')
        return {entry for name in names for entry in known[name]}
