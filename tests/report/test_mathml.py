"""The typeset formulas are read back as a person would read them, and must have the values of the derivation."""

from __future__ import annotations

import math
import operator
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import sympy as sp
from markupsafe import Markup

from symdual import Model, features, logistic, unknown
from symdual.derive.derivation import Derivation, derive
from symdual.derive.display import INDEX, Equation, equations
from symdual.report.html import element
from symdual.report.mathml import Typesetter, number
from symdual.report.names import Names
from symdual.report.page import model_names
from symdual.report.typeset import EquationSetter, readable
from symdual.spec.loading import load_model_file
from symdual.spec.symbols import Family, monomial

ROOT = Path(__file__).parents[2]
Value = Callable[[dict[str, int]], float]

# --------------------------------------------------------------------- reading MathML back


def visible(node: ET.Element) -> Iterator[ET.Element]:
    """What is seen beside each other: grouping that nobody sees is dissolved, lines are joined; cases stay a table."""
    if node.tag in ("math", "mrow", "mtr", "mtd", "mtable"):
        before = None
        for child in node:
            if child.tag == "mtable" and before is not None and before.text == "{":
                yield child
            else:
                yield from visible(child)
            before = child
    elif node.tag != "mspace":
        yield node


class Reader:
    """Reads a formula by the usual rules: products bind before sums, a sum sign reaches to the end of its term."""

    FUNCTIONS: ClassVar[dict[str, Callable[..., float]]] = {
        "sin": math.sin,
        "cos": math.cos,
        "tanh": math.tanh,
        "exp": math.exp,
        "log": math.log,
        "sgn": lambda a: math.copysign(1.0, a),
        "Heaviside": lambda a: float(a > 0),
        "max": max,
        "min": min,
        "arctan": math.atan,
        "\N{GREEK SMALL LETTER SIGMA}": lambda a: 1 / (1 + math.exp(-a)),
    }

    RELATIONS: ClassVar[dict[str, Callable[[float, float], bool]]] = {
        ">": operator.gt,
        "<": operator.lt,
        "≥": operator.ge,
        "≤": operator.le,
        "=": operator.eq,
        "≠": operator.ne,
    }

    def __init__(
        self,
        scalars: dict[str, float],
        arrays: dict[str, tuple[str, np.ndarray]],
        families: dict[str, Callable[..., float]],
    ) -> None:
        self.scalars, self.arrays, self.functions = scalars, arrays, self.FUNCTIONS | families
        self.tokens: list[ET.Element] = []
        self.inside_bars = False

    def right_side(self, mathml: str) -> Value:
        tokens = list(visible(ET.fromstring(mathml)))
        equals = next(i for i, t in enumerate(tokens) if t.tag == "mo" and t.text == "=")
        return self.expression(tokens[equals + 1 :])

    def expression(self, tokens: list[ET.Element]) -> Value:
        self.tokens, saved = tokens[::-1], self.tokens
        value = self._sum()
        assert not self.tokens, f"left over: {[''.join(t.itertext()) for t in self.tokens]}"
        self.tokens = saved
        return value

    def _peek(self) -> str:
        token = self.tokens[-1] if self.tokens else None
        return (token.text or "") if token is not None and token.tag == "mo" else ""

    def _sum(self) -> Value:
        terms: list[tuple[int, Value]] = []
        sign = 1
        if self._peek() in ("\N{MINUS SIGN}", "+"):
            sign = -1 if self.tokens.pop().text == "\N{MINUS SIGN}" else 1
        terms.append((sign, self._product()))
        while self._peek() in ("+", "\N{MINUS SIGN}"):
            sign = -1 if self.tokens.pop().text == "\N{MINUS SIGN}" else 1
            terms.append((sign, self._product()))
        return lambda i: sum(s * t(i) for s, t in terms)

    def _product(self) -> Value:
        factors: list[Value] = []
        ends = ("+", "\N{MINUS SIGN}", ")", ",", *self.RELATIONS, *(["|"] if self.inside_bars else []))
        while self.tokens and self._peek() not in ends:
            if self._peek() in ("\u2062", "·"):
                self.tokens.pop()
            elif self.tokens[-1].tag == "munderover":
                factors.append(self._total())
            else:
                factors.append(self._factor())
        assert factors
        return lambda i: math.prod(f(i) for f in factors)

    def _total(self) -> Value:
        sign, below, above = self.tokens.pop()
        assert sign.text == "∑"
        letter, _, first = "".join(below.itertext()).partition("=")
        count = int("".join(above.itertext()))
        assert first == "1"
        body = self._product()
        return lambda i: sum(body({**i, letter: n}) for n in range(1, count + 1))

    def _factor(self) -> Value:
        token = self.tokens.pop()
        if token.tag == "mo" and token.text in ("(", "|"):
            saved, self.inside_bars = self.inside_bars, token.text == "|"
            inner = self._sum()
            self.inside_bars = saved
            closing = self.tokens.pop().text
            assert closing == {"(": ")", "|": "|"}[token.text]
            return inner if closing == ")" else lambda i: abs(inner(i))
        if token.tag == "mo" and token.text == "{":
            return self._cases(self.tokens.pop())
        if self._peek() == "\u2061":
            return self._call(token)
        return self._atom(token)

    def _cases(self, table: ET.Element) -> Value:
        """The first line whose condition holds; "otherwise" holds always."""
        lines = [(self.expression(list(visible(value))), self._condition(case)) for value, case in table]
        return lambda i: next(value(i) for value, holds in lines if holds(i))

    def _condition(self, case: ET.Element) -> Callable[[dict[str, int]], bool]:
        words, *tokens = visible(case)
        if words.text == "otherwise":
            return lambda i: True
        assert words.text == "if\u00a0"
        place = next(n for n, token in enumerate(tokens) if token.tag == "mo" and token.text in self.RELATIONS)
        compare = self.RELATIONS[tokens[place].text or ""]
        left, right = self.expression(tokens[:place]), self.expression(tokens[place + 1 :])
        return lambda i: compare(left(i), right(i))

    def _call(self, head: ET.Element) -> Value:
        self.tokens.pop()
        power: Value = lambda i: 1.0  # noqa: E731
        if head.tag == "msup":
            power = self.expression(list(visible(head[1])))
            head = head[0]
        function = self.functions["".join(head.itertext())]
        assert self.tokens.pop().text == "("
        arguments = [self._sum()]
        while self.tokens.pop().text == ",":
            arguments.append(self._sum())
        return lambda i: function(*(a(i) for a in arguments)) ** power(i)

    def _atom(self, token: ET.Element) -> Value:
        if token.tag == "mn":
            constant = float(token.text or "")
            return lambda i: constant
        if token.tag in ("mi", "msub"):
            return self._name("".join(token.itertext()))
        if token.tag == "msubsup":
            base, power = self._name("".join([*token[0].itertext(), *token[1].itertext()])), token[2]
        elif token.tag == "msup":
            base, power = self.expression(list(visible(token[0]))), token[1]
        elif token.tag == "msqrt":
            inner = self.expression([t for child in token for t in visible(child)])
            return lambda i: math.sqrt(inner(i))
        elif token.tag == "mfrac":
            above, below = (self.expression(list(visible(part))) for part in token)
            return lambda i: above(i) / below(i)
        else:
            raise AssertionError(f"cannot read {ET.tostring(token)!r}")
        if "".join(power.itertext()).count("/"):
            p, q = map(float, "".join(power.itertext()).split("/"))
            return lambda i: base(i) ** (p / q)
        exponent = self.expression(list(visible(power)))
        return lambda i: base(i) ** exponent(i)

    def _name(self, text: str) -> Value:
        if text == "e" and "e" not in self.scalars:
            return lambda i: math.e
        if text in self.arrays:
            letter, values = self.arrays[text]
            return lambda i: float(values[i[letter] - 1])
        scalar = self.scalars[text]
        return lambda i: scalar


