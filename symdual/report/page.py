"""`symdual show --html`: everything that was derived for a model on one page with typeset mathematics."""

# ruff: noqa: RUF001  (the page's text is typography: Greek letters, true minus signs)

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import sympy as sp
from markupsafe import Markup

from symdual.api import check
from symdual.checks.kernels import BlockResult
from symdual.derive.derivation import Derivation, derive
from symdual.derive.display import INDEX, Equation, equations
from symdual.derive.structure import Structure, structure
from symdual.emit.kernels import kernel_functions
from symdual.emit.package import package
from symdual.integrators import INTEGRATORS
from symdual.report import tables
from symdual.report.html import element, folded, formula, join, page, section, table
from symdual.report.mathml import Typesetter, brackets, math, operator, rate, row
from symdual.report.names import Names, identifier
from symdual.report.patterns import Kind, Pattern, hessian_pattern, jacobian_pattern, observation_pattern
from symdual.report.pictures import legend, picture
from symdual.report.reasons import reasons
from symdual.report.source import code_style, highlighted
from symdual.report.terminal import filter_text
from symdual.report.typeset import EquationSetter, contracted
from symdual.spec.loading import load_model_file, source_text
from symdual.spec.symbols import FeatureSum
from symdual.spec.system import System

_BLOCKS = {
    "f_x": ("f", "x", "The dynamics by the state"),
    "f_u": ("f", "u", "The dynamics by the input"),
    "f_theta": ("f", "θ", "The dynamics by the unknowns"),
    "h_x": ("h", "x", "The measurement by the state"),
    "h_theta": ("h", "θ", "The measurement by the unknowns"),
    "f_zz": ("f", "zz", "By the augmented state, twice"),
    "f_zz, diagonal": ("f", "zz", "Weights of one feature by each other: the diagonals of θ by θ"),
    "f_zz, pair left": ("f", "zz", "Weights by weights across features: the left vectors"),
    "f_zz, pair right": ("f", "zz", "Weights by weights across features: the right vectors"),
    "f_zu": ("f", "zu", "By the augmented state and the input"),
    "f_uu": ("f", "uu", "By the input, twice"),
    "h_zz": ("h", "zz", "The measurement by the augmented state, twice"),
    "h_zz, diagonal": ("h", "zz", "The measurement: the diagonals of θ by θ"),
    "h_zz, pair left": ("h", "zz", "The measurement: the left vectors of θ by θ"),
    "h_zz, pair right": ("h", "zz", "The measurement: the right vectors of θ by θ"),
    "l_x": ("l", "x", "The cost of a step by the state"),
    "l_u": ("l", "u", "The cost of a step by the input"),
    "l_zz": ("l", "xx", "The cost of a step by the state, twice"),
    "l_zu": ("l", "xu", "The cost of a step by state and input"),
    "l_uu": ("l", "uu", "The cost of a step by the input, twice"),
    "e_x": ("e", "x", "The cost of the end by the state"),
    "e_zz": ("e", "xx", "The cost of the end by the state, twice"),
    "g_x": ("g", "x", "The constraints by the state"),
    "g_u": ("g", "u", "The constraints by the input"),
    "g_theta": ("g", "θ", "The constraints by the unknowns"),
}


@dataclass(frozen=True)
class ModelReport:
    """A derived model with what else is known about it: generated files and, if they were run, the checks."""

    derivation: Derivation
    files: Mapping[str, bytes]
    checks: Sequence[BlockResult] | None = None

    @property
    def name(self) -> str:
        """The model's name."""
        return self.derivation.model.name


def derivation_page(reports: Sequence[ModelReport], source: str = "") -> str:
    """The page of all models of a file; `source` is the text of the model file."""
    names = [report.name for report in reports]
    articles = [_Article(report).whole(source if i == 0 else "") for i, report in enumerate(reports)]
    lead = element("p", _first_paragraph(source), class_="lead") if _first_paragraph(source) else Markup("")
    overview = Markup("")
    if len(reports) > 1:
        links = (element("a", name, href=f"#{name}") for name in names)
        overview = element("nav", "Models: ", *links, aria_label="models")
    return page(f"{', '.join(names)}: derivation", join([lead, overview, *articles]), code_style())


def page_of_file(
    model_file: Path, checked: bool, progress: Callable[[str, float], None] = lambda name, fraction: None
) -> str:
    """The page of a model file; with `checked`, its kernels are compiled in a temporary folder and checked.

    The recursions are left to `symdual check`: to compile them takes much longer than everything else here.
    """
    specifications = load_model_file(model_file).specifications
    results: Mapping[str, Sequence[BlockResult]] = {}
    if checked:
        with TemporaryDirectory() as folder:
            results = check(model_file, folder, progress=progress, recursions=False)
    derivations = {name: derive(own) for name, own in specifications.items()}
    reports = [ModelReport(d, package(d).files, results.get(name)) for name, d in derivations.items()]
    return derivation_page(reports, source_text(model_file))


