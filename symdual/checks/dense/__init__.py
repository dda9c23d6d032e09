"""Dense numpy recursions: the equations of the filter, the plan and the dual cost, written down with full matrices.

No structure is exploited and nothing is shared with the generated code, so that agreement means something. For small
sizes and clarity, not for speed.

    x' = f(x, u, theta) + N(0, Q),   theta' = D theta + N(0, Xi),   y = h(x, theta) + N(0, R),   z = (x, theta)

model    model, noise, cost and belief as functions and full matrices
filters  prediction and update, to first and second order, at the most probable point, and recalibrated
plans    nominal cost, dual cost with what it is made of, the closed loop, the best plan
saturation  what inputs within bounds can answer
"""

from symdual.checks.dense.filters import *  # noqa: F403
from symdual.checks.dense.model import *  # noqa: F403
from symdual.checks.dense.plans import *  # noqa: F403
from symdual.checks.dense.saturation import *  # noqa: F403
