"""Replayed recordings: the same filter as in the loop, gaps, consistency in words, and bad tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import symdual
from symdual.commands import main
from symdual.common.errors import SymdualError
from symdual.runtime import replay as replaying
from symdual.runtime.closed_loop import Settings, draw, run
from symdual.runtime.controller import State, controller
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.problem import Problem
from symdual.runtime.replay import Recording, consistency, read_recording, replay, steps_between, summary

GOOD = "time,u,x\n0,0.5,1.0\n1,-0.5,2.1\n2,0.25,1.0\n3,,1.4\n"


def written(folder: Path, text: str) -> Path:
    file = folder / "data.csv"
    file.write_text(text)
    return file


def test_the_belief_is_that_of_the_loop(toy: Problem, tmp_path: Path) -> None:
    recording = read_recording(written(tmp_path, GOOD), toy.package)
    result = replay(toy, recording)
    chosen = controller(toy, "ce")
    state, likelihood = chosen.init(), 0.0
    for k, (u, y) in enumerate(zip([0.5, -0.5, 0.25, np.nan], [1.0, 2.1, 1.0, 1.4], strict=True)):
        state, statistics = chosen.update(state, [y])
        np.testing.assert_allclose(result.means[k], state.belief.mean, rtol=1e-12)
        np.testing.assert_allclose(result.deviations[k] ** 2, np.diag(state.belief.covariance), rtol=1e-9, atol=1e-15)
        assert result.nis[k] == pytest.approx(statistics.nis)
        likelihood += statistics.log_likelihood
        state = State(k + 1, state.belief, np.array([u]))
    assert result.log_likelihood == pytest.approx(likelihood)
    assert result.consistency.measured == int(result.measured.sum())
    assert repr(recording) == "<Recording: 4 rows, from time 0 to 3>"
    assert repr(result).startswith(f"<Replay: 4 rows, log-likelihood {likelihood:.5g}") and "array" not in repr(result)


def test_gaps_in_measurements_and_rows(toy: Problem, tmp_path: Path) -> None:
    text = "x,time,u,note\n1.0,0,0.5,a\n,1,0.5,b\nNaN,2,0.5,\n2.6,3,0.1,\n"
    dense = read_recording(written(tmp_path, text), toy.package)
    assert dense.ignored == ("note",)
    assert np.isnan(dense.measurements[1:3]).all()
    # leaving the unmeasured rows out says the same: the input holds
    sparse = read_recording(written(tmp_path, "time,u,x\n0,0.5,1.0\n3,0.1,2.6\n4,0.1,2.7\n5,0,2.8\n"), toy.package)
    assert steps_between(sparse, toy.package) == [0, 3, 1, 1]
    np.testing.assert_allclose(replay(toy, dense).means[3], replay(toy, sparse).means[1], rtol=1e-12)
    assert replay(toy, dense).measured.tolist() == [0, 0, 0, 1]  # the first tells nothing: the start is known


def test_a_good_model_is_consistent_and_a_bad_one_is_named(toy: Problem, tmp_path: Path) -> None:
    settings = Settings(window=2, length=300)
    noise_draws = draw(toy, settings, np.random.SeedSequence(4).spawn(1))
    episode = run(toy, "ce", noise_draws, settings)

    def verdict(noise: float) -> str:
        x = episode.states[0, :, 0] + noise * np.random.default_rng(0).standard_normal(301)
        rows = [f"{k},{episode.inputs[0, min(k, 299), 0]!r},{x[k]!r}" for k in range(1, 301)]
        text = (
            "\n".join(["time,u,x", f"0,{episode.inputs[0, 0, 0]!r},", *rows])
            .replace("np.float64(", "")
            .replace(")", "")
        )
        return replay(toy, read_recording(written(tmp_path, text), toy.package)).consistency.sentence()

    assert verdict(0.0).startswith("the filter is consistent")
    assert verdict(1.0).startswith("the filter is overconfident: its innovations are larger than it expects")


def test_the_band_is_that_of_chi_square() -> None:
    # 0.001 and 0.999 of chi-square with 10 degrees of freedom: 1.479 and 29.588, from printed tables
    judged = consistency(10.0, 10)
    assert judged.band == pytest.approx((0.1479, 2.9588), abs=1e-4)
    assert judged.verdict == "consistent"
    assert consistency(35.0, 10).verdict == "overconfident"
    assert consistency(1.0, 10).verdict == "underconfident"
    assert "nothing was measured" in consistency(0.0, 0).sentence()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "data.csv is empty"),
        ("\n\n", "data.csv is empty"),
        ("time,u,x\n", "data.csv has a header but no rows"),
        ("time,u,xx\n0,1,1\n", 'data.csv has no column "x".*needs the columns time, u, x'),
        ("Time,u,x\n0,1,1\n", 'has no column "time"; did you mean "Time"'),
        ("time,U,x\n0,1,1\n", 'has no column "u"; did you mean "U"'),
        ("time,u,x,x\n0,1,1,1\n", 'has two columns called "x"'),
        ("time,u,x\n0,1,1\n1,one,2\n", 'line 3: "one" in the column "u" is not a number'),
        ("time,u,x\n0,1,1\n1,1_000,2\n", 'line 3: "1_000" in the column "u" is not a number'),
        ("time,u,x\n0,1,1\n1,1,\u0661\u0662\n", "line 3: .* is not a number"),
        ('time,u,x\n0,1,"1\n1,0,2\n', r"""line 3: "'1\\n1,0,2'" in the column "x" is not a number"""),
        ("time,u,x\n0,1," + "1.2" * 9000 + "\n", "line 2: .{60,70} in the column"),
        ("time,u,x\n0,1,1\n1,1,0x10\n", 'line 3: "0x10" in the column "x" is not a number'),
        ("time,u,x\n0,1,1\n1,1,1,\n", "line 3: 4 cells"),
        ('time,u,x\n0,1,"1,5"\n', 'line 2: "1,5" in the column "x" is not a number'),
        ("time,u,x\n0,1,1e400\n", 'line 2: the measurement "x" is infinite'),
        ("time,u,x\n0,1,1\n1,1\n", "line 3: 2 cells, but the header has 3"),
        ("time,u,x\n0,1,1\n1,1,1\n1,1,1\n", "line 4: the times must increase, but 1 comes after 1"),
        ("time,u,x\n0,1,1\n,1,1\n", "line 3: the time is missing"),
        ("time,u,x\n0,1,1\n1,,1\n2,1,1\n", 'line 3: the input "u" is missing or infinite; only measurements'),
        ("time,u,x\n0,1,1\n1,1,-inf\n", 'line 3: the measurement "x" is infinite'),
    ],
)
def test_bad_tables_are_named(toy_package: LoadedPackage, tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SymdualError, match=message):
        read_recording(written(tmp_path, text), toy_package)


@pytest.mark.parametrize("cell", ["1", "+1.", ".5e1", "-2E-3", " 7 ", "1e-320"])
def test_numbers_are_read_as_they_are_written(toy_package: LoadedPackage, tmp_path: Path, cell: str) -> None:
    read = read_recording(written(tmp_path, f"time,u,x\n0,{cell},1\n"), toy_package)
    assert read.inputs[0, 0] == float(cell)


def test_other_bad_files_are_named(toy_package: LoadedPackage, tmp_path: Path) -> None:
    with pytest.raises(SymdualError, match=r"cannot read .*none.csv: No such file"):
        read_recording(tmp_path / "none.csv", toy_package)
    binary = tmp_path / "data.csv"
    binary.write_bytes(b"time,u,x\n0,1,\xff\xfe\n")
    with pytest.raises(SymdualError, match="not a table of comma-separated values"):
        read_recording(binary, toy_package)


def test_uneven_times_are_refused(toy: Problem, tmp_path: Path) -> None:
    recording = read_recording(written(tmp_path, "time,u,x\n0,1,1\n1,1,1\n2.5,1,1\n3.5,1,1\n"), toy.package)
    with pytest.raises(SymdualError, match=r"line 4 of the recording comes 1.5 after the row before.*the step 1"):
        replay(toy, recording)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (
            "0 1 2 1e15",
            "line 5 of the recording comes 1e\\+15 after the row before; with the step 1 these are more than",
        ),
        ("-1e308 1e308", "line 3 of the recording comes inf after the row before; with the step inf"),
        ("0 5e-324 1e-323 1e308", "line 5 of the recording comes 1e\\+308 after"),
        ("0 5e-324 1e-323 1", "line 5 of the recording comes 1 after"),
    ],
)
def test_times_without_end_are_refused(toy: Problem, tmp_path: Path, times: str, said: str) -> None:
    table = "time,u,x\n" + "".join(f"{time},1,1\n" for time in times.split())
    with pytest.raises(SymdualError, match=said):
        replay(toy, read_recording(written(tmp_path, table), toy.package))


def test_the_longest_gap_is_bridged(toy: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "MOST_STEPS", 10)
    whole = "time,u,x\n0,0,1\n1,0,1\n2,0,1\n10,0,1\n"
    recording = read_recording(written(tmp_path, whole), toy.package)
    assert steps_between(recording, toy.package) == [0, 1, 1, 8]
    recording = read_recording(written(tmp_path, whole + "11,0,1\n"), toy.package)
    with pytest.raises(SymdualError, match=r"line 6 .* more than 10 steps from the first row on"):
        steps_between(recording, toy.package)


@pytest.mark.parametrize("value", ["1e200", "-1e160"])
def test_a_measurement_beyond_all_likelihood_is_named(toy: Problem, tmp_path: Path, value: str) -> None:
    table = f"time,u,x\n0,1,1\n1,1,{value}\n2,1,2\n"
    with pytest.raises(SymdualError, match="line 3 of the recording has a measurement so far from"):
        replay(toy, read_recording(written(tmp_path, table), toy.package))


def test_measurements_whose_likelihoods_add_up_to_no_number_are_named(toy: Problem, tmp_path: Path) -> None:
    table = "time,u,x\n" + "".join(f"{k},0,{(-1) ** k * 5e153}\n" for k in range(30))
    with pytest.raises(SymdualError, match="the likelihood is not a number any more"):
        replay(toy, read_recording(written(tmp_path, table), toy.package))


def test_headers_do_not_steer_the_terminal(toy_package: LoadedPackage, tmp_path: Path) -> None:
    table = "time,u,x,\x1b[2Jnote,été\n0,1,1,5,6\n"
    assert read_recording(written(tmp_path, table), toy_package).ignored == (
        "'\\x1b[2Jnote'",
        "été",
    )


TOY = Path(__file__).parents[2] / "symdual/paper/models/toy.py"


@pytest.mark.parametrize("name", ["[/nope]", "[red]", ":smiley:", "[link=x]a", "\\[", "{problem.description}"])
def test_headers_and_folders_are_other_peoples_words(
    tmp_path: Path, packages: Path, toy_package: LoadedPackage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "generated").symlink_to(packages)
    data = written(tmp_path, f"time,u,x,{name}\n0,1,1,5\n1,0,2,5\n")
    answer = CliRunner().invoke(
        main, ["replay", str(TOY), str(data), "--json", f"{name}.json".replace("/", ""), "-o", f"o{name}"]
    )
    assert answer.exit_code == 0, answer.output
    assert f"columns that the model does not know: {name}\n" in answer.output
    assert f"belief in o{name}/data/belief.csv, figure in o{name}/data/figure.png\n" in answer.output


@pytest.mark.parametrize(
    ("name", "folder"), [("...csv", "...csv"), ("..csv", "..csv"), (".csv", ".csv"), ("a.b.csv", "a.b")]
)
def test_a_replay_stays_below_its_folder(
    tmp_path: Path, packages: Path, toy_package: LoadedPackage, monkeypatch: pytest.MonkeyPatch, name: str, folder: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "generated").symlink_to(packages)
    written(tmp_path, GOOD).rename(tmp_path / name)
    answer = CliRunner().invoke(main, ["replay", str(TOY), name, "-o", "out"])
    assert answer.exit_code == 0, answer.output
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([name, "generated", "out"])
    assert sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*.*") if p.is_file()) == [
        f"{folder}/belief.csv",
        f"{folder}/figure.png",
    ]


def test_the_command_writes_table_figure_and_json(
    tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "generated").symlink_to(packages)  # the compiled toy
    data = written(tmp_path, GOOD)
    toy_file = Path(__file__).parents[2] / "symdual/paper/models/toy.py"
    answer = CliRunner().invoke(main, ["replay", str(toy_file), str(data), "--json", "out.json", "-o", "out"])
    assert answer.exit_code == 0, answer.output
    assert "the filter is" in answer.output and "log-likelihood" in answer.output
    report = json.loads((tmp_path / "out.json").read_text())
    assert list(report["belief"]) == ["x", "b"] and report["rows"] == 4
    table = np.genfromtxt(tmp_path / "out/data/belief.csv", delimiter=",", names=True)
    assert table["x"][-1] == pytest.approx(1.4) and len(table) == 4
    assert (tmp_path / "out/data/figure.png").stat().st_size > 10_000
    bad = CliRunner().invoke(main, ["replay", str(toy_file), str(written(tmp_path, "time,u\n0,1\n"))])
    assert bad.exit_code == 2


def test_entries_of_the_belief_have_names(pair_package: LoadedPackage) -> None:
    assert pair_package.belief_names == ("p", "q", "b", "c", "d")


KINKED = """
import sympy as sp
from symdual import Model, Scenario
x, u = sp.symbols("x u")
kinked = Model([x], [u], [x + u], observation=[sp.Max(x, 3 * x)], measurement_noise=1.0, filter="iterated")
scenario = Scenario(kinked, 3, start=0.1, start_covariance=1.0)
"""


def test_an_update_that_does_not_settle_is_counted(make_quickly: Callable[[str, str], LoadedPackage]) -> None:
    """The most probable x lies on the kink, where no step of Newton's method leads."""
    own = symdual.problem(make_quickly("kinked", KINKED))
    recording = Recording(np.arange(2.0), np.zeros((2, 1)), np.array([[-0.05], [np.nan]]), np.arange(2), (), "kinked")
    result = replay(own, recording)
    assert result.unsettled == 1 and abs(result.means[0, 0]) < 1e-6
    assert summary(result, own)["limits"] == ["the filter stopped iterating before it settled at 1 of 2 rows"]
    seen = recording._replace(measurements=np.array([[0.3], [np.nan]]))
    assert summary(replay(own, seen), own)["limits"] == []
