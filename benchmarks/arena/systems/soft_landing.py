"""The same plant has to come to rest at its target: all of its last state counts.

Source: the second task of Tse and Bar-Shalom, "An actively adaptive control for linear systems with random parameters
via the dual control approach", IEEE Transactions on Automatic Control 18 (1973). The weights of the last state are
the same here, to end at zero; another plant in each run. Why: more must be known than for interception.
"""

from symdual import Scenario
from symdual.paper.models.tse_bar_shalom import model

scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: [1.0, 1.0, 1.0] if k == 20 else [0.0, 0.0, 0.0],
    input_cost=1e-3,
    start_covariance=1.0,
)
