"""The formulas as data: complete, in order, word for word, and unseen by the derivations."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest

import symdual.paper.derivations as derivations_package
from symdual.paper.derivations import DERIVATIONS
from symdual.paper.equation import Equation
from symdual.paper.equations import EQUATIONS
from symdual.paper.machine import NotEvaluable, compiled

SOURCE = os.environ.get("SYMDUAL_PAPER_SOURCE", "")
needs_source = pytest.mark.skipif(
    not Path(SOURCE).is_file(), reason="SYMDUAL_PAPER_SOURCE does not name the paper's LaTeX source"
)


def _dense(text: str) -> str:
    return re.sub(r"\s", "", text)


def _printed(equation: Equation) -> str:
    """The source text of a formula; a sentence is kept as \\text{...} in the data only."""
    dense = _dense(equation.latex)
    sentence = re.fullmatch(r"\\text\{(.*)\}", dense)
    return sentence.group(1) if sentence else dense


def test_ids_are_unique_and_carry_their_section() -> None:
    ids = [equation.id for equation in EQUATIONS]
    assert len(ids) == len(set(ids))
    for equation in EQUATIONS:
        assert re.fullmatch(r"([2-6]|[AB])(\.[1-9](\.[1-9])?)?", equation.section), equation.id


def test_every_formula_has_a_derivation_and_every_derivation_a_formula() -> None:
    assert {equation.id for equation in EQUATIONS} == set(DERIVATIONS)


def test_formulas_of_a_section_stand_in_the_order_of_its_subsections() -> None:
    sections = [equation.section for equation in EQUATIONS]
    assert sections == sorted(sections)


def test_only_the_formula_with_the_spare_bracket_is_ill_formed() -> None:
    broken = []
    for equation in EQUATIONS:
        try:
            compiled(equation.machine)
        except NotEvaluable:
            broken.append(equation.id)
    assert broken == ["B.1.hessian-xw"]


def test_derivations_do_not_import_transcriptions() -> None:
    folder = Path(derivations_package.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            assert not [name for name in names if "paper.equation" in name], path.name


def test_no_case_hands_the_expected_value_to_the_formula_alone() -> None:
    """A formula that is one name, bound to the expected value, would be compared with itself."""
    for equation in EQUATIONS:
        derivation = DERIVATIONS[equation.id]
        if not equation.machine.isidentifier() or equation.machine in ("None", "True"):
            continue
        for case in derivation.cases():  # type: ignore[union-attr]
            assert case.symbols.get(equation.machine) is not case.expected, equation.id


@needs_source
def test_latex_is_word_for_word_at_its_line() -> None:
    text = Path(SOURCE).read_text(encoding="utf-8")
    characters = [(character, line) for line, row in enumerate(text.splitlines(), 1) for character in row]
    characters = [(character, line) for character, line in characters if not character.isspace()]
    flat = "".join(character for character, _ in characters)
    for equation in EQUATIONS:
        found = [characters[match.start()][1] for match in re.finditer(re.escape(_printed(equation)), flat)]
        assert equation.line in found, equation.id


@needs_source
def test_every_display_of_sections_2_to_6_and_the_appendices_is_transcribed() -> None:
    text = Path(SOURCE).read_text(encoding="utf-8")
    text = text[text.index(r"\section{Model and Notation}") :]
    displays = re.findall(r"\\begin\{((?:equation|multline|align|xalignat)\*?)\}(.*?)\\end\{\1\}", text, flags=re.S)
    known = sorted((_dense(equation.latex) for equation in EQUATIONS), key=len, reverse=True)
    left_over = r"\\approx|\\nablaf\(x\)|\\(label|text|begin|end)\{.*?\}|\{2\}|\\q+(uad)?|[&,.;=#\\]"
    assert len(displays) > 80
    for _, body in displays:
        rest = _dense(body)
        for latex in known:
            rest = rest.replace(latex, "#")
        assert "#" in rest
        assert re.sub(left_over, "", rest) == "", rest