def model_names(derivation: Derivation) -> Names:
    """How the names of a model are set."""
    model = derivation.model
    symbols = [*model.states, *model.inputs, *model.unknowns, *derivation.scalars, *model.constants]
    symbols += [model.time] if model.time is not None else []
    symbols += [w.symbol for f in model.families for w in f.weights]
    symbols += [a.symbol for f in model.families for a in f.data]
    return Names([*(s.name for s in symbols), "step_length"], [f.name for f in model.families])


def _first_paragraph(source: str) -> str:
    """The first paragraph of a model file's docstring."""
    text = ast.get_docstring(ast.parse(source)) or ""
    return " ".join(text.split("\n\n")[0].split())


_SUBSTEP = "its first substep, in which inputs of the past stay as they are"


def _differentiated(model: System) -> str:
    """What the derivatives of a page are those of: the whole step, the first of several substeps, or less than that."""
    if model.is_implicit:
        return "the right-hand side, of which those of the step are solutions of linear equations"
    return _SUBSTEP if model.substeps > 1 else "the discretised map"


class _Article:
    """Writes the sections of one model."""

    def __init__(self, report: ModelReport) -> None:
        self._report = report
        self._d = report.derivation
        self._pattern: Structure = structure(self._d)
        self._typesetter = Typesetter(model_names(self._d))
        self._setter = EquationSetter(self._d, self._typesetter)
        self._equations = equations(self._d)
        self._names = self._setter.abbreviate(self._equations)
        self._curvature = hessian_pattern(self._d, self._d.dynamics_hessian, self._d.inputs)

    def whole(self, source: str) -> Markup:
        """All sections, with links to them."""
        sections = [
            ("model", "The model", self._model(source)),
            ("state", "The augmented state", self._state()),
            ("zeros", "What is zero, and why", self._zeros()),
            ("jacobians", "First derivatives", self._jacobians()),
            ("hessians", "Second derivatives", self._hessians()),
            *([("cost", "The cost", self._cost())] if self._d.model.objective is not None else []),
            ("operations", "Operations", self._operations()),
            ("check", "Check", self._check()),
            ("source", "Generated source", self._source()),
        ]
        name = self._report.name
        links = (element("a", title, href=f"#{name}-{key}") for key, title, _ in sections)
        body = (section(f"{name}-{key}", title, content) for key, title, content in sections)
        return element(
            "article",
            element("h1", name),
            self._facts(),
            element("nav", *links, aria_label=name),
            *body,
            id=name,
            class_="model",
        )

    def _facts(self) -> Markup:
        s, model = self._pattern, self._d.model
        late = f"{s.input_delay} step{'s' if s.input_delay > 1 else ''} later" if s.input_delay else "never"
        discrete = "discrete" if model.step is None else f"continuous, {model.method}"
        facts = [
            ("states, inputs, measurements", f"{s.nx}, {s.nu}, {s.ny}"),
            ("unknowns", str(s.ntheta)),
            ("augmented state", f"{s.nz} numbers"),
            ("time", discrete),
            ("f in x and u", "affine" if s.linear else "not affine"),
            ("u shows in the belief on θ", late),
            ("filter", filter_text(model, s)),
        ]
        if model.signals:
            facts.append(("signals", ", ".join(s.name for s in model.signals)))
        if model.combinations:
            facts.append(("inputs with a finite set of values", f"{model.combinations} combinations are tried"))
        return element("dl", *(element("div", element("dt", k), element("dd", v)) for k, v in facts), class_="facts")

    # ------------------------------------------------------------------ the model

    def _model(self, source: str) -> Markup:
        model, name = self._d.model, self._typesetter.name
        lines = []
        for state, expression in zip(model.states, model.dynamics, strict=True):
            left = self._setter.next_value(state.name) if model.step is None else rate(name(state.name))
            ending = element("msub", identifier("ξ"), element("mrow", name(state.name))) if model.step is None else None
            lines.append(self._setter.assignment(left, expression, first=state, ending=ending))
        parts = [element("div", *lines, class_="formulas")]
        if model.step is not None:
            method = INTEGRATORS[model.method].title.replace("-", "\N{EN DASH}")
            within = f" in {model.substeps} substeps" if model.substeps > 1 else ""
            note = (
                f"Discretised by {method} with the step length {model.step:g}{within}; "
                f"all derivatives below are those of {_differentiated(model)}."
            )
            parts.append(element("p", note))
        parts.append(self._families())
        measured = []
        for i, expression in enumerate(model.observation):
            ending = element("msub", identifier("γ"), element("mn", str(i)))
            measured.append(self._setter.assignment(name(f"y{i}"), expression, ending=ending))
        parts += [element("h3", "Measurement"), element("div", *measured, class_="formulas")]
        plus = "A plus marks the value one step later; ξ and γ are independent Gaussian noise."
        parts.append(element("p", plus, class_="note"))
        parts += [
            element("h3", "Noise and numbers"),
            tables.noise(self._d, self._typesetter),
            tables.known_numbers(self._d, self._typesetter),
        ]
        if source:
            parts.append(folded("The model file", highlighted(source)))
        return join(parts)

    def _families(self) -> Markup:
        found = self._d.model.dynamics + self._d.model.observation
        values = sorted(
            {v for e in found for v in e.atoms(FeatureSum)}, key=lambda v: (v.family.name, v.output, str(v))
        )
        if not values:
            return Markup("")
        lines = [self._setter.assignment(self._typesetter.typeset(v), self._written(v)) for v in values]
        text = (
            "Each family is a sum over its features; everything is derived once, for a generic index. Where a family "
            "itself occurs in an equation below, it stands there under its name."
        )
        return join([element("h3", "Feature families"), element("p", text), element("div", *lines, class_="formulas")])

    @staticmethod
    def _written(value: FeatureSum) -> sp.Expr:
        """A family's value as the sum that it stands for."""
        family = value.family
        rule = dict(zip(family.arguments, value.points, strict=True))
        arrays = [w.symbol for w in family.weights] + [a.symbol for a in family.data]
        rule |= {s: sp.Indexed(sp.IndexedBase(s.name, real=True), INDEX) for s in arrays}
        return sp.Sum(family.summands[value.output].xreplace(rule), (INDEX, 1, family.count))

    def _state(self) -> Markup:
        z = row(identifier("z"), operator("="), brackets(row(identifier("x"), operator(","), identifier("θ"))))
        text = join([math(z), ": the state together with everything that is unknown. Indices count from 0."])
        return join(
            [
                element("p", text),
                tables.augmented_state(self._d, self._typesetter),
                tables.inputs(self._d, self._typesetter),
            ]
        )

    def _zeros(self) -> Markup:
        found = sorted(reasons(self._d, self._curvature), key=lambda reason: _ORDER.index(reason.block))
        rows = [
            ("" if i and found[i - 1].block == r.block else _block_symbols(r.block), r.sentence)
            for i, r in enumerate(found)
        ]
        text = "Known before any number is computed; what is zero is neither stored nor multiplied."
        return join(
            [element("p", text), table(("block", "why it vanishes, wholly or in part"), rows, class_="reasons")]
        )

    # ------------------------------------------------------------------ derivatives

    def _jacobians(self) -> Markup:
        first, second = jacobian_pattern(self._d), observation_pattern(self._d)
        return join(
            [
                formula(math(_augmented_jacobians())),
                element("h3", "Structure of ", math(_tilde("A")), " and ", math(_tilde("B"))),
                picture(first, "Blocks of A and B: columns are states, unknowns and inputs"),
                element("h3", "Structure of ", math(_tilde("C"))),
                picture(second, "Blocks of C: columns are states and unknowns"),
                legend(_kinds(first) | _kinds(second)),
                self._blocks(("f_x", "f_u", "f_theta", "h_x", "h_theta")),
                self._names,
            ]
        )

    def _hessians(self) -> Markup:
        z, u = math(identifier("z")), math(identifier("u"))
        text = (
            *("Second derivatives are needed only in contraction with the costate: of ", math(contracted("f"))),
            *(" by ", z, " and ", u, ", and of ", math(contracted("h")), " by ", z, "."),
            " Between the weights of families they are diagonals in the index and pairs of vectors, whatever the "
            "number of features.",
        )
        observed = hessian_pattern(self._d, self._d.observation_hessian, ())
        parts = [element("p", *text)]
        for pattern, function, what in ((self._curvature, "f", "dynamics"), (observed, "h", "measurement")):
            kinds = _kinds(pattern)
            parts.append(element("h3", "Structure of the second derivatives of ", math(contracted(function))))
            if kinds == {Kind.ZERO}:
                parts.append(element("p", f"All second derivatives of the {what} are zero."))
            else:
                parts += [picture(pattern, f"Blocks of the Hessian of the {what}"), legend(kinds)]
                parts.append(self._blocks([b for b in _BLOCKS if b.startswith((f"{function}_z", f"{function}_uu"))]))
        return join(parts)

    def _blocks(self, wanted: Sequence[str]) -> Markup:
        grouped: dict[str, list[Equation]] = {block: [] for block in wanted}
        for equation in self._equations:
            if equation.block in grouped:
                grouped[equation.block].append(equation)
        parts = []
        for block, listed in grouped.items():
            if listed:
                letter, below, words = _BLOCKS[block]
                symbol = element("msub", identifier(letter), element("mrow", *map(identifier, below)))
                parts.append(element("h3", f"{words}, ", math(symbol)))
                if block.endswith("pair left"):
                    parts.append(element("p", _PAIRS, class_="note"))
                parts.append(self._setter.group(listed))
        return join(parts)

    def _cost(self) -> Markup:
        objective = self._d.model.objective
        assert objective is not None
        parts = [element("p", "Added to the quadratic form of states and inputs, whose matrices are numbers.")]
        for letter, when, terms in (("l", "Of a step", objective.stage), ("e", "Of the end", objective.final)):
            if terms:
                how = "the squares of" if terms.squares else ""
                parts.append(element("h3", f"{when}: the weighted sum of {how}"))
                lines = [
                    self._setter.assignment(self._typesetter.name(f"{letter}{i}"), e)
                    for i, e in enumerate(terms.expressions)
                ]
                parts.append(element("div", *lines, class_="formulas"))
        if objective.constraints:
            parts.append(element("h3", "Constraints: at most zero, softly"))
            lines = [
                self._setter.assignment(self._typesetter.name(f"g{i}"), g) for i, g in enumerate(objective.constraints)
            ]
            parts.append(element("div", *lines, class_="formulas"))
        parts.append(self._blocks([block for block in _BLOCKS if block.startswith(("l_", "e_", "g_"))]))
        return join(parts)

    # ------------------------------------------------------------------ the code

    def _operations(self) -> Markup:
        functions = kernel_functions(self._d, self._pattern)
        text = "Additions, multiplications, divisions and calls of functions, with common subexpressions shared."
        return join([element("p", text), tables.operations(functions)])

    def _check(self) -> Markup:
        if not self._report.checks:
            return element("p", "The check was not run for this page: ", element("code", "symdual check"), " does.")
        text = (
            "The compiled kernels were compared at random points, entry by entry (for large families, a sample of the "
            "features), with 50-digit values of the derivation and with differences of the model as written. "
        )
        more = element("code", "symdual check"), " also compares the recursions with full matrices."
        return join([element("p", text, *more), tables.worst_errors(self._report.checks)])

    def _source(self) -> Markup:
        parts = []
        for name, content in sorted(self._report.files.items()):
            if name.endswith(".py"):
                code = content.decode()
                parts.append(folded(f"{name}, {len(code.splitlines())} lines", highlighted(code)))
        return join([element("p", "As written by ", element("code", "symdual generate"), "."), *parts])


