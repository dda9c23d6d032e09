"""The loop over the features of one point: sums, writes, and block functions taken out of it.

Sine, cosine, exponential and logistic of indexed arguments are computed for the whole block at once, in the work array,
by functions that vectorise (`kernels/elementary.py.jinja`); the loop itself then only reads their results. Where
there are few, sine and cosine of an angle come together from `_sincos`, and the rest from the C library, one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import sympy as sp

from symdual.derive.order import in_order
from symdual.derive.pieces import in_pieces
from symdual.derive.program import Point
from symdual.emit.steps import OF_A_LINE, Call, Line, Loop, Step
from symdual.spec.symbols import logistic

INDEX = "_i"


FEW = 4  #: exponentials that the C library computes one by one in less time than a vectorised loop takes
FEW_ANGLES = 6  #: angles whose sine and cosine are found one by one in less time than that


def padded(count: int) -> int:
    """The length of a block in the work array: a multiple of 8, at least 16."""
    return max(16, 8 * -(-count // 8))


class LoweredLoop(NamedTuple):
    """The steps of a loop, the length of work array used so far, and what it costs and needs."""

    steps: list[Step]
    work: int
    operations: int
    sincos_counts: set[int]
    exp_counts: set[int]


class LoopBody:
    """Collects what is done for each feature of a point, then lowers it to steps."""

    def __init__(self, point: Point, indexed: Mapping[sp.Symbol, str], work: int) -> None:
        self._point = point
        self._count = point.family.count
        self._indexed = indexed
        self._work = work
        self._targets: list[tuple[str, str]] = []
        self._bodies: list[sp.Expr] = []
        self._places: dict[sp.Symbol, str] = {}
        self._named: dict[sp.Symbol, sp.Expr] = {}
        self._waves: dict[tuple[sp.Symbol, sp.Symbol], sp.Expr] = {}  # sine and cosine of an angle
        self._steps: list[Step] = []
        self._operations = 0
        self._sincos: set[int] = set()
        self._exp: set[int] = set()

    def accumulate(self, symbol: sp.Symbol, body: sp.Expr) -> None:
        """Add `body` over all features to `symbol`."""
        self._do(symbol.name, "+=", body)

    def write(self, place: str, body: sp.Expr) -> None:
        """Write `body` for each feature to `place`."""
        self._do(place.format(i=INDEX), "=", body)

    def keep(self, body: sp.Expr) -> int:
        """Keep `body` for each feature in the work array and return its offset."""
        offset = self._reserve(self._count)
        self._do(_at("work", offset), "=", body)
        return offset

    def lower(self, text: Callable[[sp.Expr], str]) -> LoweredLoop:
        """Take the block functions out, share common subexpressions, and print."""
        self._take_out_waves(text)
        self._take_out_logistics(text)
        self._take_out_exponentials(text)
        self._operations += sum(1 for _, operator in self._targets if operator == "+=")
        where = ", ".join(a.name for a in self._point.arguments)
        self._loop(f"{self._point.family.name} at ({where})", self._targets, self._bodies, text)
        return LoweredLoop(self._steps, self._work, self._operations, self._sincos, self._exp)

    def _do(self, target: str, operator: str, body: sp.Expr) -> None:
        self._targets.append((target, operator))
        self._bodies.append(body)

    def _reserve(self, length: int) -> int:
        offset = self._work
        self._work += padded(length)
        return offset

    def _loop(
        self,
        comment: str,
        targets: list[tuple[str, str]],
        bodies: list[sp.Expr],
        text: Callable[[sp.Expr], str],
    ) -> None:
        fresh = (sp.Symbol(f"_b{i}", real=True) for i in range(10**6))
        named = self._needed_names(bodies)
        angles = self._needed_angles([*named.values(), *bodies])
        shared, reduced = sp.cse([*angles.values(), *named.values(), *bodies], symbols=fresh, order="canonical")
        expressions = [*(e for _, e in shared), *reduced]
        self._operations += sum(int(sp.count_ops(e)) for e in expressions) + len(angles)
        used = set().union(*(e.free_symbols for e in expressions))
        lines = [Line(s.name, "=", place.format(i=INDEX)) for s, place in self._indexed.items() if s in used]
        lines += [Line(s.name, "=", place) for s, place in self._places.items() if s in used]
        waiting = [((symbol,), e) for symbol, e in shared]
        waiting += zip([*angles, *((symbol,) for symbol in named)], reduced, strict=False)
        pieces = itertools.count()

        def value(expression: sp.Expr) -> str:
            """The text of an expression, behind lines for what would be too long or too deep for one."""
            apart = in_pieces(expression, OF_A_LINE, lambda: sp.Symbol(f"_p{next(pieces)}", real=True))
            lines.extend(Line(symbol.name, "=", text(piece)) for symbol, piece in apart.taken)
            return text(apart.rest)

        for n in in_order([symbols for symbols, _ in waiting], [e.free_symbols for _, e in waiting]):
            symbols, expression = waiting[n]
            found = f"_sincos({value(expression)})" if len(symbols) == 2 else value(expression)
            lines.append(Line(", ".join(s.name for s in symbols), "=", found))
        written = reduced[len(angles) + len(named) :]
        for target, e in zip(targets, written, strict=True):
            found = value(e)
            lines.append(Line(*target, found))
        self._steps.append(Loop(comment, self._count, tuple(lines)))

    def _needed_names(self, bodies: list[sp.Expr]) -> dict[sp.Symbol, sp.Expr]:
        """The values that block functions are combined to, as far as `bodies` need them."""
        needed: set[sp.Symbol] = set()
        stack = list(bodies)
        while stack:
            fresh = (stack.pop().free_symbols & self._named.keys()) - needed
            needed |= fresh
            stack += [self._named[symbol] for symbol in fresh]
        return {symbol: e for symbol, e in self._named.items() if symbol in needed}

    def _needed_angles(self, bodies: list[sp.Expr]) -> dict[tuple[sp.Symbol, ...], sp.Expr]:
        """The angles whose sine or cosine stands in `bodies`."""
        used = set().union(*(body.free_symbols for body in bodies))
        return {pair: angle for pair, angle in self._waves.items() if used.intersection(pair)}

    # ------------------------------------------------------------ block functions

    def _found(self, *kinds: type) -> list[sp.Expr]:
        atoms = set().union(*(body.atoms(*kinds) for body in self._bodies))
        return sorted((e for e in atoms if e.free_symbols & self._indexed.keys()), key=sp.default_sort_key)

    def _fill(self, comment: str, arguments: list[sp.Expr], text: Callable[[sp.Expr], str]) -> tuple[int, int]:
        """Emit the loop that writes the arguments of a block function, one run after another."""
        length = self._count * len(arguments)
        base = self._reserve(length)
        targets = [(_at("work", base + n * self._count), "=") for n in range(len(arguments))]
        self._loop(f"{comment} of {self._point.family.name}", targets, arguments, text)
        self._operations += len(arguments)
        return base, padded(length)

    def _few(self, arguments: list[sp.Expr]) -> bool:
        """Whether a block function is not worth its while."""
        return self._count * len(arguments) <= FEW

    def _read(self, name: str, start: int) -> sp.Symbol:
        symbol = sp.Symbol(name, real=True)
        self._places[symbol] = _at("work", start)
        return symbol

    def _replace(self, rule: Mapping[sp.Expr, sp.Expr]) -> None:
        self._bodies = [body.xreplace(rule) for body in self._bodies]

    def _take_out_waves(self, text: Callable[[sp.Expr], str]) -> None:
        """Sine and cosine of every angle at once."""
        waves = self._found(sp.sin, sp.cos)
        angles = list(dict.fromkeys(_unsigned(e.args[0])[1] for e in waves))
        if not angles:
            return
        pairs = [(sp.Symbol(f"_sin{n}", real=True), sp.Symbol(f"_cos{n}", real=True)) for n in range(len(angles))]
        if self._count * len(angles) <= FEW_ANGLES:
            self._waves = dict(zip(pairs, angles, strict=True))
        else:
            base, length = self._fill("angles", angles, text)
            sine, cosine = self._reserve(length), self._reserve(length)
            self._steps.append(Call(f"_sincos_{length}(work, {base}, {sine}, {cosine})"))
            self._sincos.add(length)
            for n, (up, across) in enumerate(pairs):
                self._places |= {up: _at("work", sine + n * self._count), across: _at("work", cosine + n * self._count)}
        rule = {}
        for e in waves:
            sign, angle = _unsigned(e.args[0])
            up, across = pairs[angles.index(angle)]
            rule[e] = sign * up if isinstance(e, sp.sin) else across
        self._replace(rule)

    def _take_out_logistics(self, text: Callable[[sp.Expr], str]) -> None:
        """s(|a|) = 1/(1 + e) and s(-|a|) = e/(1 + e) with e = exp(-|a|): exact in both tails."""
        discrete_inputs = self._found(logistic)
        levels = list(dict.fromkeys(_unsigned(e.args[0])[1] for e in discrete_inputs))
        if self._few(levels):
            return
        base, length = self._fill("exponents", [-sp.Abs(level) for level in levels], text)
        self._steps.append(Call(f"_exp_{length}(work, {base}, {base})"))
        self._exp.add(length)
        rule = {}
        for e in discrete_inputs:
            sign, level = _unsigned(e.args[0])
            n = levels.index(level)
            decay = self._read(f"_decay{n}", base + n * self._count)
            high, low = sp.Symbol(f"_high{n}", real=True), sp.Symbol(f"_low{n}", real=True)
            rise, fall = sp.Symbol(f"_rise{n}", real=True), sp.Symbol(f"_fall{n}", real=True)
            self._named |= {high: 1 / (1 + decay), low: decay * high}
            self._named[rise if sign > 0 else fall] = sp.Piecewise(
                (high if sign > 0 else low, level > 0), (low if sign > 0 else high, True), evaluate=False
            )
            rule[e] = rise if sign > 0 else fall
        self._replace(rule)

    def _take_out_exponentials(self, text: Callable[[sp.Expr], str]) -> None:
        """The exponential of every exponent at once, in place."""
        growths = self._found(sp.exp)
        exponents = list(dict.fromkeys(e.args[0] for e in growths))
        if self._few(exponents):
            return
        base, length = self._fill("exponents", exponents, text)
        self._steps.append(Call(f"_exp_{length}(work, {base}, {base})"))
        self._exp.add(length)
        self._replace(
            {e: self._read(f"_exp{n}", base + n * self._count) for e in growths for n in [exponents.index(e.args[0])]}
        )


def _at(array: str, offset: int) -> str:
    return f"{array}[{offset} + {INDEX}]" if offset else f"{array}[{INDEX}]"


def _unsigned(argument: sp.Expr) -> tuple[int, sp.Expr]:
    """Write an argument as sign * (argument without a leading minus), so that a and -a share one evaluation."""
    return (-1, -argument) if argument.could_extract_minus_sign() else (1, argument)