# --------------------------------------------------------------------- values without typesetting


class Values:
    """Random numbers for all names of a model, and the value of an expression with them."""

    def __init__(self, derivation: Derivation) -> None:
        random = np.random.default_rng(1)
        d, model = derivation, derivation.model
        scalars = [*d.core, *d.inputs, *model.constants]
        scalars += [sp.Symbol(f"lam_{s.name}") for s in d.states] + [sp.Symbol(f"lam_{i}") for i in range(9)]
        names = [s.name for s in scalars] + ["step_length"] + ([model.time.name] if model.time else [])
        self.scalars = {name: float(random.uniform(0.4, 1.3)) for name in names}
        arrays = [(w.symbol.name, f.count) for f in model.families for w in f.weights]
        arrays += [(a.symbol.name, f.count) for f in model.families for a in f.data]
        self.arrays = {name: random.uniform(0.4, 1.3, count) for name, count in arrays}
        self.families = model.families
        for family in model.families:
            if family.kind == "polynomial":
                self.arrays |= {a.symbol.name: a.values for a in family.data}

    def of(self, expression: sp.Expr, index: int) -> float:
        explicit = expression.replace(
            lambda e: isinstance(e, sp.Sum),
            lambda e: sp.Add(*(self.of(e.function, n) for n in range(1, int(e.limits[0][2]) + 1))),
        )
        elements = explicit.atoms(sp.Indexed)
        # a sum inside a sum is indexed twice, always by its own index
        values = {e: self.arrays[str(e).partition("[")[0]][index - 1] for e in elements}
        explicit = explicit.xreplace({e: sp.Float(value, 30) for e, value in values.items()})
        rule = {s: sp.Float(self.scalars[s.name], 30) for s in explicit.free_symbols if s != INDEX}
        return float(explicit.xreplace(rule).rewrite(sp.exp).doit().evalf(25))

    def reader(self, names: Names) -> Reader:
        def text(mathml: Markup) -> str:
            return "".join(ET.fromstring(mathml).itertext())

        arrays = {
            text(names.typeset(name, letter)): (letter, values)
            for name, values in self.arrays.items()
            for letter in names.letters[:3]
        }
        families = {
            text(names.typeset(f.name, *([str(o)] if len(f.summands) > 1 else []))): self._family(f, o)
            for f in self.families
            for o in range(len(f.summands))
        }
        return Reader({text(names.typeset(n)): v for n, v in self.scalars.items()}, arrays, families)

    def _family(self, family: Family, output: int) -> Callable[..., float]:
        """The sum that a family stands for, from the user's summand."""
        symbols = [*family.arguments, *(w.symbol for w in family.weights), *(d.symbol for d in family.data)]
        summand = family.summands[output].xreplace({c: sp.Float(self.scalars[c.name]) for c in family.constants})

        def value(*arguments: float) -> float:
            columns = [self.arrays[s.name] for s in symbols[len(arguments) :]]
            rows = ([*arguments, *(column[n] for column in columns)] for n in range(family.count))
            rules = ({s: sp.Float(v, 30) for s, v in zip(symbols, row, strict=True)} for row in rows)
            return sum(float(summand.xreplace(rule).rewrite(sp.exp).doit().evalf(25)) for rule in rules)

        return value


