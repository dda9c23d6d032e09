"""Filling up to a brim with a pump of unknown strength: the best level lies on a constraint.

Source: `examples/brim.py`. Why: what is known decides how near to the limit one may go.
"""

from examples.brim import model, scenario

__all__ = ["model", "scenario"]
