"""Lowers what a kernel has to write into straight assignments and one loop per family point.

Input: scalar entries and vectors (one number per feature) with the place each goes to, and a `Calculus` that knows the
definitions and sums they are made of. Output: a `Kernel`, strings only, in the order in which they are executed:

    scalars that need no sum  ->  loop over the features of a point  ->  scalars that need its sums  ->  ...  ->  writes

A vector whose coefficients are known before the loop of its point is written there; otherwise the loop keeps its parts
in the work array and a last loop combines them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sympy as sp

from symdual.derive.branches import product, total
from symdual.derive.calculus import Calculus, Vector, VectorTerm
from symdual.derive.order import in_order
from symdual.derive.pieces import depth, in_pieces
from symdual.derive.program import Point
from symdual.emit.loop import LoopBody
from symdual.emit.printer import print_expression
from symdual.emit.steps import OF_A_LINE, Kernel, Line, Loop, Step

#: Functions that printed lines may call.
HELPERS = ("_sincos", "_logistic", "_matern", "_power_10", "_power_20", "_power_01", "_power_02", "_power_11")


class VectorWrite(NamedTuple):
    """A vector of `length` numbers and where it goes: `place` with `{i}` for the index."""

    place: str
    length: int
    vector: Vector


class KernelBuilder:
    """Collects the entries that a kernel writes and lowers them.

    Args:
        calculus: the differentiated map.
        scalar_places: where each scalar input symbol is read, such as `z_in[0]`.
        indexed_places: where each weight and data array is read, with `{i}` for the index.
        work: how much of the work array is somebody else's.
    """

    def __init__(
        self,
        calculus: Calculus,
        scalar_places: Mapping[sp.Symbol, str],
        indexed_places: Mapping[sp.Symbol, str],
        work: int = 0,
    ) -> None:
        self._calculus = calculus
        self._work = work
        self._scalar_places = scalar_places
        self._indexed_places = indexed_places
        self._scalars: list[tuple[str, sp.Expr]] = []
        self._vectors: list[VectorWrite] = []

    def write(self, place: str, expression: sp.Expr, always: bool = False) -> None:
        """Write a scalar entry, unless it is identically zero and need not `always` be written."""
        if always or expression != 0:
            self._scalars.append((place, expression))

    def write_vector(self, place: str, count: int, vector: Vector) -> None:
        """Write one number per feature, unless all are identically zero."""
        if vector:
            self._vectors.append(VectorWrite(place, count, vector))

    def build(self) -> Kernel:
        """Lower everything that was asked for."""
        return _Lowering(
            self._calculus, self._scalar_places, self._indexed_places, self._scalars, self._vectors, self._work
        ).kernel()


class _Lowering:
    """One pass from writes to steps."""

    def __init__(
        self,
        calculus: Calculus,
        scalar_places: Mapping[sp.Symbol, str],
        indexed_places: Mapping[sp.Symbol, str],
        scalars: list[tuple[str, sp.Expr]],
        vectors: list[VectorWrite],
        work: int,
    ) -> None:
        self._sums = calculus.sums
        self._scalar_places = scalar_places
        self._indexed = indexed_places
        self._definitions = dict(calculus.definitions)
        self._deep: set[sp.Symbol] = set()  # definitions that keep their names, or their users would be deep
        self._writes, self._vectors = scalars, vectors
        self._inline_single_uses()
        self._points = self._needed_points(calculus.program.points)
        self._available: set[sp.Symbol] = set()
        self._used: set[sp.Symbol] = set()
        self._names: dict[sp.Symbol, sp.Symbol] = {}
        self._steps: list[Step] = []
        self._deferred: list[tuple[VectorWrite, list[tuple[sp.Expr, int]]]] = []
        self._work = work
        self._temporaries = 0
        self._pieces = itertools.count()
        self._scalar_operations = 0
        self._feature_operations: dict[str, int] = {}
        self._sincos: set[int] = set()
        self._exp: set[int] = set()

    def kernel(self) -> Kernel:
        pending = self._pending_definitions()
        points = list(self._points)
        while True:
            pending = self._assign_ready(pending)
            ready = next((p for p in points if self._is_ready(p)), None)
            if ready is None:
                break
            points.remove(ready)
            self._loop(ready)
        assert not pending and not points, "a definition depends on itself"
        self._finish()
        unpack = [
            Line(symbol.name, "=", place) for symbol, place in self._scalar_places.items() if symbol in self._used
        ]
        return Kernel(
            tuple(unpack),
            tuple(self._steps),
            self._work,
            self._operations(),
            tuple(sorted(self._sincos)),
            tuple(sorted(self._exp)),
            _called(self._steps),
        )

    # ------------------------------------------------------------ what is needed

    def _inline_single_uses(self) -> None:
        """Put a definition that is used once into its place; a name for it would only lengthen the code."""
        changed = True
        while changed:
            changed = False
            uses = self._count_uses()
            self._definitions = {s: e for s, e in self._definitions.items() if uses.get(s)}
            kept_by_loops = self._loop_symbols()
            # moving an expression to its only user never adds a use of another symbol: the counts stay valid
            single = {
                symbol: e
                for symbol, e in self._definitions.items()
                if symbol not in kept_by_loops and symbol not in self._deep and (uses[symbol] == 1 or e.is_Atom)
            }
            if single:
                self._substitute(single)
                changed = True

    def _count_uses(self) -> dict[sp.Symbol, int]:
        """In how many places each symbol stands, two in one expression being two: put into both, it would double."""
        uses: dict[sp.Symbol, int] = {}
        for expression in self._all_expressions():
            for part in sp.preorder_traversal(expression):
                if part.is_Symbol:
                    uses[part] = uses.get(part, 0) + 1
        return uses

    def _all_expressions(self) -> Iterable[sp.Expr]:
        yield from self._definitions.values()
        yield from (e for _, e in self._writes)
        for write in self._vectors:
            for term in write.vector:
                yield term.coefficient
                yield term.body
        needed = self._needed_sums()
        yield from (self._sums[s].body for s in needed)

    def _needed_sums(self) -> list[sp.Symbol]:
        """The sums that the writes use, directly or through definitions and other sums."""
        found: dict[sp.Symbol, None] = {}
        seen: set[sp.Symbol] = set()
        stack = [e for _, e in self._writes]
        stack += [e for write in self._vectors for term in write.vector for e in (term.coefficient, term.body)]
        while stack:
            for symbol in sorted(stack.pop().free_symbols - seen, key=lambda s: str(s.name)):
                seen.add(symbol)
                if symbol in self._sums:
                    found[symbol] = None
                    stack.append(self._sums[symbol].body)
                elif symbol in self._definitions:
                    stack.append(self._definitions[symbol])
        return sorted(found, key=lambda s: str(s.name))

    def _loop_symbols(self) -> set[sp.Symbol]:
        bodies = [self._sums[s].body for s in self._needed_sums()]
        bodies += [term.body for write in self._vectors for term in write.vector]
        return set().union(*(body.free_symbols for body in bodies))

    def _substitute(self, single: Mapping[sp.Symbol, sp.Expr]) -> None:
        """Put all of these definitions into their places, those inside others first; what would be deep stays."""
        symbols = list(single)
        rule: dict[sp.Symbol, sp.Expr] = {}

        def put(e: sp.Expr) -> sp.Expr:
            own = {s: rule[s] for s in e.free_symbols & rule.keys()}
            return e.xreplace(own) if own else e

        for n in in_order([(s,) for s in symbols], [single[s].free_symbols for s in symbols]):
            e = put(single[symbols[n]])
            if depth(e) < OF_A_LINE.depth:
                rule[symbols[n]] = e
            else:
                self._deep.add(symbols[n])
        self._definitions = {s: put(e) for s, e in self._definitions.items() if s not in rule}
        self._writes = [(place, put(e)) for place, e in self._writes]
        self._vectors = [
            VectorWrite(w.place, w.length, tuple(VectorTerm(put(t.coefficient), t.point, t.body) for t in w.vector))
            for w in self._vectors
        ]

    def _needed_points(self, points: tuple[Point, ...]) -> list[Point]:
        used = {id(self._sums[s].point) for s in self._needed_sums()}
        used |= {id(term.point) for write in self._vectors for term in write.vector}
        return [point for point in points if id(point) in used]

    def _pending_definitions(self) -> dict[sp.Symbol, sp.Expr]:
        needed: set[sp.Symbol] = set()
        stack = list(self._loop_symbols()) + [s for _, e in self._writes for s in e.free_symbols]
        stack += [s for w in self._vectors for t in w.vector for s in t.coefficient.free_symbols]
        while stack:
            symbol = stack.pop()
            if symbol in self._definitions and symbol not in needed:
                needed.add(symbol)
                stack += self._definitions[symbol].free_symbols
            elif symbol in self._sums:
                stack += [s for s in self._sums[symbol].body.free_symbols if s not in needed]
        return {s: e for s, e in self._definitions.items() if s in needed}

    # ------------------------------------------------------------ scalars

    def _known(self, expression: sp.Expr) -> bool:
        return all(
            s in self._available or s in self._scalar_places or s in self._indexed for s in expression.free_symbols
        )

    def _assign_ready(self, pending: dict[sp.Symbol, sp.Expr]) -> dict[sp.Symbol, sp.Expr]:
        batch: dict[sp.Symbol, sp.Expr] = {}
        while ready := {s: e for s, e in pending.items() if self._known(e)}:
            batch.update(ready)
            self._available.update(ready)
            pending = {s: e for s, e in pending.items() if s not in ready}
        self._assign(batch, [])
        return pending

    def _assign(self, batch: Mapping[sp.Symbol, sp.Expr], writes: list[tuple[str, sp.Expr]]) -> None:
        """Emit definitions and writes with their common subexpressions shared, in an order that works."""
        expressions = [*batch.values(), *(e for _, e in writes)]
        fresh = (sp.Symbol(f"_q{self._temporaries}_{i}", real=True) for i in range(10**6))
        shared, reduced = sp.cse(expressions, symbols=fresh, order="canonical")
        self._scalar_operations += sum(int(sp.count_ops(e)) for e in (*(e for _, e in shared), *reduced))
        waiting = [*shared, *zip(batch, reduced, strict=False)]
        for n in in_order([(symbol,) for symbol, _ in waiting], [e.free_symbols for _, e in waiting]):
            symbol, expression = waiting[n]
            if expression.is_Symbol:  # it has a name already
                self._used.add(expression)
                self._names[symbol] = self._names.get(expression, expression)
            else:
                text = self._value(expression)
                self._steps.append(Line(self._temporary(symbol), "=", text))
        for (place, _), expression in zip(writes, reduced[len(batch) :], strict=True):
            self._steps.append(Line(place, "=", self._value(expression)))

    def _temporary(self, symbol: sp.Symbol) -> str:
        name = sp.Symbol(f"_t{self._temporaries}", real=True)
        self._temporaries += 1
        self._names[symbol] = name
        return str(name)

    def _value(self, expression: sp.Expr) -> str:
        """The text of an expression; what would be too long or too deep for one line gets lines of its own before."""
        pieces = in_pieces(expression, OF_A_LINE, lambda: sp.Symbol(f"_p{next(self._pieces)}", real=True))
        for symbol, piece in pieces.taken:
            text = self._text(piece)
            self._steps.append(Line(self._temporary(symbol), "=", text))
        return self._text(pieces.rest)

    def _text(self, expression: sp.Expr) -> str:
        self._used |= expression.free_symbols
        return print_expression(expression.xreplace(self._names))

    # ------------------------------------------------------------ loops

    def _is_ready(self, point: Point) -> bool:
        bodies = [self._sums[s].body for s in self._needed_sums() if self._sums[s].point is point]
        bodies += [t.body for w in self._vectors for t in w.vector if t.point is point]
        return all(self._known(body) for body in bodies)

    def _loop(self, point: Point) -> None:
        """Emit the loop of one point: its sums, the vectors that can be written, the parts that must be kept."""
        body = LoopBody(point, self._indexed, self._work)
        for symbol in self._needed_sums():
            if self._sums[symbol].point is point:
                self._steps.append(Line(symbol.name, "=", "0.0"))
                body.accumulate(symbol, self._sums[symbol].body)
                self._available.add(symbol)
        kept: dict[sp.Expr, int] = {}
        for write in self._vectors:
            here = [t for t in write.vector if t.point is point]
            if len(here) == len(write.vector) and all(self._known_before(t.coefficient, point) for t in here):
                body.write(write.place, total(product(t.coefficient, t.body) for t in here))
            else:
                for term in here:
                    if term.body not in kept:
                        kept[term.body] = body.keep(term.body)
                    self._defer(write, term.coefficient, kept[term.body])
        lowered = body.lower(self._text)
        self._steps += lowered.steps
        self._work = lowered.work
        self._sincos |= lowered.sincos_counts
        self._exp |= lowered.exp_counts
        self._count_features(point, lowered.operations)

    def _known_before(self, coefficient: sp.Expr, point: Point) -> bool:
        own = {s for s, total in self._sums.items() if total.point is point}
        return self._known(coefficient) and not coefficient.free_symbols & own

    def _defer(self, write: VectorWrite, coefficient: sp.Expr, offset: int) -> None:
        for known, parts in self._deferred:
            if known is write:
                parts.append((coefficient, offset))
                return
        self._deferred.append((write, [(coefficient, offset)]))

    def _count_features(self, point: Point, operations: int) -> None:
        name = point.family.name
        self._feature_operations[name] = self._feature_operations.get(name, 0) + operations

    # ------------------------------------------------------------ the end

    def _finish(self) -> None:
        coefficients = {
            sp.Symbol(f"_w{n}_{m}", real=True): coefficient
            for n, (_, parts) in enumerate(self._deferred)
            for m, (coefficient, _) in enumerate(parts)
        }
        self._assign(coefficients, self._writes)
        for count in sorted({write.length for write, _ in self._deferred}):
            lines = []
            for n, (write, parts) in enumerate(self._deferred):
                if write.length == count:
                    names = [str(self._names[sp.Symbol(f"_w{n}_{m}", real=True)]) for m in range(len(parts))]
                    value = " + ".join(
                        _times(name, f"work[{offset} + _i]", guarded=coefficient.has(sp.Piecewise))
                        for name, (coefficient, offset) in zip(names, parts, strict=True)
                    )
                    lines.append(Line(write.place.format(i="_i"), "=", value))
                    self._feature_operations["combination"] = (
                        self._feature_operations.get("combination", 0) + 2 * len(parts) - 1
                    )
            self._steps.append(Loop("combine what the loops above have kept", count, tuple(lines)))

    def _operations(self) -> str:
        parts = [str(self._scalar_operations)]
        parts += [f"{n} per feature of {name}" for name, n in self._feature_operations.items() if name != "combination"]
        if "combination" in self._feature_operations:
            parts.append(f"{self._feature_operations['combination']} per feature to combine")
        return " + ".join(parts)


def _called(steps: list[Step]) -> frozenset[str]:
    """The helpers that some steps call."""
    lines = [line for step in steps for line in (step.lines if isinstance(step, Loop) else [step])]
    text = "\n".join(line.value for line in lines if isinstance(line, Line))
    return frozenset(name for name in HELPERS if f"{name}(" in text)


def _times(coefficient: str, part: str, guarded: bool) -> str:
    """A product; a coefficient that is zero outside its case takes the part away, whatever that is there."""
    return f"(0.0 if {coefficient} == 0.0 else {coefficient}*{part})" if guarded else f"{coefficient}*{part}"
