"""A cart on a rail of unknown slope, sixty features of which are unknown, with a loose phase for experiments.

Source: experiment 2 of Klenske and Hennig, "Dual control for approximate Bayesian reinforcement learning", JMLR 17
(2016), with the truth drawn from the prior instead of theirs. Why: many unknowns, of which few matter.
"""

from symdual import Scenario
from symdual.paper.models.schedule import model, reference, state_cost

scenario = Scenario(
    model, horizon=20, state_cost=state_cost, input_cost=1e-3, reference=reference, start=reference(0), bonus=10.0
)
