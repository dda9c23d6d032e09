"""A vehicle that sees where it is only near a light, and has to stop elsewhere.

Source: the light-dark domain of Platt, Tedrake, Kaelbling and Lozano-Perez, "Belief space planning assuming maximum
likelihood observations", Robotics: Science and Systems (2010), in one dimension (`examples/light_dark.py`). Why:
nothing but the state is unknown, and noise depends on it.
"""

from examples.light_dark import model, scenario

__all__ = ["model", "scenario"]
