"""What stands on the page of a model."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
import sympy as sp

from symdual import Model, Scenario, constant, features, previous, signal, unknown
from symdual.checks.kernels import BlockResult
from symdual.derive.derivation import derive
from symdual.derive.display import LARGEST
from symdual.derive.structure import structure
from symdual.emit.package import package
from symdual.report.breaking import Breaker
from symdual.report.html import element, page, table
from symdual.report.names import Names
from symdual.report.page import ModelReport, derivation_page, page_of_file
from symdual.report.patterns import Kind, hessian_pattern, jacobian_pattern, observation_pattern
from symdual.report.pictures import picture
from symdual.report.reasons import reasons
from symdual.report.source import highlighted
from symdual.report.terminal import summary_rows
from symdual.spec.loading import gathered

ROOT = Path(__file__).parents[2]
x, v, u = sp.symbols("x v u")


@cache
def file_page(name: str) -> str:
    return page_of_file(ROOT / name, checked=False)


def model_page(model: Model, **more: object) -> str:
    return derivation_page([ModelReport(derive(model), package(derive(model)).files, **more)])  # type: ignore[arg-type]


def visible_text(html: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", html, flags=re.S)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", body)))


class Outline(HTMLParser):
    """Collects tags and attributes, and sees that elements are closed in the order in which they were opened."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(html)
        assert not self._open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "br", "hr"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag


# --------------------------------------------------------------------- the page


@pytest.mark.parametrize("file", ["examples/vehicle.py", "examples/greenhouse.py", "symdual/paper/models/schedule.py"])
def test_the_page_is_self_contained(file: str) -> None:
    outline = Outline(file_page(file))
    tags = {tag for tag, _ in outline.found}
    assert not tags & {"script", "img", "iframe", "object", "embed", "form"}
    links = [value for _, attributes in outline.found for key, value in attributes.items() if key in ("href", "src")]
    assert links.count("data:,") == 1  # the icon
    assert len(links) > 5 and all(link is not None and link.startswith(("#", "data:,")) for link in links)
    assert not any(key.startswith("on") for _, attributes in outline.found for key in attributes)
    assert "url(" not in file_page(file) and "@import" not in file_page(file)


def test_every_link_has_its_place() -> None:
    outline = Outline(file_page("symdual/paper/models/schedule.py"))
    places = [attributes["id"] for _, attributes in outline.found if attributes.get("id")]
    assert len(places) == len(set(places))
    links = {attributes["href"] for tag, attributes in outline.found if tag == "a"}
    assert links <= {f"#{place}" for place in places}
    assert {"#schedule", "#schedule_plant", "#schedule-source"} <= links


def test_the_cart_page_says_what_is_known_about_the_cart() -> None:
    text = visible_text(file_page("symdual/paper/models/schedule.py"))
    for sentence in (
        "Experiment 2: a cart on a rail of unknown slope",
        "No unknown appears in the dynamics of position: its row is zero and is never touched.",
        "The input force does not appear in the dynamics of position.",
        "15 weights of v (fourier)",
        "3 steps later",
        "4 + 8 per feature of v",
        "The check was not run for this page",
    ):
        assert sentence in text
    assert text.count("def dynamics_hessian(") == 2  # the source of both models of the file


