"""`symdual paper run` on the toy: the table's arithmetic, words, sweeps, figures, page, and bad input."""

from __future__ import annotations

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

import symdual
from symdual.commands import main
from symdual.common.errors import SymdualError
from symdual.paper import checking
from symdual.paper.experiments import captions, command, extra, timing, words
from symdual.paper.experiments import crew as crew_module
from symdual.paper.experiments.crew import Crew
from symdual.paper.experiments.curves import cost_curve, exact_curve, sampled_costs, with_prior
from symdual.paper.experiments.figures import density, flow
from symdual.paper.experiments.figures import toy as toy_module
from symdual.paper.experiments.figures.style import LOOKS
from symdual.paper.experiments.outcome import outcome_json
from symdual.paper.experiments.page import render
from symdual.paper.experiments.plan import CE, COMMON_ASSUMPTIONS, DUAL, EXPERIMENTS, MODELS, PUBLISHED
from symdual.paper.experiments.run import Job, Recorded, Runner
from symdual.paper.experiments.table import Table, as_json, estimate, nees, table
from symdual.runtime import sweep, threads
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem

if TYPE_CHECKING:
    from tests.conftest import Browser

TOY = EXPERIMENTS[0]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory, toy_package: LoadedPackage) -> command.Written:
    """The toy, six runs, both truths: generated, compiled, run, drawn and written once."""
    folder = tmp_path_factory.mktemp("paper")
    (folder / "generated").symlink_to(toy_package.folder.parent)  # where other tests may have compiled it already
    return command.execute(command.request((1,), 6, 0, None, folder, quick=True))


@pytest.fixture(scope="session")
def toy(written: command.Written) -> Problem:
    return symdual.problem(symdual.load(written.outcome.request.folder / "generated" / "toy"))


def fabricated(costs: dict[str, list[float]]) -> dict[str, Recorded]:
    """Runs of the toy whose costs are these; a NaN is a run that failed."""
    result = {}
    for key, values in costs.items():
        runs = len(values)
        empty, ones = np.zeros((runs, 3, 2)), np.ones((runs, 3))
        step_costs = np.zeros((runs, 3))
        step_costs[:, 0] = np.nan_to_num(values)
        result[key] = Recorded(
            states=empty[:, :, :1],
            inputs=empty[:, :2, :1],
            means=empty + np.array([0.0, 1.0]),
            variances=empty + np.array([0.0, 0.25]),
            step_costs=step_costs,
            nis=ones,
            measured=ones,
            costs=np.array(values),
            nees_parameters=np.full(runs, np.nan),
            outcomes=np.isnan(values).astype(np.int64),
            truths=np.full((runs, 1), 2.0),
        )
    return result


PAIRS = {key: [1.0, 1.0] for key in ("oracle", "cautious", "beb", "exact")}


def toy_table(toy: Problem, **costs: list[float]) -> Table:
    given: dict[str, list[float]] = {arm.key: [1.0, 2.0, 3.0] for arm in TOY.arms}
    return table(TOY, "paper", toy.package, fabricated(given | costs))


# ------------------------------------------------------------ arithmetic


def test_estimate_is_mean_deviation_and_error_of_what_is_there() -> None:
    found = estimate(np.array([1.0, 2.0, np.nan, 6.0]))
    assert (found.mean, found.runs) == (3.0, 3)
    assert found.std == pytest.approx(math.sqrt((4 + 1 + 9) / 2))
    assert found.error == pytest.approx(found.std / math.sqrt(3))
    assert math.isnan(estimate(np.array([1.0])).std)


def test_costs_are_divided_by_the_steps_and_compared_run_by_run(toy: Problem) -> None:
    """Two steps: costs 2, 4, 6 against 2, 8, 14 are 0, -2, -4 apart a step."""
    found = toy_table(toy, dual=[2.0, 4.0, 6.0], ce=[2.0, 8.0, 14.0]).line("dual")
    assert found.cost.mean == 2.0
    assert found.difference is not None
    assert (found.difference.mean, found.difference.std) == (-2.0, 2.0)
    assert found.difference.error == pytest.approx(2.0 / math.sqrt(3.0))
    assert found.published == PUBLISHED[1]["dual"]


