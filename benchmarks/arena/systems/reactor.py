"""A stirred tank is to be ignited, whose reaction is sixteen hundred times faster hot than cold.

Source: the exothermic tank of Seborg, Edgar and Mellichamp, "Process Dynamics and Control" (Wiley), with priors and
noise of the project's tests of stiff models. Why: implicit steps, and an instability that nobody may miss.
"""

from tests.models.stiff import ignites as scenario
from tests.models.stiff import ignition as model

__all__ = ["model", "scenario"]
