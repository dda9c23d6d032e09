"""Beyond the paper: plans that are made to learn, beside the best of the other controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from symdual.paper.experiments.plan import CAUTIOUS, CE, DUAL, EXPERIMENTS, Arm
from symdual.paper.experiments.run import Job, Runner
from symdual.paper.experiments.study import Study
from symdual.paper.experiments.table import estimate, estimate_json, per_step
from symdual.paper.experiments.terminal import difference
from symdual.runtime.problem import Problem

if TYPE_CHECKING:
    from symdual.paper.experiments.outcome import Request

MOST_RUNS = 100  # a decision of `planned` takes some ten times as long as one of `dual`
PLANNED = Arm("planned", "planned", "planned")
BONUSES = tuple(Arm(f"beb_tau_{tau:g}", "beb", f"beb, tau = {tau:g}", bonus=tau) for tau in (0.1, 1.0, 10.0, 100.0))
OTHERS = (CE, CAUTIOUS, *BONUSES, DUAL)


def planning(request: Request, problems: Mapping[str, Problem], runner: Runner) -> Study:
    """Cost per step of `planned` minus that of the best other controller, truth from the prior."""
    runs = min(request.runs, MOST_RUNS)
    places = {f"Exp {e.number}": (f"exp{e.number}", problems[e.model]) for e in EXPERIMENTS[1:]}
    places["interception"] = ("tse-bar-shalom", problems["tse_bar_shalom"])
    rows, data, better, worse = [], {}, [], []
    for title, (group, problem) in places.items():
        arms = (*OTHERS, PLANNED)
        results = runner.run([Job(group, "prior", arm, problem) for arm in arms], runs)
        costs = {arm: per_step(result) for arm, result in zip(arms, results, strict=True)}
        best = min(OTHERS, key=lambda arm: estimate(costs[arm]).mean)
        own, other, apart = estimate(costs[PLANNED]), estimate(costs[best]), estimate(costs[PLANNED] - costs[best])
        rows.append((title, f"{best.label}: {other.mean:.4f}", f"{own.mean:.4f}", difference(apart)))
        data[title] = {
            "best": best.key, "cost": estimate_json(own), "other": estimate_json(other), "gap": estimate_json(apart)
        }  # fmt: skip
        better += [title] if apart.mean < -2.0 * apart.error else []
        worse += [title] if apart.mean > apart.error else []
    return Study(
        "planning",
        "Plans that learn",
        "Plans that are made to learn",
        "Cost per step of `planned`, which minimises Jbar + Jd over all inputs of its plans, looks one step ahead and "
        "lets rollouts select, minus that of the best of ce, cautious, beb (tau .1, 1, 10, 100) and dual. "
        f"Truth from the prior, {runs} runs.",
        ("", "best of the others", "planned", "planned minus best"),
        tuple(rows),
        (
            f"Better by more than two standard errors: {', '.join(better) or 'nowhere'}; worse by more than one: "
            f"{', '.join(worse) or 'nowhere'}.",
        ),
        data,
    )
