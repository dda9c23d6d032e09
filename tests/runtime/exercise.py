"""The filter and a decision of a package on small numbers, for processes that run generated code in other ways."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import config

from symdual.runtime.loading import LoadedPackage

HORIZON = 3
Numbers = dict[str, list[float]]


def numbers(package: LoadedPackage) -> Numbers:
    """What the recursions return, by name: three steps of the filter, and a dual decision with all its candidates."""
    return _filter(package) | _decision(package)


def compiled_twice(package: LoadedPackage) -> list[str]:
    """The functions that numba has compiled for more than one signature: time for nothing."""
    names = "kernels blocks cost_blocks filter trajectory backward nominal riccati dual_cost candidates search decision"
    modules = [getattr(package, name) for name in names.split() if name in package.modules]
    functions = {name: value for module in modules for name, value in vars(module).items()}
    return [name for name, value in functions.items() if len(getattr(value, "overloads", ())) > 1]


def _belief(package: LoadedPackage) -> tuple[Any, Any]:
    random = np.random.default_rng(package.NZ)
    root = random.normal(size=(package.NZ, package.NZ))
    return 0.5 * random.normal(size=package.NZ), 0.2 * np.eye(package.NZ) + 0.1 * root @ root.T


def _settings(package: LoadedPackage) -> Any:
    """No noise without variance, which would magnify what rounding does."""
    moved = package.numbers["transition"], package.numbers["drift"]
    noise = 0.1 * np.eye(package.NX), 0.2 * np.eye(package.NY), *moved
    constraints = np.array([[-1.0], [1.0]]) * np.full(package.NU, 2.0)
    return package.records.make_settings(*noise, constraints, package.numbers["data"])


def _filter(package: LoadedPackage) -> Numbers:
    module, records, stats = package.filter, package.records, np.zeros(3)
    belief, filter_workspace = records.make_belief(*_belief(package)), module.make_filter_workspace(_settings(package))
    u, y, found = np.full(package.NU, 0.3), np.linspace(0.2, 0.7, package.NY), []
    for k in range(3):
        y[-1] = np.nan if k == 1 else 0.1 * k
        module.predict(k, belief, u, filter_workspace)
        status = module.update(k + 1, belief, y, filter_workspace, stats)
        found += [status, *stats, *belief["z"][0], *records.read_covariance(belief).ravel()]
    return {"filter": found}


def _decision(package: LoadedPackage) -> Numbers:
    module, records, wanted = package.decision, package.records, np.linspace(1.0, 2.0, (HORIZON + 1) * package.NX)
    costs = np.stack([np.eye(package.NX)] * (HORIZON + 1)), np.stack([0.3 * np.eye(package.NU)] * HORIZON)
    weights = records.make_stage_costs(*costs, wanted.reshape(HORIZON + 1, package.NX))
    workspace = records.make_workspace(HORIZON, weights, _settings(package))
    belief = records.make_belief(*_belief(package))
    table, u, floor = package.search.table(), np.zeros(package.NU), np.full(package.NU, 0.3)
    if config.DISABLE_JIT:  # a function pointer cannot lead to code that is not compiled
        case = package.search.Case(1, HORIZON, belief, workspace)
        status = module.decide(module._COSTS["structured"], True, floor, case, table, u)
    else:
        address = module.cost_pointer("structured").address
        status = module.decide_at(address, True, floor, 1, HORIZON, belief, workspace, table, u)
    # the first half of the rows is filled before the search follows valleys, where rounding may part the ways
    rows = slice(0, package.search.SIDE if package.NU == 1 else package.search.GLOBAL)
    return {
        "candidates": table.candidates[rows].ravel().tolist(),
        "dual costs": table.out[rows, : package.dual_cost.OUT_STATUS].ravel().tolist(),
        "decision": [status, *u],
        "cost of the decision": [table.report[package.search.REPORT_COST]],
    }
