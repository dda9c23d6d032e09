"""Two bumps on the rail whose heights drift, so that knowledge has to be kept up.

Source: experiment 4 of Klenske and Hennig, "Dual control for approximate Bayesian reinforcement learning", JMLR 17
(2016), with the truth drawn from the prior and drifting. Why: what was learned is soon worth nothing.
"""

from symdual.paper.models.drift import model, scenario

__all__ = ["model", "scenario"]
truth = "drift"
