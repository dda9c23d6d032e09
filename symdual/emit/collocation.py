"""An implicit step: the equations of its stages, how they are solved, and their derivatives.

A step consists of parts, x_0 = x, x_1, ..., f = x_N, each with a length h and stages that are found together:

    r_i = X_i - x_n - h sum_j A_ij g(X_j, u, theta) = 0,       x_{n+1} = X_s,       J = 1 - h A x G_x

Newton's method, X <- X - J^-1 r with the exact G_x, starts from x_n or, warm, from the polynomial through the stages of
the part before, where both are whole substeps. A part is taken if corrections shrink tenfold each time until only
rounding is left (a state that was nothing before has no share that could shrink), and if det J > 0 all the way: that
holds for h -> 0, and where it changes sign there is another branch of solutions, on which X may be anywhere. A part
that is not taken is halved. So a substep is one part where g is kind, stiff or not, and several where something
explodes. There is a limit to how many; beyond it the step is not finite.

How a step is divided changes with (x, theta, u) now and then, and f jumps there by what the method is off. Everywhere
else the implicit function theorem gives its derivatives, exact for the equations that were solved. With
v = (x, theta, u), Z = dX/dv and V_j = [Z_j; 0 I 0; 0 0 I],

    J Z = dx_n/dv + h sum_j A_ij [0 G_theta G_u]_j,            dx_{n+1}/dv = Z_s
    J' mu = (0, ..., 0, lam_{n+1}),    lam_n = sum_i mu_i,     nu_j = h sum_i A_ij mu_i
    d2(lam' f)/dv2 = sum_n sum_j V_j' (nu_j' g_vv) V_j

The last line is that of explicit steps, with other weights: what a stage adds is `kernels/stage_hessian.py.jinja`. How
many stages there are is not known before, so weights by weights are always filled in (`emit.stages`).
"""

from __future__ import annotations

from symdual.integrators import Implicit


def sizes(method: Implicit, substeps: int, nx: int, nz: int, columns: int, entries: int) -> list[tuple[str, int, str]]:
    """What lies in the work array beside the arrays of all steps in loops: (name, size, meaning)."""
    stages, parts = method.stages, substeps + method.more_parts
    system = stages * nx
    return [
        ("TRAIL", nx + parts * system, "x, then the stages of all parts, the last of each being where it ends"),
        ("PART_TIME", parts, "when each part starts, and"),
        ("PART_SHARE", parts, "its length, as shares of the step"),
        ("PART_ADJOINT", parts * system, "nu"),
        ("LAM", nx, "derivative of lam' f by x at the end of a part"),
        ("STAGE_POINT", nz, "(x, theta) of a stage"),
        ("SLOPE", nx, "k of the last stage"),
        ("STAGE_SLOPES", system, "of each stage"),
        ("NEXT", nx, "x at the end"),
        ("ENTRY", entries, "entries of G_x of the last stage"),
        ("STAGE_JACOBIANS", stages * entries, "of each stage"),
        ("MATRIX", system * system, "J, factored, with the"),
        ("PIVOTS", system, "rows that its columns took"),
        ("RESIDUAL", system, "r, or mu"),
        ("SIZE", nx, "how large each state is, for corrections"),
        ("LARGEST", 1, "of these that are compared with those before"),
        ("BASE", nx * columns, "dx/dv at the start of a part"),
        ("Z", stages * nx * columns, "dX/dv of each stage"),
        ("K", nx * columns, "G_theta and G_u of the last stage"),
        ("FLOW", nx * columns, "dx/dv at the end"),
    ]