def test_a_failed_run_is_counted_and_left_out_of_both_sides(toy: Problem) -> None:
    found = toy_table(toy, dual=[2.0, math.nan, 6.0], ce=[2.0, 8.0, 14.0])
    line = found.line("dual")
    assert (line.failed, line.cost.mean, line.cost.runs) == (1, 2.0, 2)
    assert line.difference is not None and line.difference.mean == -2.0
    assert any("1 of 3 runs of dual did not finish" in text for text in words.about_beliefs(found))
    assert json.loads(json.dumps(as_json(found), allow_nan=False))["lines"][4]["failed"] == 1


def test_nees_is_the_recorded_one_or_made_of_variances(toy: Problem) -> None:
    """Truth 2, mean 1, variance 1/4: a squared error of four believed units."""
    own = fabricated({"dual": [1.0, 1.0]})["dual"]
    assert nees(TOY, "paper", toy.package, own) == (4.0, 4.0)
    assert nees(TOY, "prior", toy.package, own) is None
    assert nees(replace(TOY, parameters={}), "paper", toy.package, own) is None
    recorded = own._replace(nees_parameters=np.array([1.0, 3.0]))
    assert nees(TOY, "paper", toy.package, recorded) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("values", "sign"),
    [
        ([1.0, 1.1, 0.9, 1.0], 1),
        ([-1.0, -1.1, -0.9, -1.0], -1),
        ([1.0, -0.9, 1.2, -1.1], 0),
        ([1.0, 1.4], 0),  # two runs: 12 standard errors of the mean would be little
        ([1.0], 0),
        ([0.0, 0.0, 0.0], 0),
    ],
)
def test_a_sign_is_claimed_only_beyond_chance(values: list[float], sign: int) -> None:
    assert estimate(np.array(values)).sign == sign


def test_chance_alone_is_hardly_ever_taken_for_a_difference() -> None:
    """0.27 % of 4000 batches without any difference would be 11."""
    draws = np.random.default_rng(0).standard_normal((4000, 8))
    assert sum(estimate(batch).sign != 0 for batch in draws) <= 25