def math_of(box: Markup) -> str:
    """The last formula in a box: the first one may be the summary of a fold."""
    start, stop = box.rindex("<math"), box.rindex("</math>") + len("</math>")
    return box[start:stop]


# --------------------------------------------------------------------- models

x, v, u = sp.symbols("x v u")


def nested() -> Model:
    """A family inside another one, and a product of two families: pairs of vectors, sums inside sums."""
    inner = features.rbf("bump", x, centres=[-1.0, 0.0, 1.0], lengthscale=0.9)
    outer = features.fourier("wave", inner + v, count=4, lengthscale=1.5)
    return Model([x, v], [u], [x + inner * outer, v * sp.exp(-x) + u * outer**2], name="nested")


def index_is_taken() -> Model:
    """A state called i: the generic index takes another letter."""
    i = sp.Symbol("i")
    family = features.fourier("v", i, count=4)
    return Model([i], [u], [i * family + u], name="taken")


def look_alikes() -> Model:
    """Names that would look the same if both were set with subscripts."""
    a1, a_1 = unknown("a1"), unknown("a_1")
    return Model([x], [u], [a1 * x**2 - a_1 * u / (1 + x**2) - logistic(a1 - a_1 * x)], name="alike")


def curves() -> Model:
    """Functions and powers of many shapes; the derivative of a maximum has cases."""
    k = unknown("k")
    motion = sp.sqrt(1 + k**2 * x**2) / (1 + sp.Abs(x)) - sp.tanh(k * v) ** 3 / 7 + sp.Max(x, k, v) ** sp.Rational(5, 2)
    return Model([x, v], [u], [motion, (v - x) * (x - v) * sp.atan(u) - 1e-7 * sp.log(2 + x**2)], name="curves")


def guarded() -> Model:
    """Cases that hold and cases that do not, with a family inside and outside."""
    bump = features.rbf("bump", x, centres=[-1.0, 0.0, 1.0], lengthscale=0.9)
    motion = sp.Piecewise((sp.sqrt(x) * bump, x > 5), (x * v * bump, x > 0), (x, True)) - sp.Min(u, x * v) * bump
    return Model([x, v], [u], [motion, v * sp.Piecewise((u**2, sp.Ne(u, 0)), (x, True))], name="guarded")


WRITTEN_HERE = {
    "nested": nested,
    "taken": index_is_taken,
    "alike": look_alikes,
    "curves": curves,
    "guarded": guarded,
}
FILES = {
    "vehicle": "examples/vehicle.py",
    "greenhouse": "examples/greenhouse.py",
    "schedule": "symdual/paper/models/schedule.py",
    "relevance": "symdual/paper/models/relevance.py",
}


