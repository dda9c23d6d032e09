"""The command `symdual simulate`, in this process and in processes that are interrupted and killed."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import symdual
from symdual.backends.c import compilers
from symdual.commands import main
from symdual.report import figures
from symdual.runtime.belief import Belief
from symdual.runtime.loading import LoadedPackage
from symdual.runtime.sweep import run_sweep, sweep
from symdual.runtime.threads import on_this_machine

ROOT = Path(__file__).parents[2]
TOY = ROOT / "symdual/paper/models/toy.py"
MANY = 800  # runs, in 50 chunks


@pytest.fixture
def place(toy_package: LoadedPackage, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder whose packages are those of all tests, so that nothing is compiled again."""
    (tmp_path / "generated").symlink_to(packages)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["simulate", *map(str, arguments)])


def test_summary_results_figure_and_json(place: Path) -> None:
    result = run(TOY, "--runs", 20, "--controller", "dual", "--controller", "ce", "--json", "s.json", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "results in results/toy/results.npz, figure in results/toy/figure.png" in result.output
    report = json.loads((place / "s.json").read_text())
    with np.load(place / "results/toy/results.npz") as stored:
        about = json.loads(stored["about.json"])
        dual, ce = stored["dual.costs"], stored["ce.costs"]
    assert report["runs"] == about["runs"] == 20 and report["baseline"] == "ce" and about["seed"] == 0
    first, second = report["controllers"]
    assert (first["name"], second["name"]) == ("dual", "ce")
    assert first["total"]["mean"] == pytest.approx(dual.mean())
    assert first["difference"]["mean"] == pytest.approx((dual - ce).mean() / 2)
    assert first["difference"]["error"] == pytest.approx((dual - ce).std(ddof=1) / 2 / np.sqrt(20))
    assert (place / "results/toy/figure.png").read_bytes().startswith(b"\x89PNG")
    assert f"{dual.mean() / 2:.2f}" in result.output


def test_without_matplotlib_there_is_everything_but_the_figure(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "available", lambda: False)
    result = run(TOY, "--runs", 2, "--controller", "ce", "--json", "s.json")
    assert result.exit_code == 0 and "no figure without matplotlib" in result.output
    assert json.loads((place / "s.json").read_text())["figure"] is None
    assert sorted(file.name for file in (place / "results/toy").iterdir()) == ["results.npz"]


def test_the_fair_test_draws_the_truth(place: Path) -> None:
    assert run(TOY, "--runs", 20, "--controller", "ce", "--truth", "prior").exit_code == 0
    with np.load(place / "results/toy/results.npz") as stored:
        truths = stored["ce.truths"]
        assert json.loads(stored["about.json"])["settings"]["truth"] == "prior"
    assert len(np.unique(truths)) == 20


def test_a_controller_that_finished_nothing_is_exit_status_1_with_the_reason(
    place: Path, toy_package: LoadedPackage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 1e200 the plan costs more than there are numbers; the oracle alone is as lost as ce."""
    problem = symdual.problem(toy_package)
    far = replace(problem, prior=Belief(np.array([1e200, 1.0]), problem.prior.covariance))
    monkeypatch.setattr("symdual.api.problem", lambda file, scenario, backend, parts: far)
    result = run(TOY, "--runs", 3, "--controller", "ce", "--controller", "oracle", "--json", "s.json")
    assert result.exit_code == 1
    reason = "the plan is not finite"
    assert result.stderr == (
        f"symdual: no episode with ce finished ({reason}); no episode with oracle finished ({reason})\n"
    )
    assert f"ce: 3 of 3 episodes failed: {reason}" in result.stdout
    report = json.loads((place / "s.json").read_text())
    assert [c["failed"] for c in report["controllers"]] == [{reason: 3}] * 2
    told = [f"{name}, run 0: the certainty-equivalent plan at step 0 is not finite" for name in ("ce", "oracle")]
    assert all(any(said.startswith(one) for said in report["culprits"]) for one in told), report["culprits"]
    assert (place / "results/toy/results.npz").is_file()


@pytest.mark.soak
def test_a_package_that_was_never_generated_is_generated(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(TOY, "--runs", 1, "--controller", "ce").exit_code == 0
    assert (tmp_path / "elsewhere/generated/toy/manifest.json").is_file()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--runs", 0], "symdual: the number of runs must be at least 1, not 0"),
        (["--controller", "exakt"], 'symdual: there is no controller "exakt"'),
        (["--seed", -3], "symdual: the seed must be at least 0, not -3"),
        (["--scenario", "tyo"], 'has no scenario "tyo"; did you mean "toy"?'),
        (["--cluster", "nonsense://x"], 'symdual: "nonsense://x" is no address of a Dask scheduler'),
        (["-o", "file"], "symdual: cannot make the folder file/toy"),
    ],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_bad_input_is_one_sentence(place: Path, options: list[object], sentence: str) -> None:
    (place / "file").write_text("")
    result = run(TOY, "--controller", "ce", *options)
    assert result.exit_code == 2
    assert sentence in result.output and "Traceback" not in result.output
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_file_without_a_scenario_and_one_with_two(place: Path) -> None:
    text = TOY.read_text()
    (place / "none.py").write_text(text.partition("scenario =")[0])
    (place / "two.py").write_text(text + "other = Scenario(model, horizon=3, truth={'b': 1.0})\n")
    assert "has no Scenario" in run(place / "none.py").output
    result = run(place / "two.py")
    assert result.exit_code == 2 and "has several scenarios; name one of other, two" in result.output


def test_resuming_with_another_seed_is_refused(place: Path) -> None:
    assert run(TOY, "--runs", 3, "--controller", "ce").exit_code == 0
    result = run(TOY, "--runs", 3, "--controller", "ce", "--seed", 1, "--resume")
    assert result.exit_code == 2
    assert "results/toy/results.npz holds a sweep with seed 0, not 1; choose another folder with -o" in result.output


def test_through_c_the_same_comes_out_and_the_two_are_not_mixed(place: Path) -> None:
    try:
        compilers.compiler()
    except compilers.NoCompiler as missing:
        pytest.skip(str(missing))
    costs = {}
    for backend in ("numba", "c"):
        result = run(TOY, "--runs", 3, "-o", backend, "--backend", backend)
        assert result.exit_code == 0, result.output
        with np.load(place / backend / "toy/results.npz") as stored:
            costs[backend] = stored["dual.costs"]
    np.testing.assert_allclose(costs["c"], costs["numba"], rtol=1e-10)
    for folder, backend in (("c", "numba"), ("numba", "c")):
        mixed = run(TOY, "--runs", 4, "-o", folder, "--resume", "--backend", backend)
        assert mixed.exit_code == 2 and "holds a sweep with backend" in mixed.output
        assert run(TOY, "--runs", 4, "-o", folder, "--resume").exit_code == 0  # goes on as it was begun


def test_another_sweep_takes_another_folder_unless_it_is_told_to_overwrite(place: Path) -> None:
    file, second = (place / f"results/{name}/results.npz" for name in ("toy", "toy-2"))
    assert run(TOY, "--runs", 3, "--controller", "ce").exit_code == 0
    before = file.read_bytes()
    for option in (("--runs", 3, "--seed", 1), ("--runs", 2, "--seed", 1)):
        other = run(TOY, *option, "--controller", "ce")
        assert other.exit_code == 0, other.output
    assert "results in results/toy-3/results.npz" in other.output  # of two runs, which would drop one of three
    assert file.read_bytes() == before
    kept = second.read_bytes()
    assert "toy-2" in run(TOY, "--runs", 3, "--controller", "ce", "--seed", 1).output  # the same again
    assert second.read_bytes() == kept
    more = run(TOY, "--runs", 4, "--controller", "ce", "--seed", 1, "--resume")
    assert "toy-2" in more.output and second.read_bytes() != kept
    assert run(TOY, "--runs", 3, "--controller", "ce", "--seed", 2, "--resume").exit_code == 2
    assert run(TOY, "--runs", 3, "--controller", "ce", "--seed", 1, "--force").exit_code == 0
    assert file.read_bytes() != before
    both = run(TOY, "--resume", "--force")
    assert both.exit_code == 2 and "give one of them" in both.stderr


# ------------------------------------------------------------ processes


STOPPED = """
    import os
    from symdual.commands import main
    from symdual.runtime.checkpoints import Checkpoints

    write, written = Checkpoints.write, []

    def write_and_stop(self, chunk, payload):
        write(self, chunk, payload)
        written.append(chunk)
        if len(written) == 10:
            os.kill(os.getpid(), {signal})

    Checkpoints.write = write_and_stop
    main(["simulate", {model!r}, "--runs", "{runs}", "--controller", "ce", "--backend", "numba"], prog_name="symdual")
"""


def chunks(place: Path) -> int:
    return len(list((place / "results/toy/chunks").glob("*.chunk")))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_a_stopped_sweep_keeps_its_chunks_and_is_resumed(
    place: Path,
    numba_toy_package: LoadedPackage,
    tmp_path: Path,
    fresh_python: Callable[..., subprocess.CompletedProcess[str]],
    how: signal.Signals,
) -> None:
    """The signal comes when ten chunks are done, however fast the machine is."""
    plan = sweep(symdual.problem(numba_toy_package), ["ce"], MANY)
    stopped = fresh_python(STOPPED.format(signal=int(how), model=str(TOY), runs=MANY), place, check=False)
    assert chunks(place) == 10
    if how == signal.SIGINT:
        assert stopped.returncode == 130
        assert stopped.stderr == "symdual: interrupted; what is done is kept in results, continue with --resume\n"
    resumed = run(TOY, "--runs", MANY, "--controller", "ce", "--resume")
    assert resumed.exit_code == 0, resumed.output
    expected = run_sweep(plan, tmp_path / "expected", on_this_machine())
    assert (place / "results/toy/results.npz").read_bytes() == expected.read_bytes()
    assert not (place / "results/toy/chunks").exists()
