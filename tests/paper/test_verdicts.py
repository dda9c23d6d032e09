"""The verdicts: as recorded, as found by hand, and with what they rest on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from symdual.common.errors import SymdualError
from symdual.paper import checking
from symdual.paper.case import Case, Coverage, Derivation, Form, Meant, Single, Supplies
from symdual.paper.checking import Result
from symdual.paper.derivations import DERIVATIONS
from symdual.paper.equation import Equation, Restated
from symdual.paper.equations import EQUATIONS
from symdual.paper.verdict import Verdict, judge

Results = tuple[Result, ...]

BY_HAND = {
    "2.cost": "definition",
    "2.past-inputs": "typo",
    "3.1.cautious": "convention",
    "3.1.two-steps-inserted": "typo",
    "4.1.riccati": "correct",
    "4.1.offset": "wrong",
    "4.2.perturbation-cost": "convention",
    "4.2.cost-to-go": "wrong",
    "4.2.perturbed-riccati": "correct",
    "4.2.overall": "wrong",
    "5.2.draw": "typo",
    "5.2.posterior-mean": "wrong",
    "5.2.1.approximate-kernel": "wrong",
    "6.1.setting": "undefined",
    "6.2.reference": "definition",
    "6.2.weights": "undefined",
    "6.3.reference": "undefined",
    "6.3.strong-feature": "wrong",
    "6.4.order-of-parameters": "wrong",
    "6.4.early-parameter": "wrong",
    "6.4.straight": "wrong",
    "6.5.costs": "convention",
    "5.2.prior-covariance": "wrong",
    "A.1.g00": "typo",
    "A.2.replaced": "typo",
    "A.2.covariance": "wrong",
    "A.1.two-steps-expanded": "correct",
    "A.1.full-measurement": "typo",
    "A.1.prior-block": "wrong",
    "A.1.drift-block": "convention",
    "A.1.covariance": "wrong",
    "A.1.covariance-compact": "wrong",
    "A.1.mean": "wrong",
    "A.2.cross": "typo",
    "A.2.weight-mean": "wrong",
    "B.1.activation": "typo",
    "B.1.curvature": "correct",
    "B.1.hessian-xw": "typo",
    "B.2.hessian-xv": "correct",
    "B.3.gradient-x": "wrong",
    "B.3.hessian-xx": "wrong",
    "B.3.hessian-xv": "wrong",
    "5.2.mean-square": "undecided",
}


def test_every_verdict_is_the_recorded_one(results: Results) -> None:
    assert [r.equation.id for r in results if not r.agrees] == []
    assert checking.agree(results)
    assert set(checking.recorded_verdicts()) == {equation.id for equation in EQUATIONS}


def test_verdicts_found_by_hand(results: Results) -> None:
    found = {r.equation.id: r.judgement.verdict.value for r in results}
    assert {i: found[i] for i in BY_HAND} == BY_HAND


def test_faults_come_with_correction_and_counterexample(results: Results) -> None:
    for result in results:
        judgement = result.judgement
        if judgement.verdict in (Verdict.WRONG, Verdict.TYPO):
            assert judgement.correction is not None, result.equation.id
        if judgement.verdict in (Verdict.WRONG, Verdict.TYPO, Verdict.UNDEFINED):
            example = judgement.counterexample
            assert example is not None and example.printed and example.printed != example.derived, result.equation.id
        if judgement.verdict is Verdict.CONVENTION:
            assert judgement.convention and judgement.counterexample is not None, result.equation.id


def test_corrections_are_not_given_to_formulas_that_need_none(results: Results) -> None:
    for result in results:
        if result.judgement.verdict in (Verdict.CORRECT, Verdict.DEFINITION):
            derivation = DERIVATIONS[result.equation.id]
            assert isinstance(derivation, Derivation) and derivation.correction is None, result.equation.id


def test_radial_counterexample_is_off_by_two(results: Results) -> None:
    (result,) = [r for r in results if r.equation.id == "B.3.gradient-x"]
    assert result.judgement.counterexample is not None
    ratio = float(result.judgement.counterexample.derived) / float(result.judgement.counterexample.printed)
    assert ratio == pytest.approx(2.0, rel=1e-5)


def test_missing_constants_are_named(results: Results) -> None:
    found = {r.equation.id: r.judgement.counterexample for r in results}
    settings = {i: found[i].printed for i in ("6.1.setting", "6.2.setting", "6.3.setting")}  # type: ignore[union-attr]
    assert settings == {
        "6.1.setting": "not supplied: x0 (first state)",
        "6.2.setting": "not supplied: Sigma0 (covariance of the first state), lengthscale (of the kernel),"
        " tau (weight of the bonus), x0 (first state)",
        "6.3.setting": "not supplied: Sigma0 (covariance of the first state), U (control cost), prior_v (of v),"
        " prior_w (of w), x0 (first state)",
    }


def test_appendix_a_is_checked_for_all_sizes(results: Results) -> None:
    for result in results:
        if result.equation.id in ("A.2.gram-compact", "A.2.gram", "A.2.weight-covariance", "A.1.gram"):
            assert result.judgement.cases == 15
            assert result.judgement.worst_error < 1e-10


def test_appendix_b_is_checked_for_a_generic_index() -> None:
    for equation in EQUATIONS:
        if equation.section.startswith("B") and ("gradient" in equation.id or "hessian" in equation.id):
            derivation = DERIVATIONS[equation.id]
            assert isinstance(derivation, Derivation)
            assert [case for case in derivation.cases() if "symdual.derive" in case.where], equation.id


# ------------------------------------------------------------------ the judge itself


def _equation(machine: str, introduces: str = "", restated: tuple[Restated, ...] = ()) -> Equation:
    return Equation("9.test", "test", 1, "x", machine, introduces=introduces, restated=restated)


def _derivation(symbols: dict[str, object], expected: object) -> Derivation:
    return Derivation("by hand", lambda: iter([Case("here", symbols, expected)]))


@pytest.mark.parametrize(
    ("machine", "introduces", "expected", "verdict"),
    [
        ("a + 1", "", 3.0, "correct"),
        ("a - 1", "", 3.0, "wrong"),
        ("a + b", "", 3.0, "wrong"),
        ("(a + 1", "", 3.0, "typo"),
        ("a", "c", Form(1, 1), "definition"),
        ("a", "c", Form(2, 1), "wrong"),
        ("a", "c", Meant(2.0), "definition"),
        ("a", "c", Meant(5.0), "wrong"),
        ("a", "", Form(1, 1), "undecided"),
        ("a", "known", Form(1, 1), "undefined"),
        ("[a, 3.0]", "", Single(), "undefined"),
        ("[(0, 1, 'p'), (2, 3, 'q')]", "r", Coverage(0, 3), "definition"),
        ("[(0, 2, 'p'), (2, 3, 'q')]", "r", Coverage(0, 3), "undefined"),
        ("[(0, 1, 'p'), (3, 3, 'q')]", "r", Coverage(0, 3), "undefined"),
        ("[(0, 1, 'p'), (2, 4, 'q')]", "r", Coverage(0, 3), "wrong"),
        ("dict(a=1)", "", Supplies(frozenset({"a", "b"})), "undefined"),
        ("span(1, 3)", "", frozenset({1, 2, 3}), "correct"),
        ("span(1, 2)", "", frozenset({1, 2, 3}), "wrong"),
    ],
)
def test_judge(machine: str, introduces: str, expected: object, verdict: str) -> None:
    found = judge(_equation(machine, introduces), _derivation({"a": 2.0}, expected), frozenset({"known"}))
    assert found.verdict.value == verdict


def test_a_right_form_elsewhere_makes_it_a_typo() -> None:
    derivation = _derivation({"a": 2.0}, 3.0)
    assert judge(_equation("a - 1", restated=(Restated(5, "a + 1"),)), derivation, frozenset()).verdict == "typo"
    assert judge(_equation("a - 1", restated=(Restated(5, "a + 2"),)), derivation, frozenset()).verdict == "wrong"


def test_without_a_derivation_it_is_undecided() -> None:
    assert judge(_equation("a"), None, frozenset()).verdict is Verdict.UNDECIDED


# ------------------------------------------------------------------ reports and bad input


def test_json_holds_everything(results: Results) -> None:
    content = json.loads(checking.to_json(results))
    assert content["agrees"] is True
    assert len(content["formulas"]) == len(EQUATIONS) == sum(content["counts"].values())
    entry = next(e for e in content["formulas"] if e["id"] == "B.3.gradient-x")
    assert entry["verdict"] == "wrong" and entry["correction"]["reason"] and entry["counterexample"]["values"]


def test_table_shows_every_id(results: Results) -> None:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(checking.table(results))
    text = console.export_text()
    console.file.close()
    assert all(equation.id in text for equation in EQUATIONS)


def test_errata_document_is_up_to_date(results: Results) -> None:
    path = Path(__file__).parents[2] / "docs" / "errata.md"
    assert path.read_text(encoding="utf-8") == checking.errata(results)


def test_a_changed_verdict_is_reported() -> None:
    (result,) = checking.run("B.1.slope")
    changed = Result(result.equation, result.judgement, "wrong", 0.0)
    assert not checking.agree([changed])
    assert "1 not as recorded: B.1.slope" in checking.summary([changed])


def test_only_takes_an_id_or_a_section() -> None:
    assert [r.equation.id for r in checking.run("B.1.slope")] == ["B.1.slope"]
    assert {r.equation.section for r in checking.run("6.4")} == {"6.4"}


def test_symbols_defined_before_the_chosen_formula_still_count() -> None:
    (result,) = checking.run("B.2.normalisation")
    assert result.agrees


def test_unknown_id_names_the_closest() -> None:
    with pytest.raises(SymdualError, match=r'no formula .*"B\.3\.gradientx"; the closest are B\.3\.gradient-x'):
        checking.run("B.3.gradientx")
    with pytest.raises(SymdualError, match=r"4\.1\.riccati"):
        checking.run("riccati")
    with pytest.raises(SymdualError, match="no formula of the paper has the id"):
        checking.run("qqqqqqqq")


def test_unwritable_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SymdualError, match=r"cannot write .*missing"):
        checking.save(tmp_path / "missing" / "out.json", "{}")
    with pytest.raises(SymdualError, match="cannot write"):
        checking.save(tmp_path, "{}")


def test_progress_counts_to_the_end() -> None:
    seen: list[tuple[int, int, str]] = []
    checking.run("6.4", lambda done, of, name: seen.append((done, of, name)))
    assert [done for done, _, _ in seen] == list(range(len(seen)))
    assert seen[-1][0] == seen[-1][1] and seen[-1][2] == ""
