"""A fed-batch fermentation with Monod growth: how fast cells grow, what half-saturates them, and what they yield."""

import sympy as sp

from symdual import Model, Scenario, unknown

cells, sugar, volume, feed = sp.symbols("cells sugar volume feed")  # g/l, g/l, l, l/h
fastest = unknown("fastest", mean=0.4, variance=0.08**2)  # 1/h
half = unknown("half", mean=0.5, variance=0.15**2)  # g/l
need = unknown("need", mean=2.0, variance=0.3**2)  # g of sugar for a g of cells
growth = fastest * sp.Max(sugar, 0) / (half + sp.Max(sugar, 0))

model = Model(
    states=[cells, sugar, volume],
    inputs=[feed],
    derivatives=[
        (growth - feed / volume) * cells,
        feed / volume * (200.0 - sugar) - need * growth * cells,
        feed,
    ],
    step=0.25,
    method="rk4",
    substeps=4,
    observation=[cells, sugar],
    process_noise=[1e-5, 1e-5, 1e-8],
    measurement_noise=[0.05**2, 0.1**2],
    bounds={feed: (0.0, 0.2)},
)
scenario = Scenario(
    model,
    horizon=24,
    state_cost=[0.0, 1.0, 0.0],
    input_cost=10.0,
    start=[2.0, 1.5, 2.0],
    start_covariance=[0.1**2, 0.2**2, 0.0],
    reference=[0.0, 1.0, 0.0],
)
