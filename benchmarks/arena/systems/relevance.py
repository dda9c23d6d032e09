"""The same cart with a small neural network; only one half of what is unknown will matter.

Source: experiment 3 of Klenske and Hennig, "Dual control for approximate Bayesian reinforcement learning", JMLR 17
(2016), with the truth drawn from the prior instead of theirs. Why: to learn everything is a waste.
"""

from symdual import Scenario
from symdual.paper.models.relevance import model, reference

scenario = Scenario(
    model,
    horizon=20,
    state_cost=lambda k: [10.0 if k >= 11 else 0.0, 0.0],
    input_cost=1e-3,
    reference=reference,
    start=reference(0),
)
