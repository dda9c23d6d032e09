"""The third-order plant of Tse and Bar-Shalom (1973): six unknowns, one measured state, and one target at the end.

    x' = [0 1 0; 0 0 1; th1 th2 th3] x + [th4 th5 th6]' u,    y = x3,    cost (x3(T) - 20)^2 + 1e-3 sum u^2

Nothing is asked of the state before the last step, so there is time to learn; but inputs that teach also
drive the state, of which only one part is seen.
"""

import sympy as sp

from symdual import Model, Scenario, unknown

x1, x2, x3, u = sp.symbols("x1 x2 x3 u")
truth = (1.8, -1.01, 0.58, 0.3, 0.5, 1.0)
means = (1.0, -0.6, 0.3, 0.1, 0.7, 1.5)
variances = (0.1, 0.1, 0.01, 0.01, 0.01, 0.1)
theta = [unknown(f"theta{i + 1}", mean=means[i], variance=variances[i]) for i in range(6)]

model = Model(
    states=[x1, x2, x3],
    inputs=[u],
    dynamics=[
        x2 + theta[3] * u,
        x3 + theta[4] * u,
        theta[0] * x1 + theta[1] * x2 + theta[2] * x3 + theta[5] * u,
    ],
    observation=[x3],
    process_noise=1.0,
    measurement_noise=1.0,
)

scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: [0.0, 0.0, 1.0 if k == 20 else 0.0],
    input_cost=1e-3,
    reference=[0.0, 0.0, 20.0],
    start=[0.0, 0.0, 0.0],
    start_covariance=1.0,
    truth={f"theta{i + 1}": value for i, value in enumerate(truth)},
)
