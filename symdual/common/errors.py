"""The errors that symdual shows to people: one sentence, no traceback."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable


class SymdualError(Exception):
    """Bad input; its text is one sentence that names the symbol, argument or file to mend.

    >>> try:
    ...     symdual.controller(problem, "duel")
    ... except symdual.SymdualError as failure:
    ...     print(str(failure).split(";")[0])
    there is no controller "duel"
    """


class ModelError(SymdualError):
    """A model or scenario that cannot be what the user meant."""


class PackageError(SymdualError):
    """A generated package that is missing, damaged, or made by another version."""


class SymdualWarning(UserWarning):
    """Something that a user should know, in one sentence; commands print it as such.

    >>> issubclass(symdual.SymdualWarning, UserWarning)
    True
    """


class DoubtWarning(SymdualWarning):
    """What speaks against a decision that `act` has made, such as a measurement that cannot be; each kind is told once.

    >>> issubclass(symdual.DoubtWarning, symdual.SymdualWarning)
    True
    """


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "..."?` for the closest known name, or nothing."""
    spelled = {one.casefold(): one for one in known}
    close = difflib.get_close_matches(name.casefold(), list(spelled), n=1, cutoff=0.6)
    return f'; did you mean "{spelled[close[0]]}"?' if close else ""


#: the sentences of `warn_once` so far
SAID: set[str] = set()


def warn_once(sentence: str) -> None:
    """Warn of something that is true of the whole process; Python forgets its own count whenever numba compiles."""
    if sentence not in SAID:
        SAID.add(sentence)
        warnings.warn(sentence, SymdualWarning, stacklevel=3)
