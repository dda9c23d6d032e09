"""The integrator with an unknown gain, for which the optimal dual controller is known.

Source: Astrom and Wittenmark, "Problems of identification and control", Journal of Mathematical Analysis and
Applications 34 (1971), with a gain of mean 0.5 and variance 1, unit noise and unit cost of the state. Why: the
optimum is exact, by dynamic programming (`symdual.runtime.unknown_gain`). Inputs cost 1e-6, because a search needs a
cost; the optimum has none.
"""

import numpy as np
import sympy as sp

from symdual import Model, Scenario, unknown

HORIZON, MEAN, VARIANCE, START = 10, 0.5, 1.0, 1.0
x, u = sp.symbols("x u")
model = Model([x], [u], [x + unknown("b", mean=MEAN, variance=VARIANCE) * u], process_noise=1.0, measurement_noise=0.0)
scenario = Scenario(model, horizon=HORIZON, state_cost=1.0, input_cost=1e-6, start=START)


def losses(inputs: np.ndarray, means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """What the inputs of each episode cost beyond the best ones, in percent of the least expected cost."""
    from symdual.runtime.unknown_gain import UnknownGain

    best = UnknownGain(a=1.0, noise=1.0, weight=1.0)
    least = best.cost(HORIZON, START, MEAN, VARIANCE)
    lost = [
        sum(best.loss(u[k, 0], HORIZON - k, *z[k], v[k, 1]) for k in range(HORIZON))
        for u, z, v in zip(inputs, means, variances, strict=True)
    ]
    return 100 * np.array(lost) / least
