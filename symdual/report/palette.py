"""The only colours: of controllers, of figures, and of pages by day and by night.

The colours of controllers are the paper's (oracle gray, ce red, beb blue, dual green) and more for others, in shades
that people who do not tell red from green can tell apart; line styles and markers differ as well. They stand in the
list of controllers.
"""

from __future__ import annotations

from collections.abc import Mapping

from symdual.controllers import CONTROLLERS

LOOKS = {name: kind.look for name, kind in CONTROLLERS.items()}

INK, SOFT, EDGE, GROUND = "#1c2330", "#6b7280", "#9aa1ab", "#f2f4f6"
#: in figures: what is true or measured, what is believed, something beside it, what was before, what to look at
TRUE, BELIEVED, OTHER, BEFORE, HIGHLIGHT = "#1a1a1a", LOOKS["dual"].colour, LOOKS["beb"].colour, "#b0b0b0", "#e8850c"
#: the parts of a dual cost
PARTS = {
    "certainty_equivalent": LOOKS["ce"].colour,
    "caution": LOOKS["cautious"].colour,
    "probing": LOOKS["beb"].colour,
}

#: of pages: on light ground, on dark ground
PAGE = {
    "ink": ("#1c2330", "#e4e7ec"),
    "soft": ("#5b6472", "#9ba5b4"),
    "paper": ("#fdfdfb", "#15181d"),
    "card": ("#f4f5f2", "#1e2229"),
    "line": ("#dcdfd8", "#343a44"),
    "accent": ("#1f5fa8", "#7fb2ee"),
    "good": ("#1d7a46", "#6fcf97"),
    "bad": ("#b3261e", "#ff8a80"),
    "warn": ("#94640a", "#e3b55c"),
    "constant": ("#a9c5e6", "#34465c"),
    "dense": ("#2b6cb0", "#6ba3dd"),
    "family": ("#2f8f6b", "#57bd94"),
    "diagonal": ("#b4610e", "#e09a4e"),
    "pair": ("#8a4fb0", "#bd8be0"),
    **{name: (look.light, look.dark) for name, look in LOOKS.items()},
}


def page_colours() -> str:
    """The colours of pages as variables: those of the system, unless a page says `data-scheme`."""
    light, dark = ({name: pair[side] for name, pair in PAGE.items()} for side in (0, 1))
    return "".join(
        [
            _rule(":root", "light dark", light),
            "@media (prefers-color-scheme: dark) {\n",
            _rule(':root:not([data-scheme="light"])', "light dark", dark),
            "}\n",
            _rule(':root[data-scheme="dark"]', "dark", dark),
            _rule(':root[data-scheme="light"]', "light", light),
        ]
    )


def _rule(selector: str, scheme: str, colours: Mapping[str, str]) -> str:
    return f"{selector} {{ color-scheme: {scheme}; {' '.join(f'--{n}: {c};' for n, c in colours.items())} }}\n"
