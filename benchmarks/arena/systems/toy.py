"""One gain, two steps: the smallest problem in which probing pays.

Source: experiment 1 of Klenske and Hennig, "Dual control for approximate Bayesian reinforcement learning", JMLR 17
(2016). Why: the expected cost itself can be minimised, by nested quadrature (`exact`).
"""

from symdual.paper.models.toy import model, scenario

__all__ = ["model", "scenario"]
regret_beyond = "exact"
