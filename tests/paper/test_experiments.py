"""`symdual paper run` on the toy: the table's arithmetic, chunks on disk, figures, page, and bad input."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import matplotlib.image
import numba
import numpy as np
import pytest
from click.testing import CliRunner

import symdual
from symdual.commands import main
from symdual.paper.experiments import command, extra, run, words
from symdual.paper.experiments.curves import cost_curve, exact_curve, sampled_costs, with_prior
from symdual.paper.experiments.figures import density
from symdual.paper.experiments.figures.style import LOOKS
from symdual.paper.experiments.outcome import outcome_json
from symdual.paper.experiments.page import render
from symdual.paper.experiments.plan import CE, DUAL, EXPERIMENTS, MODELS, PUBLISHED
from symdual.paper.experiments.run import Job, Store, run_job
from symdual.paper.experiments.table import Table, as_json, estimate, nees, table
from symdual.runtime.closed_loop import Episodes
from symdual.runtime.problem import Problem

if TYPE_CHECKING:
    from tests.conftest import Browser

TOY = EXPERIMENTS[0]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> command.Written:
    """The toy, six runs, both truths: generated, compiled, run, drawn and written once."""
    folder = tmp_path_factory.mktemp("paper")
    return command.execute(command.request((1,), 6, 0, None, folder, quick=True), None, lambda what, fraction: None)


@pytest.fixture(scope="session")
def toy(written: command.Written) -> Problem:
    return symdual.problem(symdual.load(written.outcome.request.folder / "generated" / "toy"))


def fabricated(costs: dict[str, list[float]]) -> dict[str, Episodes]:
    """Episodes of the toy whose costs are these; a NaN is a run that failed."""
    result = {}
    for key, values in costs.items():
        runs = len(values)
        steps = np.zeros((runs, 3, 7))
        steps[:, 0, 0] = np.nan_to_num(values)
        steps[:, 1:, 3:5] = 1.0
        empty = np.zeros((runs, 3, 2))
        outcomes = np.isnan(values).astype(np.int64)
        covariances = np.repeat(np.diag([0.0, 0.25])[None], runs, axis=0)
        means = empty + np.array([0.0, 1.0])
        truths = np.full((runs, 1), 2.0)
        states, inputs, memories = empty[:, :, :1], empty[:, :2, :1], np.zeros((runs, 0))
        result[key] = Episodes(states, inputs, means, empty, covariances, steps, outcomes, truths, memories)
    return result


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


def test_nees_weighs_the_error_with_the_believed_covariance(toy: Problem) -> None:
    """Truth 2, mean 1, variance 1/4: a squared error of four believed units."""
    episodes = fabricated({"dual": [1.0, 1.0]})["dual"]
    assert nees(episodes, episodes.truths) == (4.0, 4.0)
    assert nees(episodes, None) is None
    two = episodes._replace(covariances=np.array([[[2.0, 1.0], [1.0, 2.0]]] * 2))
    assert nees(two, np.array([[1.0, 0.0]] * 2)) == pytest.approx((1.0, 1.0))  # error (1, -1), S^-1 = [2 -1; -1 2] / 3


# ------------------------------------------------------------ words


def test_words_name_what_is_and_what_is_not_reproduced(toy: Problem) -> None:
    near = {key: [2.0 * mean - std, 2.0 * mean, 2.0 * mean + std] for key, (mean, std) in PUBLISHED[1].items()}
    found = toy_table(toy, **near)
    texts = words.against_paper(found)
    assert any("within 2 standard errors of the paper's: oracle 0.67" in text for text in texts)
    assert not any("not reproduced" in text for text in texts)
    assert any("is the paper's: oracle < dual < ce < beb" in text for text in texts)
    far = toy_table(toy, **(near | {"dual": [20.0, 20.5, 21.0]}))
    texts = words.against_paper(far)
    assert any("not reproduced: dual 10.25 (paper 0.77)" in text for text in texts)
    assert any("is not the paper's: ours oracle < ce < beb < dual" in text for text in texts)


def test_words_on_dual_and_ce_follow_the_paired_error(toy: Problem) -> None:
    firm = toy_table(toy, dual=[1.0, 2.0, 3.02], ce=[2.0, 3.0, 4.0])
    assert "Dual is below ce by 0.497 a step" in words.against_ce(firm)[0]
    assert "cannot be told apart" in words.against_ce(toy_table(toy, dual=[1.0, 5.0, 2.0]))[0]
    beaten = toy_table(toy, dual=[3.0, 4.0, 5.01], cautious=[1.0, 2.0, 3.02])
    assert any("Better than dual" in text and "cautious" in text for text in words.against_ce(beaten))


def test_a_claim_on_paired_errors_can_fail(toy: Problem) -> None:
    firm = words._below_ce(toy_table(toy, dual=[1.0, 2.0, 3.02], ce=[2.0, 3.0, 4.0]))
    loose = words._below_ce(toy_table(toy, dual=[1.0, 2.0, 5.9], ce=[2.0, 3.0, 4.0]))
    assert firm.holds and not loose.holds


def test_dual_on_the_toy_is_close_to_exact(toy: Problem) -> None:
    assert [item.holds for item in words.toy_expectations(toy)] == [True, True]


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


# ------------------------------------------------------------ chunks on disk


def counted(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[int]:
    """Count the chunks that are really computed, and press Ctrl-C after some of them."""
    calls: list[int] = []
    compute = run.run_part

    def counting(task: Any, name: str, luck: Any, settings: Any) -> Episodes:
        if stop_after is not None and len(calls) == stop_after:
            raise KeyboardInterrupt
        calls.append(len(luck.starts))
        return compute(task, name, luck, settings)

    monkeypatch.setattr(run, "run_part", counting)
    monkeypatch.setattr(run, "CHUNK", 2)
    return calls


def test_an_interrupted_job_goes_on_where_it_stopped(
    toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job("exp1", "prior", DUAL, toy)
    with monkeypatch.context() as patch:
        whole = run_job(job, 5, 3, _store(tmp_path / "a"))
        counted(patch, stop_after=2)
        with pytest.raises(KeyboardInterrupt):
            run_job(job, 5, 3, _store(tmp_path / "b"))
    assert len(list((tmp_path / "b").iterdir())) == 2
    calls = counted(monkeypatch)
    resumed = run_job(job, 5, 3, _store(tmp_path / "b", resume=True))
    assert calls == [1]
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(whole, resumed, strict=True))


def test_damaged_and_foreign_chunks_are_computed_again(
    toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch)
    job, store = Job("exp1", "prior", DUAL, toy), _store(tmp_path, resume=True)
    first = run_job(job, 4, 3, store)
    assert calls == [2, 2]
    file = tmp_path / "exp1-prior-dual-2.npz"
    file.write_bytes(file.read_bytes()[:-40])
    again = run_job(job, 4, 3, store)
    assert calls == [2, 2, 2]
    assert np.array_equal(first.costs, again.costs)
    run_job(job, 4, 4, store)  # another seed
    run_job(job._replace(problem=replace(toy, dual_weight=0.5)), 4, 4, store)
    run_job(job._replace(truth="paper"), 2, 4, store)
    assert calls == [2] * 8


def test_without_resume_nothing_old_counts(toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    for _ in range(2):
        run_job(Job("exp1", "paper", CE, toy), 2, 0, _store(tmp_path))
    assert calls == [2, 2]


def test_more_runs_begin_with_the_same_runs_on_any_number_of_threads(toy: Problem, tmp_path: Path) -> None:
    job = Job("exp1", "prior", DUAL, toy)
    many = run_job(job, 7, 0, _store(tmp_path))
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    try:
        few = run_job(job, 3, 0, _store(tmp_path))
    finally:
        numba.set_num_threads(threads)
    assert np.array_equal(many.states[:3], few.states)
    assert not np.array_equal(many.states[0], many.states[1])


def _store(folder: Path, resume: bool = False) -> Store:
    store = Store(folder, resume)
    store.prepare()
    return store


# ------------------------------------------------------------ the command


def test_json_has_the_same_bytes_again_and_after_resuming(written: command.Written, tmp_path: Path) -> None:
    first = json.dumps(outcome_json(written.outcome), allow_nan=False)
    for resume in (True, False):
        again = command.execute(
            replace(written.outcome.request, resume=resume), tmp_path / "page.html", lambda what, fraction: None
        )
        assert json.dumps(outcome_json(again.outcome), allow_nan=False) == first
        assert [p.png for p in again.outcome.pictures] == [p.png for p in written.outcome.pictures]
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


# ------------------------------------------------------------ figures and page


def test_figures_lie_there_and_are_not_empty(written: command.Written) -> None:
    assert [item.name for item in written.outcome.pictures] == ["fig1-toy"]
    for item in written.outcome.pictures:
        assert (written.figures / f"{item.name}.png").read_bytes() == item.png
        shades = matplotlib.image.imread(io.BytesIO(item.png))[:, :, :3]
        assert shades.shape[1] > 1000 and 0.01 < float(np.mean(shades < 0.9)) < 0.6
        root = ElementTree.fromstring((written.figures / f"{item.name}.svg").read_bytes())
        assert sum(node.tag.endswith("path") for node in root.iter()) > 50


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