def test_the_error_of_a_spread_is_that_of_many_samples(toy: Problem) -> None:
    """log of the deviation of n normal numbers has a deviation of 1 / sqrt(2 (n - 1))."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        costs = {key: (2.0 * rng.standard_normal(80)).tolist() for key in ("ce", "dual")}
        filled = {arm.key: [1.0] * 80 for arm in TOY.arms} | costs
        found.append(table(TOY, "paper", toy.package, fabricated(filled)).spread("dual", "ce"))
    expected = math.sqrt(2.0 / (2.0 * 79.0))
    assert np.std([one.mean for one in found]) == pytest.approx(expected, rel=0.15)
    assert np.mean([one.error for one in found]) == pytest.approx(expected, rel=0.1)


# ------------------------------------------------------------ words


def noisy(mean: float, runs: int = 60, spread: float = 0.02) -> list[float]:
    """Costs whose mean a step is `mean` (the toy has two steps), with the same random draws for everybody."""
    noise_draws = spread * np.random.default_rng(2).standard_normal(runs)
    return (2.0 * mean + noise_draws - noise_draws.mean()).tolist()


def many(toy: Problem, **means: float) -> Table:
    own = {arm.key: noisy(means.get(arm.key, 1.0)) for arm in TOY.arms}
    wobble = {key: 0.01 * np.cos(np.arange(60.0) * (3 + i)) for i, key in enumerate(own)}
    costs = {key: (np.array(own[key]) + wobble[key] - wobble[key].mean()).tolist() for key in own}
    return table(TOY, "paper", toy.package, fabricated(costs))


def test_words_name_what_is_and_what_is_not_reproduced(toy: Problem) -> None:
    near = many(toy, **{key: mean for key, (mean, _) in PUBLISHED[1].items()})
    texts = words.against_paper(near)
    assert any("cannot be told from the paper's: oracle 0.67" in text for text in texts)
    assert not any("by more than chance" in text for text in texts)
    assert any("oracle < dual < ce < beb comes out, every step beyond chance" in text for text in texts)
    far = many(toy, oracle=0.67, ce=0.84, beb=0.99, dual=10.25)
    texts = words.against_paper(far)
    assert any("by more than chance: dual 10.25 (paper 0.77)" in text for text in texts)
    assert any("shown are oracle < dual" in text and "reversed are dual < ce" in text for text in texts)


def test_nothing_is_said_of_an_order_that_few_runs_cannot_carry(toy: Problem) -> None:
    few = toy_table(toy, oracle=[1.0, 2.1, 2.9], dual=[1.2, 1.9, 3.2], ce=[1.1, 2.2, 3.3], beb=[1.4, 2.1, 3.4])
    (text,) = words._orders(few)
    assert "3 runs leave open oracle < dual" in text and "shown" not in text and "reversed" not in text
    assert words._order(few).word == "open"
    assert "cannot be told apart" in words._spread(few)[0]


def test_a_column_that_no_unit_explains_is_said_so(toy: Problem) -> None:
    texts = words._scale(many(toy, oracle=0.01, ce=0.01, beb=0.01, dual=0.01))
    assert "neither unit fits" in texts[0] and "The paper's means are 67" in texts[0]
    assert words._scale(many(toy, oracle=0.6, ce=0.8, beb=0.9, dual=0.7)) == []


def test_words_on_dual_and_ce_follow_the_paired_error(toy: Problem) -> None:
    assert "Dual is below ce by 0.5 a step" in words.against_ce(many(toy, dual=0.5))[0]
    assert "Dual is above ce by 0.5 a step" in words.against_ce(many(toy, dual=1.5))[0]
    assert "cannot be told apart" in words.against_ce(toy_table(toy, dual=[1.0, 5.0, 2.0]))[0]
    beaten = many(toy, dual=1.0, ce=1.2, cautious=0.8)
    assert any("Better than dual here by more than chance: cautious" in text for text in words.against_ce(beaten))


def test_a_claim_is_shown_refuted_or_open(toy: Problem) -> None:
    assert words._below_ce(many(toy, dual=0.5)).holds is True
    assert words._below_ce(many(toy, dual=1.5)).holds is False
    assert words._below_ce(toy_table(toy, dual=[1.0, 2.0, 5.9], ce=[2.0, 3.0, 4.0])).holds is None
    assert words._order(many(toy, oracle=0.1, dual=0.2, ce=0.3, beb=0.4)).word == "yes"
    assert words._order(many(toy, oracle=0.1, dual=0.4, ce=0.3, beb=0.4)).word == "no"


def test_shares_are_compared_by_a_sign_test() -> None:
    yes, no = np.ones(20, dtype=bool), np.zeros(20, dtype=bool)
    assert words._more_often(yes, no) == 1 and words._more_often(no, yes) == -1
    assert words._more_often(yes[:8], no[:8]) == 0  # 8 of 8 happen by chance once in 256


def test_the_unit_of_the_costs_is_the_one_that_the_paper_check_allows() -> None:
    """ "more than 22" stands in words; it is computed from the printed lines."""
    (result,) = checking.run("6.5.costs")
    assert result.judgement.counterexample is not None
    bound = float(result.judgement.counterexample.derived.rsplit(" ", 1)[1])
    assert bound > 22.0 > PUBLISHED[2]["oracle"][0] and bound / 20.0 < PUBLISHED[2]["oracle"][0]
    assert any("more than 22 on that scale" in text for text in COMMON_ASSUMPTIONS)


def test_captions_say_what_the_runs_are() -> None:
    rng = np.random.default_rng(3)
    own = {}
    for key, size in (("ce", 0.1), ("beb", 2.0), ("dual", 1.0)):
        states = np.zeros((12, 21, 2))
        states[:, 6, 0] = 10.0 * size
        inputs = size * np.ones((12, 20, 1))
        steps = size + 0.01 * rng.standard_normal((12, 21))
        blank = np.zeros((12, 21, 4)) + 0.25
        runs = np.zeros(12)
        own[key] = Recorded(
            states, inputs, blank, blank, steps, steps, steps, runs, runs, runs.astype(np.int64), blank[:, 0]
        )
    text = captions.of_schedule(own)
    assert "1 (dual) and 0.1 (ce)" in text and "ce 1, beb 20, dual 10" in text
    assert "dual above ce" in text and "dual below beb" in text
    same = captions.of_schedule({**own, "dual": own["ce"]})
    assert "dual not told from ce" in same
    assert "ce 0 %, beb 100 %, dual 100 %" in captions.of_relevance(own)
    assert "dual 0.50 to 0.50" in captions.of_beliefs(own, 0)


def test_dual_on_the_toy_is_close_to_exact(toy: Problem) -> None:
    assert [item.holds for item in words.toy_expectations(toy)] == [True, True]


def test_one_sentence_says_what_is_saved_in_percent_of_ce(toy: Problem) -> None:
    """Costs a step: ce 2 and 4, dual 1 and 2, so 1 and 2 are saved: half, with an error of 0.5 in 3."""
    prior = replace(toy_table(toy, ce=[4.0, 8.0], dual=[2.0, 4.0], **PAIRS), truth="prior")
    other = toy_table(toy, ce=[4.0, 8.0], dual=[8.0, 16.0], **PAIRS)
    said = words.in_one_sentence({(1, "paper"): other, (1, "prior"): prior})
    assert "saves 50 ± 17 % in Exp 1 of the cost (2 runs, truths drawn from the prior)" in said
    assert "saves \N{MINUS SIGN}100 ± 33 %" in words.in_one_sentence({(1, "paper"): other})


# ------------------------------------------------------------ costs


def test_certainty_equivalent_curve_is_its_formula(toy: Problem) -> None:
    """b = 1: after x1 = 1 + u the best second input leaves x1^2 / 2."""
    u = np.linspace(-2.0, 1.0, 7)
    assert cost_curve(toy, "ce", u) == pytest.approx(1.0 + u**2 + 1.5 * (1.0 + u) ** 2, rel=1e-12)
    spread = 10.0 * 0.1 / (10.0 * u**2 + 0.1)
    assert cost_curve(toy, "beb", u) == pytest.approx(cost_curve(toy, "ce", u) + 0.1 * spread, rel=1e-9)


def test_the_mean_of_sampled_costs_is_the_exact_cost(toy: Problem) -> None:
    u = np.array([-0.6, -0.15, 0.0, 0.3])
    sampled = sampled_costs(toy, u, 40_000, seed=1)
    error = sampled.costs.std(axis=0) / math.sqrt(len(sampled.costs))
    assert np.all(np.abs(sampled.costs.mean(axis=0) - exact_curve(toy, u)) < 4.0 * error)


def test_regret_is_never_negative_and_vanishes_with_the_uncertainty(toy: Problem) -> None:
    wide = extra.regret(with_prior(toy, 1.0, 10.0, 2), ("ce", "cautious", "dual"))
    assert wide["ce"] > 0.3 and 0.0 <= wide["dual"] < 0.01
    narrow = extra.regret(with_prior(toy, 1.0, 1e-6, 2), ("ce", "dual"))
    assert all(abs(value) < 1e-5 for value in narrow.values())


# ------------------------------------------------------------ sweeps


def counted(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[str]:
    """Note whose chunks are really computed, and press Ctrl-C after some of them."""
    calls: list[str] = []
    compute = sweep.Sweep.payloads

    def counting(self: sweep.Sweep, chunks: Any, noise_draws: Any) -> Any:
        if len(chunks) > 1 or chunks[0].stop - chunks[0].start > 1:  # not the one run that compiles
            if stop_after is not None and len(calls) == stop_after:
                raise KeyboardInterrupt
            calls.append(chunks[0].controller)
        return compute(self, chunks, noise_draws)

    monkeypatch.setattr(sweep.Sweep, "payloads", counting)
    monkeypatch.setattr(threads, "_BYTES", 1)  # one chunk at a time
    return calls


def test_an_interrupted_run_goes_on_where_it_stopped(
    toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job("exp1", "prior", arm, toy) for arm in (CE, DUAL)]
    whole = Runner(tmp_path / "a", 3).run(jobs, 40)
    with monkeypatch.context() as patch:
        patch.setattr(threads.Background, "call", lambda self, function, *arguments: function(*arguments))
        counted(patch, stop_after=2)
        with pytest.raises(KeyboardInterrupt):
            Runner(tmp_path / "b", 3).run(jobs, 40)
    calls = counted(monkeypatch)
    resumed = Runner(tmp_path / "b", 3, resume=True).run(jobs, 40)
    assert 0 < len(calls) <= 4  # of six chunks two were done
    for one, other in zip(whole, resumed, strict=True):
        assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(one, other, strict=True))


def test_what_has_run_once_is_not_run_again_and_more_controllers_join(
    toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    runner = Runner(tmp_path, 0)
    (ce,) = runner.run([Job("exp1", "paper", CE, toy)], 2)
    again, dual = runner.run([Job("exp1", "paper", arm, toy) for arm in (CE, DUAL)], 2)
    assert calls == ["ce", "dual"] and np.array_equal(ce.states, again.states)
    runner.run([Job("exp1", "paper", DUAL, toy)], 2)
    assert calls == ["ce", "dual"] and not np.array_equal(ce.inputs, dual.inputs)


def test_arms_with_constants_of_their_own_meet_the_same_draws(toy: Problem, tmp_path: Path) -> None:
    half = extra.WEIGHTS[1]
    one, other = Runner(tmp_path, 0).run([Job("exp1", "prior", arm, toy) for arm in (DUAL, half)], 4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["exp1-prior", f"exp1-prior-{half.key}"]
    assert np.array_equal(one.truths, other.truths) and not np.array_equal(one.inputs, other.inputs)


def test_without_resume_an_interrupted_run_is_not_thrown_away(
    toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [Job("exp1", "paper", CE, toy)]
    with monkeypatch.context() as patch:
        patch.setattr(threads.Background, "call", lambda self, function, *arguments: function(*arguments))
        counted(patch, stop_after=1)
        with pytest.raises(KeyboardInterrupt):
            Runner(tmp_path, 3).run(jobs, 40)
    with pytest.raises(SymdualError, match="continue with --resume"):
        Runner(tmp_path, 3).run(jobs, 40)


def test_more_runs_begin_with_the_same_runs(toy: Problem, tmp_path: Path) -> None:
    job = Job("exp1", "prior", DUAL, toy)
    (many,), (few,) = Runner(tmp_path / "many", 0).run([job], 7), Runner(tmp_path / "few", 0).run([job], 3)
    assert np.array_equal(many.first(3).states, few.states)
    assert not np.array_equal(many.states[0], many.states[1])


# ------------------------------------------------------------ the command


@pytest.mark.parametrize("resume", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_json_has_the_same_bytes_again_and_after_resuming(
    written: command.Written, tmp_path: Path, resume: bool
) -> None:
    first = json.dumps(outcome_json(written.outcome), allow_nan=False)
    again = command.execute(replace(written.outcome.request, resume=resume), tmp_path / "page.html")
    assert json.dumps(outcome_json(again.outcome), allow_nan=False) == first
    assert [p.svg for p in again.outcome.pictures] == [p.svg for p in written.outcome.pictures]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--experiment", "5"), "there is no experiment 5; known: 1, 2, 3, 4"),
        (("--runs", "0"), "runs must be at least 1, not 0"),
        (("--seed", "-1"), "seed must not be negative"),
        (("--truth", "guess"), 'there is no truth "guess"; known: paper, prior'),
        (("-o", "occupied"), "cannot write to the folder"),
        (("--html", "missing/page.html"), "cannot write missing/page.html"),
        (("--json", "missing/file.json"), "cannot write missing/file.json"),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "occupied").write_text("a file")
    result = CliRunner().invoke(main, ["paper", "run", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr and result.stderr.count("\n") == 1 and "Traceback" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["occupied"]


def test_the_command_prints_the_table_and_says_where_the_page_is(written: command.Written, tmp_path: Path) -> None:
    folder = written.outcome.request.folder
    arguments = [
        "--experiment",
        "1",
        "--runs",
        "2",
        "--quick",
        "--truth",
        "paper",
        "--json",
        str(tmp_path / "out.json"),
    ]
    result = CliRunner().invoke(
        main, ["paper", "run", *arguments, "-o", str(folder), "--html", str(tmp_path / "p.html")]
    )
    assert result.exit_code == 0, result.output
    assert "0.77/0.43" in result.output and "minus ce" in result.output and "Time:" in result.output
    assert (tmp_path / "p.html").is_file()
    content = json.loads((tmp_path / "out.json").read_text())
    assert (content["runs"], content["truths"]) == (2, ["paper"])
    assert [line["controller"] for line in content["tables"][0]["lines"]] == [arm.key for arm in TOY.arms]


def test_the_demo_ends_with_what_came_out_where_it_is_and_what_to_type_next(
    written: command.Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "execute", lambda *arguments: written)
    result = CliRunner().invoke(main, ["demo", "--json", "out.json"])
    assert result.exit_code == 0, result.output
    sentence, page, further = result.output.splitlines()[-3:]
    assert sentence == words.in_one_sentence(written.outcome.tables)
    assert str(written.page) in page and further.startswith("Next: symdual new")
    assert json.loads(Path("out.json").read_text())["runs"] == 6


# ------------------------------------------------------------ processes side by side


def test_what_a_process_says_is_heard_and_what_it_raises_is_raised() -> None:
    heard: list[tuple[Any, ...]] = []
    with Crew(lambda *said: heard.append(said), lambda sentence: heard.append((sentence,))) as crew:
        (call,) = crew.finished([crew.call(crew_module.report, "here", "working", 0.5)])
        list(crew.finished([crew.call(crew_module.tell, "A sentence.")]))
        assert call.result() is None
        with pytest.raises(SymdualError, match="there is no controller"):
            list(crew.finished([crew.call(refuse)]))
    assert heard == [("here", "working", 0.5), ("A sentence.",)]


def refuse() -> None:
    raise SymdualError("there is no controller")


def test_a_process_that_is_killed_is_one_sentence() -> None:
    with Crew(lambda *said: None, print) as crew, pytest.raises(SymdualError, match="ended from outside"):
        list(crew.finished([crew.call(os._exit, 9)]))


# ------------------------------------------------------------ figures and page


def test_figures_lie_there_and_are_not_empty(written: command.Written) -> None:
    assert [item.name for item in written.outcome.pictures] == ["gains", "fig1-toy"]
    for item in written.outcome.pictures:
        root = ElementTree.fromstring((written.figures / f"{item.name}.svg").read_bytes())
        assert sum(node.tag.endswith("path") for node in root.iter()) > 30


def test_the_boxes_of_the_flow_add_up_to_the_decision(toy: Problem) -> None:
    boxes = timing.measure(toy)
    inner = boxes.nominal + boxes.cost_to_go + boxes.search
    assert boxes.decision == pytest.approx(boxes.certain + boxes.candidates * inner)
    assert min(boxes) >= 0.0 and boxes.candidates > 1


def test_what_the_flow_prints_adds_up() -> None:
    for search in (0.0, 0.317):
        loop = (2.279, 8.265, search)
        boxes = timing.Boxes(22.386, *loop, 0.8, 8.4, 22.386 + 76 * sum(loop), 76)
        said = flow.flow_figure(boxes).explanation
        printed = re.search(r"search: (.*) = (.*) µs, of which", said)
        assert printed is not None
        total = eval(printed[1].replace(" µs", "").replace("\N{MULTIPLICATION SIGN}", "*"))
        assert total == pytest.approx(float(printed[2]), rel=2e-3)


def test_the_caption_of_the_toy_says_which_curves_have_a_bump() -> None:
    u = np.linspace(-1.4, 1.4, 561)
    hill = 1.0 / (1.0 + 100.0 * u**2)
    curves = {"ce": (u + 0.5) ** 2, "beb": (u + 0.5) ** 2 + hill, "dual": u**2 + hill, "cautious": 3.0 * u**2}
    said = toy_module._bumps(u, curves)
    assert said == "With a bump at zero, where nothing is learned: beb, dual; without: ce, cautious."
    assert toy_module._bumps(u, {"dual": u**2}).endswith("learned: none; without: dual.")


def test_a_density_has_the_mass_of_its_runs_where_they_are() -> None:
    paths = np.stack([np.linspace(0.0, height, 5) for height in (-4.0, -4.0, 4.0)])
    found = density.density(paths, (-10.0, 10.0))
    places = np.linspace(-10.0, 10.0, density.CELLS)
    mass = found.sum(axis=0) * (places[1] - places[0])
    assert mass == pytest.approx(1.0, abs=1e-6)
    last = found[:, -1]
    assert last[places < 0].sum() == pytest.approx(2.0 * last[places > 0].sum(), rel=1e-6)
    assert abs(places[int(np.argmax(last))] + 4.0) < 0.1


def test_controllers_differ_in_line_and_lightness_not_only_in_colour() -> None:
    assert len({str(look.line) for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.marker for look in LOOKS.values()}) == len(LOOKS)


def test_the_page_has_everything_and_needs_nothing(written: command.Written) -> None:
    text = written.page.read_text(encoding="utf-8")
    assert text == render(written.outcome)
    for words_there in (
        "0.77 / 0.43",
        "Truth drawn from the prior",
        "Assumed here",
        "x0 = 1",
        "Fig. 1",
        "Time on this",
        "What came out",
    ):
        assert words_there in text
    assert "<script" not in text and "http://" not in text.replace("http://www.w3.org", "") and "https://" not in text
    assert text.count("data:image/svg+xml;base64,") == len(written.outcome.pictures)


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_opens_cleanly(browser: Browser, written: command.Written, width: int) -> None:
    browser.open(written.page, width)
    assert browser.console() == []
    assert browser.overflow() <= 0
    pictures = browser.run("return [...document.images].map(i => [i.complete, i.naturalWidth, i.width])")
    assert len(pictures) == len(written.outcome.pictures)
    assert all(done and natural > 100 and shown > 300 for done, natural, shown in pictures)


# ------------------------------------------------------------ models and data


def test_another_lengthscale_has_the_frequencies_that_a_new_model_would_have(tmp_path: Path) -> None:
    text = (MODELS / "schedule.py").read_text()
    assert "lengthscale=7.0" in text
    (tmp_path / "schedule.py").write_text(text.replace("lengthscale=7.0", "lengthscale=3.0"))
    symdual.generate(MODELS / "schedule.py", tmp_path / "seven")
    symdual.generate(tmp_path / "schedule.py", tmp_path / "three")
    seven = symdual.problem(symdual.load(tmp_path / "seven" / "schedule"))
    three = symdual.problem(symdual.load(tmp_path / "three" / "schedule"))
    changed = extra.with_lengthscale(seven, 3.0)
    assert changed.package.numbers["data"] == pytest.approx(three.package.numbers["data"], rel=1e-10)
    assert not np.allclose(changed.package.numbers["data"], seven.package.numbers["data"])


def test_the_classic_plant_is_the_one_of_1973() -> None:
    from symdual.spec.loading import load_model_file

    contents = load_model_file(MODELS / "tse_bar_shalom.py")
    (model,), (scenario,) = contents.models.values(), contents.scenarios.values()
    numbers = dict(zip(model.unknowns, (1.8, -1.01, 0.58, 0.3, 0.5, 1.0), strict=True))
    states, inputs = list(model.states), list(model.inputs)
    step = np.array([[float(f.diff(s).subs(numbers)) for s in states] for f in model.dynamics])
    gain = [float(f.diff(inputs[0]).subs(numbers)) for f in model.dynamics]
    assert np.array_equal(step, [[0, 1, 0], [0, 0, 1], [1.8, -1.01, 0.58]]) and gain == [0.3, 0.5, 1.0]
    assert scenario.prior_mean.tolist() == [1.0, -0.6, 0.3, 0.1, 0.7, 1.5]
    assert np.diag(scenario.prior_covariance).tolist() == [0.1, 0.1, 0.01, 0.01, 0.01, 0.1]
    assert np.count_nonzero(scenario.state_cost) == 1 and scenario.state_cost[20, 2, 2] == 1.0
    assert scenario.reference[20, 2] == 20.0 and np.all(scenario.input_cost == 1e-3)
    assert np.array_equal(scenario.start_covariance, np.eye(3)) and list(model.observation) == [states[2]]
