"""Block patterns as inline SVG; the colours come from the page's style, so that they follow dark mode and print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from markupsafe import Markup

from symdual.report.html import element, join
from symdual.report.patterns import Group, Kind, Pattern

_CELL = 26
_WIDE = 46
_GAP = 10
_CHARACTER = 6.8


class _Place(NamedTuple):
    start: float
    size: float
    group: Group


def picture(pattern: Pattern, title: str) -> Markup:
    """The pattern with its row and column labels; parts (x, theta, u) are set apart by a gap."""
    left = 14 + _CHARACTER * max(len(_label(group)) for group in pattern.rows)
    top = 14 + 0.75 * _CHARACTER * max(len(_label(group)) for group in pattern.columns)
    columns, rows = _places(pattern.columns, left), _places(pattern.rows, top)
    right = columns[-1].start + columns[-1].size
    slant = 0.75 * _CHARACTER * len(_label(pattern.columns[-1]))
    width, height = right + max(slant, 4) + 6, rows[-1].start + rows[-1].size + 4
    parts = [element("title", title)]
    for row, kinds in zip(rows, pattern.cells, strict=True):
        middle = row.start + row.size / 2 + 4
        parts.append(element("text", _label(row.group), x=_n(left - 8), y=_n(middle), text_anchor="end"))
        parts += [_cell(kind, column, row) for column, kind in zip(columns, kinds, strict=True)]
    for column in columns:
        x, y = column.start + column.size / 2 - 2, top - 7
        parts.append(element("text", _label(column.group), x=_n(x), y=_n(y), transform=f"rotate(-48 {_n(x)} {_n(y)})"))
    svg = element(
        "svg",
        *parts,
        viewBox=f"0 0 {_n(width)} {_n(height)}",
        width=_n(width),
        height=_n(height),
        role="img",
        aria_label=title,
    )
    return element("div", svg, class_="picture", tabindex=0)


def legend(kinds: Iterable[Kind]) -> Markup:
    """What the fillings mean, for those that occur."""
    shown = [kind for kind in Kind if kind in set(kinds)]
    return element("ul", *(element("li", _sample(kind), kind.value) for kind in shown), class_="legend")


def _sample(kind: Kind) -> Markup:
    square = _Place(1, 20, Group("", 1, False, ""))
    return element("svg", _cell(kind, square, square), width=22, height=22, aria_hidden="true")


def _label(group: Group) -> str:
    return f"{group.name}[i]" if group.indexed else group.name


def _places(groups: tuple[Group, ...], start: float) -> list[_Place]:
    places: list[_Place] = []
    for position, group in enumerate(groups):
        if position and groups[position - 1].part != group.part:
            start += _GAP
        size = _WIDE if group.indexed and group.count > 1 else _CELL
        places.append(_Place(start, size, group))
        start += size
    return places


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _cell(kind: Kind, column: _Place, row: _Place) -> Markup:
    x, y, width, height = column.start + 1, row.start + 1, column.size - 2, row.size - 2
    frame = _rect(x, y, width, height, "none", stroke="var(--line)")
    drawing = {
        Kind.ZERO: lambda: Markup(""),
        Kind.CONSTANT: lambda: _rect(x, y, width, height, "var(--constant)"),
        Kind.DENSE: lambda: _rect(x, y, width, height, "var(--dense)"),
        Kind.FAMILY: lambda: _stripes(x, y, width, height),
        Kind.UNIT: lambda: _slash(x, y, width, height, "var(--constant)"),
        Kind.DIAGONAL: lambda: _slash(x, y, width, height, "var(--diagonal)"),
        Kind.PAIR: lambda: _pair(x, y, width, height),
        Kind.BOTH: lambda: _pair(x, y, width, height) + _slash(x, y, width, height, "var(--diagonal)"),
    }
    return join([drawing[kind](), frame])


def _rect(x: float, y: float, width: float, height: float, fill: str, stroke: str | None = None) -> Markup:
    return element("rect", x=_n(x), y=_n(y), width=_n(width), height=_n(height), rx=2, fill=fill, stroke=stroke)


def _stripes(x: float, y: float, width: float, height: float) -> Markup:
    """Bars along the longer side: the entries of a vector."""
    along = max(width, height)
    count = max(4, round(along / 5.5))
    step = along / count
    bars = []
    for i in range(count):
        at = i * step + step * 0.2
        if width >= height:
            bars.append(_rect(x + at, y + 3, step * 0.6, height - 6, "var(--family)"))
        else:
            bars.append(_rect(x + 3, y + at, width - 6, step * 0.6, "var(--family)"))
    return join(bars)


def _slash(x: float, y: float, width: float, height: float, colour: str) -> Markup:
    return element(
        "line",
        x1=_n(x + 3),
        y1=_n(y + 3),
        x2=_n(x + width - 3),
        y2=_n(y + height - 3),
        stroke=colour,
        stroke_width=4,
        stroke_linecap="round",
    )


def _pair(x: float, y: float, width: float, height: float) -> Markup:
    """A column beside a row: an outer product."""
    colour = "var(--pair)"
    return join([_rect(x + 3, y + 3, 4.5, height - 6, colour), _rect(x + 10, y + 3, width - 13, 4.5, colour)])