def model_called(name: str) -> Model:
    return WRITTEN_HERE[name]() if name in WRITTEN_HERE else load_model_file(ROOT / FILES[name]).specifications[name]


def shown(equation: Equation) -> bool:
    return equation.right is not None


@pytest.mark.parametrize("name", [*WRITTEN_HERE, *FILES])
def test_every_typeset_derivative_has_the_value_of_the_derivation(name: str) -> None:
    derivation = derive(model_called(name))
    names = model_names(derivation)
    setter, values = EquationSetter(derivation, Typesetter(names)), Values(derivation)
    reader = values.reader(names)
    checked = 0
    for equation in filter(shown, equations(derivation)):
        read = reader.right_side(math_of(setter.equation(equation)))
        for index in (1, 2):
            got = read({names.letters[0]: index})
            assert got == pytest.approx(values.of(equation.right, index), rel=1e-9, abs=1e-12), equation
        checked += 1
    assert checked >= 4


def test_a_family_that_occurs_itself_stands_under_its_name() -> None:
    derivation = derive(model_called("greenhouse"))
    setter = EquationSetter(derivation, Typesetter(model_names(derivation)))
    (by_draught,) = (e for e in equations(derivation) if e.variables == ("draught",))
    text = "".join(ET.fromstring(math_of(setter.equation(by_draught))).itertext())
    assert text.endswith("=vent\u2062loss\u2061(temperature)")


def test_readable_form_keeps_the_value() -> None:
    derivation = derive(nested())
    values = Values(derivation)
    for equation in filter(shown, equations(derivation)):
        assert values.of(readable(equation.right), 2) == pytest.approx(values.of(equation.right, 2), rel=1e-12)


# --------------------------------------------------------------------- details


def typeset(expression: sp.Expr, names: Names | None = None) -> str:
    return str(Typesetter(names or Names()).typeset(expression))


def test_names_are_upright_with_real_subscripts() -> None:
    names = Names(["v_frequency", "velocity"], ["v"])
    assert str(names.typeset("velocity")) == "<mi>velocity</mi>"
    frequency = ET.fromstring(names.typeset("v_frequency", "i"))
    assert frequency.tag == "msub" and frequency[0].text == "v"
    assert [n.text for n in frequency[1]] == ["frequency", ",", "i"]
    assert str(Names(["s1"]).typeset("lam_s1")) == f"<msub><mi>λ</mi><mrow>{Names(['s1']).typeset('s1')}</mrow></msub>"
    assert "λ" in names.typeset("lam_velocity") and "velocity" in names.typeset("lam_velocity")


def test_a_name_of_several_words_stays_as_it_was_written() -> None:
    assert str(Names(["inverse_length"]).typeset("inverse_length")) == "<mi>inverse_length</mi>"


def test_two_names_never_look_the_same() -> None:
    names = Names(["a1", "a_1", "b1"])
    assert names.typeset("a1") != names.typeset("a_1")
    assert "msub" in names.typeset("b1")


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "a&b",
        r"\href{javascript:x}{y}",
        "</math><b>",
        "x'y",
    ],
)
def test_hostile_names_are_escaped_at_the_lowest_level(hostile: str) -> None:
    symbol = sp.Symbol(hostile)
    for text in (
        typeset(symbol + 1),
        typeset(sp.sin(symbol) ** 2 / symbol),
        typeset(sp.Indexed(sp.IndexedBase(hostile), INDEX)),
        typeset(sp.Function(hostile)(symbol)),
        str(element("p", hostile, title=hostile)),
    ):
        assert "<script" not in text and "<img" not in text and "<b>" not in text
        everything = "".join(ET.fromstring(f"<r>{text}</r>").itertext())
        assert hostile in everything


def test_number_shows_the_digits_that_matter() -> None:
    assert str(number(0.1 + 0.2)) == "<mn>0.3</mn>"
    assert "".join(ET.fromstring(number(-2.5e-7)).itertext()) == "\N{MINUS SIGN}2.5·10\N{MINUS SIGN}7"
    assert str(number(0.4)) == "<mn>0.4</mn>"


def test_functions_of_the_project_have_their_own_form() -> None:
    assert "\N{GREEK SMALL LETTER SIGMA}" in typeset(logistic(x)) and "logistic" not in typeset(logistic(x))
    assert typeset(monomial(x, sp.Symbol("p"))) == "<msup><mi>x</mi><mi>p</mi></msup>"


def test_cases_are_set_below_each_other() -> None:
    cases = ET.fromstring(typeset(sp.Piecewise((x, x > 0), (v, True))))
    rows = cases.findall(".//mtr")
    assert [" ".join("".join(r.itertext()).split()) for r in rows] == ["xif x>0", "votherwise"]
