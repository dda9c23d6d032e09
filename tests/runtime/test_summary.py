"""The summary of a sweep against numbers worked out by hand, and its figure and table."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from rich.console import Console

from symdual.common.errors import SymdualError
from symdual.report import figures
from symdual.report.figures import limits, sweep_figure
from symdual.report.palette import LOOKS
from symdual.report.sweeps import rows, summary_table
from symdual.runtime.result_fields import REASONS, normalised_errors
from symdual.runtime.results import FIELDS, FORMAT, Chunk, Description, Results, write_results
from symdual.runtime.summary import Summary, consistency, summarise

STEPS = 4
SIZES = {
    "time": STEPS + 1,
    "step": STEPS,
    "state": 1,
    "input": 1,
    "belief": 3,
    "parameter": 2,
    "process": 1,
    "loss": 3,
    "constraint": 0,
}
COSTS = {"reference": np.zeros((5, 1)), "state_cost": np.ones((5, 1, 1)), "input_cost": np.ones((4, 1, 1))}


def stored(path: Path, truth: str = "prior", **controllers: dict[str, Any]) -> Path:
    """A results file whose fields are given by controller; what is not given is ordinary."""
    runs = len(next(iter(controllers.values()))["costs"])
    identity = {
        "format": FORMAT,
        "model": "m",
        "plant": "m",
        "scenario": "s",
        "digests": {},
        "settings": {"truth": truth, "order": 1, "window": None, "length": None},
        "seed": 0,
        "horizon": STEPS,
        "names": {"states": ["x"], "inputs": ["u"], "measurements": ["x"], "unknowns": ["a", "b"]},
        "processes": {"g": {"memory": 12, "noise_floor": 1e-8}},
        "outcomes": list(REASONS),
        "versions": {},
    }
    description = Description(identity, tuple(controllers), runs, dict.fromkeys(controllers, SIZES))
    contents = {}
    for name, given in controllers.items():
        ordinary = {
            "outcomes": 0,
            "nis": 1.0,
            "measured": 1.0,
            "nees_state": 1.0,
            "nees_parameters": 1.0,
            "variances": 1.0,
        }
        arrays = {f.name: np.full(description.shape(name, f, runs), ordinary.get(f.name, 0.0)) for f in FIELDS}
        arrays |= {key: np.asarray(value) for key, value in given.items()}
        chunk = Chunk(name, 0, runs)
        contents[chunk] = description.payload(chunk, arrays)
    digests = {chunk: hashlib.sha256(payload).hexdigest() for chunk, payload in contents.items()}
    write_results(path, description, COSTS, digests, lambda chunk, first, size: contents[chunk][first : first + size])
    return path


def summary_of(path: Path) -> Summary:
    with Results(path) as results:
        return summarise(results)


def test_means_standard_errors_and_paired_differences(tmp_path: Path) -> None:
    path = stored(tmp_path / "r.npz", dual={"costs": [4.0, 8.0, 12.0]}, ce={"costs": [8.0, 4.0, 24.0]})
    dual, ce = summary_of(path).controllers
    assert dual.cost is not None and dual.total is not None and dual.difference is not None
    assert dual.cost.mean == 2.0 and dual.cost.deviation == 1.0  # 1, 2, 3 per step
    assert dual.cost.error == pytest.approx(1 / np.sqrt(3))
    assert dual.total.mean == 8.0 and dual.cost.runs == 3
    assert dual.difference.mean == -1.0  # -1, +1, -3
    assert dual.difference.error == pytest.approx(2 / np.sqrt(3))
    assert dual.better == pytest.approx(2 / 3)
    assert ce.difference is None and ce.better is None and not ce.failed


def test_a_comparison_says_what_it_tells(tmp_path: Path) -> None:
    """Nine runs. dual: 2 less than 8 in the mean, with an error of a sixth. planned: 0.1 less, error 0.31 / 3."""
    ce = np.full(9, 8.0)
    spread = np.array([-1.0, 1.0, 0.0, -1.0, 1.0, 0.0, -1.0, 1.0, 0.0]) * np.sqrt(8 / 6)  # a deviation of 1, so 1/3
    path = stored(
        tmp_path / "r.npz",
        ce={"costs": ce},
        dual={"costs": ce - 2.0 + 0.5 * spread},
        planned={"costs": ce - 0.1 + 0.31 * spread},
        cautious={"costs": ce - 1e-4 + 0.3 * spread},
        oracle={"costs": ce - 0.1 + 0.3 * spread},
    )
    dual, planned, cautious, oracle = summary_of(path).sentences()[:4]
    assert dual == "dual saves 25 ± 2 % against ce"
    assert planned == "9 runs cannot tell planned from ce; some 87 runs would tell"  # 9 (3 * 0.31 / 0.3)^2
    assert cautious == "9 runs cannot tell cautious from ce; it hardly matters which one you take"
    assert oracle == "oracle saves nothing beyond chance in 9 runs: there is little that learning could gain"


def test_a_mean_of_survivors_is_marked_and_explained(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "r.npz",
        dual={"costs": [4.0, np.nan, 4.0, np.nan], "outcomes": [0, 1, 0, 2]},
        ce={"costs": [8.0, 8.0, 2.0, np.nan], "outcomes": [0, 0, 0, 1]},
        planned={"costs": [8.0, 8.0, 8.0, 8.0]},
    )
    summary = summary_of(path)
    dual, _, planned = summary.controllers
    said = "\n".join(summary.sentences())
    assert "* dual: L / T and std are of the 2 of 4 episodes that finished" in said
    assert "dual: minus ce compares the 2 runs that both finished" in said
    assert "better in 33 % of the runs that one of them finished" in said  # of three runs, one
    assert dual.better == 0.5 and dual.better_with_failures == pytest.approx(1 / 3)
    assert planned.better_with_failures == pytest.approx(1 / 4) and "* planned" not in said
    assert [row[1].endswith("*") for row in rows(summary)] == [True, True, False]
    written = summary.to_json()
    assert [c["partial"] for c in written["controllers"]] == [True, True, False]
    assert [c["runs"] for c in written["controllers"]] == [4, 4, 4] and written["sentences"] == summary.sentences()


def test_a_failure_counts_what_it_is_said_to_cost(tmp_path: Path) -> None:
    given = {"dual": {"costs": [4.0, np.nan, 4.0, np.nan], "outcomes": [0, 1, 0, 2]}, "ce": {"costs": [8.0] * 4}}
    with Results(stored(tmp_path / "r.npz", **given)) as results:
        summary = summarise(results, failure_cost=40.0)
        with pytest.raises(SymdualError, match="failure_cost must be a finite number, not inf"):
            summarise(results, failure_cost=np.inf)
    dual, ce = summary.controllers
    assert dual.cost is not None and dual.cost.mean == 1.0
    assert dual.cost_with_failures is not None and dual.cost_with_failures.mean == (4 + 40 + 4 + 40) / 4 / STEPS
    assert ce.cost_with_failures == ce.cost
    assert any("with 40 for each of the other 2, L / T is 5.5 ± " in sentence for sentence in summary.sentences())
    assert "failure_cost" not in "".join(summary.sentences())


def test_a_controller_that_does_clearly_worse_than_ce_is_named(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    costs = 20.0 + random.standard_normal(50)
    given = {
        "ce": {"costs": costs},
        "planned": {"costs": costs + 80.0 + 10.0 * random.standard_normal(50)},
        "dual": {"costs": costs + 0.5 + 0.1 * random.standard_normal(50)},  # beyond chance, but two per cent
        "cautious": {"costs": costs + 4.0 + 40.0 * random.standard_normal(50)},  # much, but by chance
    }
    summary = summary_of(stored(tmp_path / "r.npz", **given))
    (said,) = [s for s in summary.sentences() if "worse" in s]
    assert said.startswith("planned did clearly worse than ce: L / T is higher by 20") and said.endswith("over 50 runs")
    assert [c["clearly_worse"] for c in summary.to_json()["controllers"]] == [False, True, False, False]


def test_without_ce_the_first_controller_is_the_baseline(tmp_path: Path) -> None:
    summary = summary_of(stored(tmp_path / "r.npz", beb={"costs": [1.0, 2.0]}, dual={"costs": [2.0, 4.0]}))
    assert summary.baseline == "beb"
    assert summary.controllers[1].difference is not None


def test_failures_are_counted_named_and_left_out(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "r.npz",
        dual={"costs": [4.0, np.nan, 4.0, np.nan], "outcomes": [0, 1, 0, 2]},
        ce={"costs": [8.0, 8.0, np.nan, 8.0], "outcomes": [0, 0, 4, 0]},
    )
    summary = summary_of(path)
    dual, ce = summary.controllers
    assert dual.failed == {REASONS[1]: 1, REASONS[2]: 1} and ce.failed == {REASONS[4]: 1}
    assert dual.cost is not None and dual.cost.mean == 1.0 and dual.cost.runs == 2
    assert dual.difference is not None and dual.difference.runs == 1 and dual.difference.mean == -1.0
    assert dual.difference.error is None  # one pair has no standard error
    assert f"dual: 1 of 4 episodes failed: {REASONS[1]}" in summary.sentences()


def test_a_sweep_in_which_nothing_finished_has_no_numbers_and_says_so(tmp_path: Path) -> None:
    nothing = np.full(2, np.nan)
    gone = {"costs": nothing, "outcomes": [1, 1], "nees_state": nothing, "nees_parameters": nothing}
    path = stored(tmp_path / "r.npz", dual=gone, ce={"costs": [1.0, 2.0]})
    summary = summary_of(path)
    dual = summary.controllers[0]
    assert (dual.cost, dual.difference, dual.better, dual.nis, dual.nees_state) == (None, None, None, None, None)
    assert any("no episode finished" in sentence for sentence in summary.sentences())
    json.dumps(summary.to_json(), allow_nan=False)
    with Results(path) as results:
        assert sweep_figure(results, summary, tmp_path / "f.png").stat().st_size > 10_000


def test_how_often_order_two_fell_back_is_said(tmp_path: Path) -> None:
    fell = np.zeros((2, STEPS + 1))
    fell[:, STEPS] = np.nan
    fell[0, 1], fell[1, 3] = 7.0, 1.0  # candidates, in 2 of 8 decisions
    path = stored(tmp_path / "r.npz", dual={"costs": np.ones(2), "fallbacks": fell}, ce={"costs": np.ones(2)})
    summary = summary_of(path)
    sentence = "in 25 % of the decisions candidates fell back to order 1, where the cost of order 2 cannot be right"
    assert [c.fallbacks for c in summary.controllers] == [0.25, 0.0]
    assert [s for s in summary.sentences() if "fell back" in s] == [f"dual: {sentence}"]


def test_what_was_not_remembered_is_said_once_for_each_controller(tmp_path: Path) -> None:
    lost = np.zeros((3, 1, 3))
    lost[:, 0] = [[4.0, 0.02, 0.0], [6.0, 0.11, 2.0], [1.0, np.nan, 0.0]]  # the last one failed
    path = stored(tmp_path / "r.npz", dual={"costs": np.ones(3), "losses": lost}, ce={"costs": np.ones(3)})
    first, second = summary_of(path).sentences()
    assert first.startswith("dual: the Gaussian process g was not kept exactly: 11 of its values were taken as comb")
    assert "of at most 12 remembered ones, which left open up to 11 % of" in first
    assert second.startswith("dual: the noise was raised for the Gaussian process g: in 2 steps")


def test_overconfidence_is_said_in_words(tmp_path: Path) -> None:
    path = stored(tmp_path / "r.npz", dual={"costs": np.ones(50), "nees_parameters": np.full(50, 3.0)})
    summary = summary_of(path)
    parameters = summary.controllers[0].nees_parameters
    assert parameters is not None and parameters.verdict == "overconfident"
    assert summary.sentences() == [
        "dual: the filter is overconfident about the parameters (NEES): "
        "the squared error is 3 times what the belief says"
    ]


@pytest.mark.parametrize(("truth", "verdict"), [("prior", "underconfident"), ("scenario", "consistent")])
def test_one_fixed_truth_shows_no_lack_of_confidence(tmp_path: Path, truth: str, verdict: str) -> None:
    path = stored(tmp_path / "r.npz", truth, dual={"costs": np.ones(50), "nees_parameters": np.full(50, 0.2)})
    parameters = summary_of(path).controllers[0].nees_parameters
    assert parameters is not None and parameters.verdict == verdict


def test_nis_is_averaged_over_measured_entries(tmp_path: Path) -> None:
    nis = np.tile([np.nan, 2.0, 4.0, 0.0, 6.0], (3, 1))
    measured = np.tile([np.nan, 2.0, 2.0, 0.0, 2.0], (3, 1))
    path = stored(
        tmp_path / "r.npz",
        dual={"costs": [1.0, 1.0, np.nan], "outcomes": [0, 0, 1], "nis": nis, "measured": measured},
    )
    found = summary_of(path).controllers[0].nis
    assert found is not None and found.mean == 2.0


@pytest.mark.parametrize(
    ("mean", "freedom", "verdict"),
    [
        (1.0, 10, "consistent"),
        (1.3, 10, "consistent"),
        (1.3, 1000, "slightly overconfident"),
        (9.0, 10, "overconfident"),
        (0.8, 1000, "slightly underconfident"),
        (0.1, 100, "underconfident"),
    ],
)
def test_verdicts(mean: float, freedom: float, verdict: str) -> None:
    assert consistency(mean, freedom).verdict == verdict


def test_an_honest_filter_is_called_consistent() -> None:
    random = np.random.default_rng(3)
    sample = random.chisquare(4, size=(2000, 20)).mean(axis=1) / 4  # 2000 sweeps of 20 runs with 4 parameters
    wrong = sum(consistency(float(mean), 80).verdict != "consistent" for mean in sample)
    assert wrong <= 12  # 4 expected


def test_normalised_errors_equal_the_quadratic_form() -> None:
    random = np.random.default_rng(1)
    roots = random.standard_normal((40, 3, 3))
    covariances, errors = roots @ roots.swapaxes(1, 2), random.standard_normal((40, 3))
    expected = [e @ np.linalg.solve(s, e) / 3 for e, s in zip(errors, covariances, strict=True)]
    assert normalised_errors(errors, covariances) == pytest.approx(expected, rel=1e-8)


def test_normalised_errors_do_not_depend_on_their_company() -> None:
    random = np.random.default_rng(2)
    roots = random.standard_normal((33, 32, 32))
    covariances, errors = roots @ roots.swapaxes(1, 2), random.standard_normal((33, 32))
    together = normalised_errors(errors, covariances)
    alone = [normalised_errors(errors[i : i + 1], covariances[i : i + 1])[0] for i in range(33)]
    assert together.tobytes() == np.array(alone).tobytes()


def test_normalised_errors_leave_out_what_is_known_exactly() -> None:
    covariances = np.array([np.diag([4.0, 0.0]), np.diag([1e-13, 1e-13]), np.zeros((2, 2))])
    errors = np.array([[2.0, 7.0], [1.0, 1.0], [1.0, 1.0]])
    values = normalised_errors(errors, covariances, np.ones(2))
    assert values[0] == 1.0 and np.isnan(values[1:]).all()


def test_table_has_a_line_for_each_controller(tmp_path: Path) -> None:
    path = stored(tmp_path / "r.npz", dual={"costs": [4.0, 8.0, 12.0]}, ce={"costs": [8.0, 4.0, 24.0]})
    out = io.StringIO()
    Console(file=out, width=80).print(summary_table(summary_of(path)))
    lines = out.getvalue().splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["dual", "ce"]
    assert "2.00 ± 0.58" in lines[1] and "-1.0 ± 1.2" in lines[1] and "67 %" in lines[1]


def test_a_limit_is_where_a_constraint_of_one_state_is_zero(tmp_path: Path) -> None:
    """Constraints 2 x_0 - 3, of x_0 alone, and x_0 + x_1, of both."""
    x = np.random.default_rng(0).standard_normal((3, 5, 2))
    simulation = SimpleNamespace(
        description=SimpleNamespace(controllers=("ce",)),
        about={"names": {"states": ["x0", "x1"]}},
        array=lambda _, field: x if field == "states" else np.stack([2.0 * x[..., 0] - 3.0, x.sum(axis=-1)], axis=-1),
    )
    assert limits(cast(Any, simulation), 0) == [pytest.approx(1.5)]
    assert limits(cast(Any, simulation), 1) == []


def test_figure_is_the_same_for_the_same_sweep(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    given = {
        name: {"costs": random.lognormal(size=30), "states": random.standard_normal((30, 5, 1))}
        for name in ("oracle", "ce", "cautious", "beb", "dual")
    }
    path = stored(tmp_path / "r.npz", **given)
    with Results(path) as results:
        summary = summarise(results)
        first, second = (sweep_figure(results, summary, tmp_path / name) for name in ("a.png", "b.png"))
    content = first.read_bytes()
    assert content.startswith(b"\x89PNG") and content == second.read_bytes()
    assert len({LOOKS[name].colour for name in given}) == 5


def test_a_figure_says_what_it_has_no_room_for() -> None:
    about = {"scenario": "s", "runs": 3, "seed": 0, "settings": {"truth": "prior"}}
    few, many = ["a", "b", "c", "d"], ["a", "b", "c", "d", "e", "f", "g"]

    class Named:
        def __init__(self, states: list[str], inputs: list[str]) -> None:
            self.about = about | {"names": {"states": states, "inputs": inputs}}

    assert figures._title(Named(few, few)) == "s: 3 runs, seed 0, truth drawn from the prior"  # type: ignore[arg-type]
    assert figures._title(Named(many, few)).endswith("; shown: 4 of 7 states")  # type: ignore[arg-type]
    both = figures._title(Named(many, many[:5]))  # type: ignore[arg-type]
    assert both.endswith("; shown: 4 of 7 states and 4 of 5 inputs")


def test_a_single_run_has_no_errors_and_says_so(tmp_path: Path) -> None:
    summary = summary_of(stored(tmp_path / "r.npz", ce={"costs": [3.0]}, dual={"costs": [2.0]}))
    for c in summary.controllers:
        assert c.cost is not None and c.cost.error is None and c.cost.deviation is None
    assert summary.sentences() == ["a single run has no standard error and no standard deviation"]
    json.dumps(summary.to_json(), allow_nan=False)


def test_figure_of_a_single_run(tmp_path: Path) -> None:
    path = stored(tmp_path / "r.npz", ce={"costs": [3.0]}, dual={"costs": [2.0]})
    with Results(path) as results:
        assert sweep_figure(results, summarise(results), tmp_path / "f.png").stat().st_size > 10_000