_ORDER = "theta,f_x,f_u,f_theta,A~ B~,D,h_x,h_theta,h_theta h_zz,f_zz f_zu f_uu,f_zz f_zu,f_thetatheta,f_uu,f_zu".split(
    ","
)
_PAIRS = (
    "The block is the sum over all family values of φ ρ⊤ + ρ φ⊤; their entries for a generic index are φ and ρ below."
)


def _kinds(pattern: Pattern) -> set[Kind]:
    return {kind for line in pattern.cells for kind in line}


def _block_symbols(blocks: str) -> Markup:
    """The symbols of blocks such as `f_zz f_zu`."""

    def symbol(block: str) -> Markup:
        if block.endswith("~"):
            return _tilde(block[:-1])
        letter, _, below = block.partition("_")
        lower = [identifier("θ")] * below.count("theta") if "theta" in below else [identifier(x) for x in below]
        letter = "θ" if letter == "theta" else letter
        return element("msub", identifier(letter), element("mrow", *lower)) if lower else identifier(letter)

    return join((math(symbol(block)) for block in blocks.split()), ", ")


def _tilde(letter: str) -> Markup:
    return element("mover", identifier(letter), element("mo", "~", stretchy="false"), accent="true")


def _augmented_jacobians() -> Markup:
    """A~ = [f_x f_theta; 0 D], B~ = [f_u; 0], C~ = [h_x h_theta]."""

    def by(letter: str, variable: str) -> Markup:
        return element("msub", identifier(letter), identifier(variable))

    def matrix(*rows: Sequence[Markup]) -> Markup:
        lines = (element("mtr", *(element("mtd", entry) for entry in line)) for line in rows)
        return element("mtable", *lines, class_="matrix")

    zero, gap = element("mn", "0"), Markup('<mspace width="1.6em"></mspace>')
    a = matrix((by("f", "x"), by("f", "θ")), (zero, identifier("D")))
    b = matrix((by("f", "u"),), (zero,))
    c = matrix((by("h", "x"), by("h", "θ")))
    parts = [(_tilde("A"), a), (_tilde("B"), b), (_tilde("C"), c)]
    return row(*(part for left, right in parts for part in (left, operator("="), right, gap)))
