"""Lines and blocks of C, and where in them variables are declared: as late as they can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

INDENT = "    "


@dataclass
class Line:
    """A statement. One with a `target` assigns to a variable, and may declare it."""

    text: str
    uses: frozenset[str] = frozenset()
    target: str | None = None
    changes: bool = False  # it needs the value from before
    declares: bool = False
    unused: bool = False  # the variable that it would declare is not mentioned again


@dataclass
class Block:
    """Statements in braces behind a head; a loop has a counter of its own."""

    head: str
    uses: frozenset[str] = frozenset()
    counter: str | None = None
    body: list[Line | Block] = field(default_factory=list)

    @property
    def mentions(self) -> frozenset[str]:
        """All variables in the block, but for its counter."""
        inner = frozenset[str]().union(*(_mentions(item) for item in self.body))
        return self.uses | (inner - {self.counter} if self.counter else inner)


def _mentions(item: Line | Block) -> frozenset[str]:
    if isinstance(item, Block):
        return item.mentions
    return item.uses | {item.target} if item.target else item.uses


def declare(body: list[Line | Block], variables: list[str]) -> list[str]:
    """Mark the assignments that declare their variables; returns those that must be declared before all others."""
    return [name for name in variables if not _declared(body, name)]


def _declared(body: list[Line | Block], name: str) -> bool:
    places = [item for item in body if name in _mentions(item)]
    if not places:
        return True
    first = places[0]
    if isinstance(first, Line):
        first.declares = _sets(first, name)
        first.unused = first.declares and len(places) == 1
        return first.declares
    if not all(isinstance(place, Block) and name not in place.uses for place in places):
        return False
    # every block has a variable of its own, which it sets before it reads it
    marked = [_trial(place.body, name) for place in places if isinstance(place, Block)]
    if not all(marked):
        return False
    for place in places:
        assert isinstance(place, Block)
        _declared(place.body, name)
    return True


def _trial(body: list[Line | Block], name: str) -> bool:
    """Whether a block can declare a variable by itself."""
    places = [item for item in body if name in _mentions(item)]
    if not places:
        return True
    first = places[0]
    if isinstance(first, Line):
        return _sets(first, name)
    return all(isinstance(p, Block) and name not in p.uses and _trial(p.body, name) for p in places)


def _sets(line: Line, name: str) -> bool:
    return line.target == name and name not in line.uses and not line.changes


def printed(body: list[Line | Block], declaration: Callable[[str], str], depth: int = 1) -> Iterator[str]:
    """The lines of a body; a declaration is what stands before ` = ` where a variable is declared."""
    for number, item in enumerate(body):
        before = INDENT * depth
        if isinstance(item, Line):
            if item.unused and item.target is not None:
                if "(" in item.text:
                    yield f"{before}(void){item.text.removeprefix(f'{item.target} = ')}"
            elif item.declares and item.target is not None:
                yield f"{before}{declaration(item.target)}{item.text.removeprefix(item.target)}"
            else:
                yield before + item.text
            continue
        follows = number + 1 < len(body) and _is_else(body[number + 1])
        yield f"{before}{'} ' if _is_else(item) else ''}{item.head} {{"
        yield from printed(item.body, declaration, depth + 1)
        if not follows:
            yield f"{before}}}"


def lines_of(body: list[Line | Block]) -> Iterator[Line | Block]:
    """All lines and blocks of a body, inner ones too."""
    for item in body:
        yield item
        if isinstance(item, Block):
            yield from lines_of(item.body)


def _is_else(item: Line | Block) -> bool:
    return isinstance(item, Block) and item.head.startswith("else")