def test_names_indices_and_priors_of_the_augmented_state() -> None:
    html = file_page("examples/greenhouse.py")
    start = html.index('id="greenhouse-state"')
    rows = re.findall(r"<tr>(.*?)</tr>", html[start : html.index("</table>", start)])
    cells = [[visible_text(c) for c in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows[1:]]
    spans = ["0", "1", "2", "3 … 6", "7 … 15", "16 … 19", "20 … 23", "24 … 27", "28 … 31"]
    assert [row[0] for row in cells] == spans  # families in the order of their declarations
    assert cells[2] == ["2", "draught", "unknown", "N(0.1,0.01)"]
    assert cells[3][3] == "mean 0, \N{MINUS SIGN}0.1, 0, 0, variance 0.01, 0.01, 0.001, 0.001"
    assert cells[4][2] == "9 weights of plants (rbf)"
    assert cells[5] == ["16 … 19", "burner0,sin,i", "4 weights of burner (fourier)", "N(0,0.05) each"]


def test_all_mathematics_is_well_formed() -> None:
    for file in ("examples/greenhouse.py", "symdual/paper/models/relevance.py"):
        formulas = re.findall(r"<math.*?</math>", file_page(file), flags=re.S)
        assert len(formulas) > 40
        for formula in formulas:
            root = ET.fromstring(formula)
            for node in root.iter():
                children = {"mfrac": 2, "msup": 2, "msub": 2, "msubsup": 3, "munderover": 3, "mover": 2}.get(node.tag)
                assert children is None or len(node) == children


def test_worst_errors_are_shown_and_misses_stand_out() -> None:
    model = Model([x], [u], [x + u], name="m")
    good = BlockResult("f by x", "50 digits", 1, 2.2e-16, True)
    zero = BlockResult("f by u", "50 digits", 1, 0.0, True)
    passed = visible_text(model_page(model, checks=[good, zero]))
    assert "All 2 comparisons pass" in passed and "2.2e-16" in passed and "1 of 2 agree in every bit" in passed
    missed = model_page(model, checks=[good, BlockResult("f by <b>", "differences", 3, float("inf"), False)])
    assert "1 of 2 comparisons miss" in visible_text(missed)
    assert "f by &lt;b&gt;" in missed and "<b>" not in missed


@pytest.mark.soak
def test_the_check_is_run_when_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "tiny.py"
    file.write_text(
        "import sympy as sp\nfrom symdual import Model, unknown\nx, u = sp.symbols('x u')\n"
        "model = Model([x], [u], [x + unknown('b') * u])\n"
    )
    seen: list[tuple[str, float]] = []
    text = visible_text(page_of_file(file, checked=True, progress=lambda name, fraction: seen.append((name, fraction))))
    assert re.search(r"All \d+ comparisons pass; the worst relative error is", text)
    assert seen[-1] == ("tiny", 1.0)
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.py"]  # nothing is left behind


def test_continuous_time_time_and_constants() -> None:
    model = Model(
        [x],
        [u],
        derivatives=[constant("pull", 2.5) * sp.sin(sp.Symbol("t")) - x + u],
        step=0.05,
        method="rk4",
        time=sp.Symbol("t"),
        name="clock",
    )
    text = visible_text(model_page(model))
    assert "Runge–Kutta method with the step length 0.05" in text  # noqa: RUF001
    assert "pull2.5" in text and "continuous, rk4" in text
    assert "The model has no unknowns: z is the state itself." in text


def test_signals_choices_and_what_a_task_asks_for() -> None:
    sun = signal("sun", usual=0.5)
    model = Model([x], [u, v], [0.9 * x + sun + u + v], bounds={v: (0, 1)}, name="asked")
    asked = {"cost": [x - sun, u - previous(u)], "constraints": [x <= 2.0], "choices": {u: [0.0, 1.0, 3.0]}}
    own = gathered(Scenario(model, 4, **asked)).specifications["asked"]
    text = visible_text(model_page(own))
    assert "signalssun" in text and "inputs with a finite set of values3 combinations are tried" in text
    assert "sunusually 0.5" in text and "Constraints: at most zero, softly" in text
    assert "finite set of values" not in visible_text(model_page(model)) and "previous" in text
    rows = dict(summary_rows(own, structure(derive(own))))
    assert rows["signals"] == "sun" and rows["choices"].startswith("3 combinations")
    assert rows["constraint"] == "x - 2.0 <= 0"


# --------------------------------------------------------------------- too large


def tangled(depth: int) -> Model:
    """A map whose derivatives, written out, grow without end."""
    inner = x
    for k in range(depth):
        inner = sp.sin(inner * (inner + v)) + unknown(f"k{k}") * inner
    return Model([x, v], [u], [inner + u, x], name="tangled")


def test_an_expression_too_large_to_typeset_is_named_with_its_size() -> None:
    html = model_page(tangled(7))
    text = visible_text(html)
    assert f"is too large to typeset: more than {LARGEST} operations when written out; show it" in text
    assert re.search(r"is too large to typeset: [4-9]\d\d operations when written out; show it", text)
    assert len(html) < 3_000_000
    assert "∂v+∂x=1" in text  # the small ones are shown all the same


def test_a_long_expression_is_folded() -> None:
    outline = file_page("examples/pendulum.py")
    assert re.search(r"<summary><math.{0,600}?</math> has \d+ operations when written out: show it</summary>", outline)


# --------------------------------------------------------------------- escaping


def test_hostile_text_is_escaped_everywhere() -> None:
    hostile = '<script>alert("x")</script>'
    pieces = [
        element("p", hostile, title=hostile),
        table((hostile,), [(hostile,)]),
        highlighted(f"# {hostile}\ns = '{hostile}'\n"),
        page(hostile, hostile),
    ]
    for piece in pieces:
        assert "<script" not in piece
        assert "script&gt;" in piece


def test_a_hostile_group_name_is_escaped_in_a_picture() -> None:
    pattern = jacobian_pattern(derive(Model([x], [u], [x + u], name="m")))
    hostile = pattern.rows[0].__class__("<script>&", 1, False, "x")
    svg = picture(pattern.__class__((hostile,), pattern.columns, pattern.cells), "<script>")
    assert "<script" not in svg and "&lt;script&gt;&amp;" in svg


def test_hostile_docstring_and_comments_of_a_model_file_are_escaped(tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(
        '"""<script>alert(1)</script> & co."""\nimport sympy as sp\nfrom symdual import Model\n'
        "x, u = sp.symbols('x u')  # </pre><script>\nmodel = Model([x], [u], [x + u])\n"
    )
    html = page_of_file(file, checked=False)
    assert "<script" not in html
    assert "<script>alert(1)</script> & co." in visible_text(html)
    Outline(html)


# --------------------------------------------------------------------- structure


def cells(pattern: object) -> list[str]:
    letters = dict(zip(Kind, ".cd|uD2B", strict=True))
    return ["".join(letters[kind] for kind in line) for line in pattern.cells]  # type: ignore[attr-defined]


def test_patterns_of_a_network() -> None:
    net = features.logistic("net", x, locations=[-1.0, 0.0, 1.0])
    derivation = derive(Model([x, v], [u], [x + v, v + net + u], observation=[x * unknown("s")], name="m"))
    # x v s net_v net_w u
    assert cells(jacobian_pattern(derivation)) == ["cc....", "dc.||c", "..c...", "...u..", "....u."]
    assert cells(observation_pattern(derivation)) == ["d.d.."]
    assert cells(hessian_pattern(derivation, derivation.dynamics_hessian, derivation.inputs)) == [
        "d..||.",
        "......",
        "......",
        "|...D.",
        "|..DD.",
        "......",
    ]


def test_pattern_of_a_product_of_families_has_pairs() -> None:
    one = features.rbf("a", x, centres=[0.0, 1.0])
    other = features.rbf("b", x, centres=[0.0, 1.0, 2.0])
    derivation = derive(Model([x], [u], [one * other + u], name="m"))
    assert cells(hessian_pattern(derivation, derivation.dynamics_hessian, ())) == ["d||", "|.2", "|2."]


def test_reasons_hold() -> None:
    """Each sentence about a variable that does not appear is true of the expression that the user wrote."""
    model = Model([x, v], [u], [x + 0.1 * v, unknown("a") * sp.sin(x) + u - u], observation=[v], name="m")
    derivation = derive(model)
    curvature = hessian_pattern(derivation, derivation.dynamics_hessian, derivation.inputs)
    sentences = {r.sentence: r.block for r in reasons(derivation, curvature)}
    assert sentences["No unknown appears in the dynamics of x: its row is zero and is never touched."] == "f_theta"
    assert sentences["The input u does not appear in the dynamics of v."] == "f_u"
    assert sentences["The state v does not appear in the dynamics of v."] == "f_x"
    assert sentences["Each measurement is one of the states: each row has a single one."] == "h_x"
    assert sentences["The variable v enters with constant coefficients only: its row and column are zero."]
    assert sentences["The variable u does not appear in the dynamics at all."]
    assert not any("a does not" in s for s in sentences)


def test_reasons_of_an_affine_model() -> None:
    derivation = derive(Model([x], [u], [2 * x + u + unknown("offset")], name="m"))
    curvature = hessian_pattern(derivation, derivation.dynamics_hessian, derivation.inputs)
    assert any("no curvature at all" in r.sentence for r in reasons(derivation, curvature))


def test_a_picture_has_a_label_for_every_row_and_column() -> None:
    pattern = jacobian_pattern(derive(Model([x, v], [u], [v, x * u], name="m")))
    svg = ET.fromstring(str(picture(pattern, "title")))
    labels = [node.text for node in svg.iter("text")]
    assert labels == ["x", "v", "x", "v", "u"]
    filled = [r for r in svg.iter("rect") if r.attrib["fill"] != "none"]
    assert len(filled) == 3  # v by x, x by v, x by u


# --------------------------------------------------------------------- broken lines


def test_a_negative_bracket_keeps_its_sign_for_all_terms() -> None:
    long = sp.Add(*(sp.Symbol(f"quantity{k}") * sp.Symbol(f"other{k}") for k in range(9)))
    shown = Breaker(Names()).equation(element("mi", "y"), sp.Mul(-1, long, evaluate=False), 0, None, None)
    text = "".join(ET.fromstring(shown).itertext())
    assert text.startswith("y=\N{MINUS SIGN}(") and text.endswith(")")
    assert shown.count("<mtr>") > 1


def test_what_is_too_large_to_typeset_is_there_in_names_for_its_parts() -> None:
    c, t, q = sp.symbols("c t q")
    rate = unknown("k0", 7.2) * sp.exp(10 - unknown("E", 8.75) * 100 / t) * c
    model = Model([c, t], [q], derivatives=[q * (1 - c) - rate, q * (350 - t) + rate], step=0.1, method="rk4", name="r")
    text = derivation_page([ModelReport(derive(model), {})])
    said = set(re.findall(r"(?:^|<code>)(_\w+) = ", text, flags=re.M))
    used = set(re.findall(r"(?<![\w&;])_[a-z]+\w*", text.split("Operations</h2>")[0]))
    assert len(said) > 50 and "show it with names for its parts" in text
    assert used == said  # every name is explained, and none for nothing
