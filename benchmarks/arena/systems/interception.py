"""A plant of third order with six unknowns has to hit a target at one moment.

Source: Tse and Bar-Shalom, "An actively adaptive control for linear systems with random parameters via the dual
control approach", IEEE Transactions on Automatic Control 18 (1973), with another plant in each run, drawn from their
prior. Why: the example with which dual control was shown to work.
"""

from symdual.paper.models.tse_bar_shalom import model, scenario

__all__ = ["model", "scenario"]
