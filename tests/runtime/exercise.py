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
    modules = (package.kernels, package.filter, package.nominal, package.riccati, package.dual_cost, package.decision)
    functions = {name: value for module in modules for name, value in vars(module).items()}
    return [name for name, value in functions.items() if len(getattr(value, "overloads", ())) > 1]


def _belief(package: LoadedPackage) -> tuple[Any, Any]:
    random = np.random.default_rng(package.NZ)
    root = random.normal(size=(package.NZ, package.NZ))
    return 0.5 * random.normal(size=package.NZ), 0.2 * np.eye(package.NZ) + 0.1 * root @ root.T


def _noise(package: LoadedPackage) -> tuple[Any, ...]:
    """Q, R, D, Xi; no noise without variance, which would magnify what rounding does."""
    moved = package.numbers["transition"], package.numbers["drift"]
    return 0.1 * np.eye(package.NX), 0.2 * np.eye(package.NY), *moved


def _filter(package: LoadedPackage) -> Numbers:
    module, (z, P), noise = package.filter, _belief(package), _noise(package)
    tools = package.numbers["data"], *module.workspace(), np.zeros(3)
    u, y, found = np.full(package.NU, 0.3), np.linspace(0.2, 0.7, package.NY), []
    for k in range(3):
        y[-1] = np.nan if k == 1 else 0.1 * k
        status = module.step(k, z, P, u, y, *noise, *tools)
        found += [status, *tools[-1], *z, *P.ravel()]
    return {"filter": found}


def _decision(package: LoadedPackage) -> Numbers:
    module, limits = package.decision, np.array([[-1.0], [1.0]]) * np.full(package.NU, 2.0)
    wanted = np.linspace(1.0, 2.0, (HORIZON + 1) * package.NX).reshape(HORIZON + 1, package.NX)
    weights = np.stack([np.eye(package.NX)] * (HORIZON + 1)), np.stack([0.3 * np.eye(package.NU)] * HORIZON)
    head = *_belief(package), *_noise(package), *weights, wanted, limits, package.numbers["data"]
    # a function pointer cannot lead to code that is not compiled
    cost = module._COSTS["structured"] if config.DISABLE_JIT else module.cost_pointer("structured")
    work, small, wide, candidates, out, report = module.workspace(HORIZON)
    u = np.zeros(package.NU)
    tail = work, small, wide, candidates, out, report, u
    status = module.decide(cost, True, 0.3, 1, HORIZON, *head, package.nominal.default_settings(), *tail)
    # the first half of the rows is filled before the search follows valleys, where rounding may part the ways
    rows = slice(0, module.SIDE if package.NU == 1 else module.GLOBAL)
    return {
        "candidates": candidates[rows].ravel().tolist(),
        "dual costs": out[rows, : module.OUT_STATUS].ravel().tolist(),
        "decision": [status, *u],
        "cost of the decision": [report[module.REPORT_COST]],
    }
