"""The parts of a package beyond its base, which are generated when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from symdual.common.errors import PackageError, SymdualError, did_you_mean

#: what each part is for; the base has the other controllers, the filter and episodes
PARTS = {
    "planned": "the controller `planned`",
    "thompson": "the controller `thompson`",
    "rivals": "the controllers `rollout`, `scenario`, `information` and `dither`",
    "likelihood": "fits to recordings, and what an experiment can tell",
}

#: what a part is made of besides itself: rivals simulate as `planned` does
_NEEDS = {"rivals": ("planned",)}


def with_needed(parts: Iterable[str]) -> frozenset[str]:
    """Parts with those that they need."""
    given = frozenset(parts)
    return given.union(*(_NEEDS.get(part, ()) for part in given))


def checked_parts(names: str | Iterable[str]) -> frozenset[str]:
    """Names of parts with those that they need, or a sentence that says which of them is none."""
    given = frozenset([names] if isinstance(names, str) else names)
    for name in sorted(given - set(PARTS)):
        raise SymdualError(f'there is no part "{name}"{did_you_mean(name, PARTS)}; known: {", ".join(PARTS)}')
    return with_needed(given)


def require_parts(package: str, place: object, has: Collection[str], needed: Iterable[str]) -> None:
    """Raise where a package lacks a part, with the command that adds it."""
    missing = sorted(set(needed) - set(has))
    if missing:
        parts = " and ".join(missing)
        options = " ".join(f"--with {part}" for part in missing)
        raise PackageError(
            f"the package {package} in {place} was generated without the part {parts}: `symdual generate {options}` on "
            "its model file adds it"
        )
