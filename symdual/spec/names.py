"""Which names a user's symbols may have: they become local variables of the generated code."""

from __future__ import annotations

import keyword
import re

from symdual.common.errors import ModelError

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")

#: Names that generated modules use themselves. Every other name of the generator begins with an underscore.
RESERVED = frozenset(
    """
    math np numba njit range max min abs float int len
    time_index z_in u_in costate data work step_length COUNT
    f_out f_x_out f_u_out f_theta_out h_out h_x_out h_theta_out
    terms_out terms_x_out terms_u_out hessian_xx_out hessian_ux_out constraints_out constraints_x_out constraints_u_out
    constraints_theta_out noise_out noise_x_out noise_u_out joint_in turns_x_out turns_u_out
    core_out input_out uu_out diagonal_out left_out right_out hessian_out points_out gains_out
    dynamics linearise dynamics_jacobian dynamics_hessian dynamics_hessians
    observation observation_jacobian observation_hessian observation_hessians process_points
    """.split()
)


def check_name(name: str, what: str) -> str:
    """Return `name` when it can stand in generated code, otherwise raise a `ModelError`."""
    if not isinstance(name, str):
        raise ModelError(f"{what} has the name {name!r}, which is not a text")
    shown = name if len(name) <= 60 else name[:57] + "..."
    if not _IDENTIFIER.match(name):
        raise ModelError(
            f"{what} has the name {shown!r}, which is not an identifier of letters, digits and underscores"
        )
    if keyword.iskeyword(name):
        raise ModelError(f'{what} is named "{shown}", which is a Python keyword')
    if name in RESERVED:
        raise ModelError(f'{what} is named "{shown}", a name that the generated code uses itself')
    return name
