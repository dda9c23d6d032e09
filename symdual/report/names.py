"""How the names of a model are set: `v_sin[i]` as v with the subscript "sin, i", `theta1` as a theta with a 1 below."""

from __future__ import annotations

import re
from collections.abc import Iterable

from markupsafe import Markup

from symdual.report.html import element, join

_GREEK = dict(
    zip(
        "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda lamda lam mu nu xi pi rho sigma tau upsilon "
        "phi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split(),
        "αβγδεζηθικλλλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ",
        strict=True,
    )
)
_LETTERS = "ijlmqr"


class Names:
    """The typeset forms of a model's names; two names never look the same.

    `families` are the names of feature families: what follows them in the name of an array becomes a subscript. Other
    words of several letters stay as the user wrote them.
    """

    def __init__(self, names: Iterable[str] = (), families: Iterable[str] = ()) -> None:
        known = sorted(set(names))
        self._known = frozenset(known)
        self._families = frozenset(families)
        self.letters = tuple(x for x in _LETTERS if x not in known) + tuple(f"{x}\N{PRIME}" for x in _LETTERS)
        forms = [self._parts(name) for name in known]
        self._verbatim = {n for n, form in zip(known, forms, strict=True) if forms.count(form) > 1}

    def typeset(self, name: str, *indices: str, power: Markup | None = None) -> Markup:
        """The MathML of a name, with further indices after its own subscripts, perhaps raised to a power."""
        costate, _, state = name.partition("lam_")
        if not costate and state in self._known and name not in self._known:
            below = element("mrow", self.typeset(state))
            letter = identifier(_GREEK["lam"])
            return element("msub", letter, below) if power is None else element("msubsup", letter, below, power)
        base, subscripts = self._parts(name)
        if name in self._verbatim:
            base, subscripts = name, ()
        letter = identifier(base)
        lower = [_subscript(part) for part in subscripts] + [identifier(index) for index in indices]
        if not lower:
            return letter if power is None else element("msup", letter, power)
        below = element("mrow", join(lower, _COMMA))
        return element("msub", letter, below) if power is None else element("msubsup", letter, below, power)

    def _parts(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Base and subscripts of a name."""
        for stem in sorted({*self._families, *_GREEK, name[:1]}, key=len, reverse=True):
            if stem and (match := re.fullmatch(rf"{re.escape(stem)}(\d*)((?:_\w+)?)", name)):
                digits, rest = match.groups()
                return _GREEK.get(stem, stem), tuple(part for part in (digits, *rest.split("_")) if part)
        if match := re.fullmatch(r"([A-Za-z]+)(\d+)", name):
            return match[1], (match[2],)
        return name, ()


def identifier(text: str) -> Markup:
    """An identifier: one letter is set in italics, several upright."""
    return element("mi", text)


def _subscript(text: str) -> Markup:
    return element("mn", text) if text.isdigit() else element("mi", _GREEK.get(text, text), mathvariant="normal")


_COMMA = element("mo", ",", rspace="0.15em", lspace="0")
