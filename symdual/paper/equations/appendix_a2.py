"""Appendix A.2, Augmenting the State, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

EQUATIONS = (
    Equation(
        id="A.2.system-state",
        section="A.2",
        title="nonlinear system, state",
        line=1818,
        label="eq:system-equations-augmented",
        latex=r"x_k &= f( x_{k-1}) + q_{k-1}  & q_{k-1}&\sim\N(0,Q)",
        machine="f(x[k - 1]) + q[k - 1]",
        introduces="autonomous system",
    ),
    Equation(
        id="A.2.system-measurement",
        section="A.2",
        title="nonlinear system, measurement",
        line=1819,
        label="eq:system-equations-augmented",
        latex=r"y_k &= H x_k + r_k  & r_k&\sim\N(0,R)",
        machine="H @ x[k] + r[k]",
        introduces="measurement of the autonomous system",
    ),
    Equation(
        id="A.2.weight-space",
        section="A.2",
        title="weight-space view",
        line=1823,
        latex=r"""f =
\Phi\T w""",
        machine="Phi(x).T @ w",
        introduces="w",
        inline=True,
    ),
    Equation(
        id="A.2.state",
        section="A.2",
        title="augmented state",
        line=1827,
        latex=r"z = \begin{pmatrix}x\\w\end{pmatrix}",
        machine="stack([[x[k]], [w]])",
        introduces="augmented z",
    ),
    Equation(
        id="A.2.blocks",
        section="A.2",
        title="blocks of the augmented covariance",
        line=1828,
        latex=r"""\Sigma = \begin{pmatrix} P & \Sigma^{xw} \\ \Sigma^{wx} & \Sigma^{ww}
\end{pmatrix}""",
        machine="stack([[P0, Sxw], [Sxw.T, Sww]])",
        introduces="augmented Sigma",
    ),
    Equation(
        id="A.2.jacobian",
        section="A.2",
        title="Jacobian of the augmented system",
        line=1830,
        latex=r"""J_A = \begin{pmatrix} \frac{\de \bar f}{\de x} & \frac{\de \bar f}{\de w} \\
  0 & I \end{pmatrix}
  = \begin{pmatrix} A & \Phi \\
  0 & I \end{pmatrix}""",
        machine="stack([[slope(lambda s: f(s, w), x), Phi(x)], [zeros(p, n), identity(p)]])",
    ),
    Equation(
        id="A.2.replaced",
        section="A.2",
        title="two-step formula for the augmented state",
        line=1835,
        latex=r"""\text{the original $x$ is replaced by the
augmented $z$, $P$ by $\Sigma$ and $A$ by $J_A$}""",
        machine="two_steps",
        inline=True,
        restated=(Restated(1709, "two_steps_with_H"),),
    ),
    Equation(
        id="A.2.gram-two",
        section="A.2",
        title="Gram matrix of two measurements with features",
        line=1843,
        latex=r"""G^\star = G + \begin{pmatrix}
  \Phi_0 \Sigma^{ww}_0 \Phi_0\T&
  \Phi_0 \Sigma^{ww}_0 \left(\Phi_0\T A_1\T + \Phi_1\T\right)\\
  \left(A_1 \Phi_0 + \Phi_1 \right) \Sigma^{ww}_0 \Phi_0\T &
  \left(A_1 \Phi_0 + \Phi_1 \right) \Sigma^{ww}_0 \left(\Phi_0\T A_1\T +
\Phi_1\T\right)
\end{pmatrix}""",
        machine="G + stack([[Phi[0] @ Sww @ Phi[0].T, Phi[0] @ Sww @ (Phi[0].T @ A[1].T + Phi[1].T)],"
        " [(A[1] @ Phi[0] + Phi[1]) @ Sww @ Phi[0].T,"
        " (A[1] @ Phi[0] + Phi[1]) @ Sww @ (Phi[0].T @ A[1].T + Phi[1].T)]])",
    ),
    Equation(
        id="A.2.kernel",
        section="A.2",
        title="inner product that is the kernel",
        line=1854,
        latex=r"\Phi(x) \Sigma^{ww}_0 \Phi(x)\T",
        machine="Phi(x) @ Sww @ Phi(x).T",
        restated=(
            Restated(
                1854,
                "total(1, p, lambda i: total(1, p, lambda j: phi(i, x) * Sww.array[i-1, j-1] @ phi(j, x2).T))",
            ),
        ),
    ),
    Equation(
        id="A.2.kernel-sum",
        section="A.2",
        title="kernel as a double sum",
        line=1854,
        latex=r"""\sum \phi_i(x) \Sigma^{ww}_{0,ij} \phi_j(x')
=
\kappa(x,x')""",
        machine="total(1, p, lambda i: total(1, p, lambda j: phi(i, x) * Sww.array[i-1, j-1] @ phi(j, x2).T))",
    ),
    Equation(
        id="A.2.gram-kernel",
        section="A.2",
        title="Gram matrix of two measurements with kernels",
        line=1860,
        latex=r"""G^\star = G + \begin{pmatrix}
  \kappa_{00} &
  \kappa_{00} A_1\T + \kappa_{01}\\
  A_1 \kappa_{00} + \kappa_{10} &
  A_1 \kappa_{00} A_1 \T + \kappa_{10} A_1\T + A_1
  \kappa_{01} + \kappa_{11}
\end{pmatrix}""",
        machine="G + stack([[kappa[0, 0], kappa[0, 0] @ A[1].T + kappa[0, 1]], [A[1] @ kappa[0, 0] + kappa[1, 0],"
        " A[1] @ kappa[0, 0] @ A[1].T + kappa[1, 0] @ A[1].T + A[1] @ kappa[0, 1] + kappa[1, 1]]])",
    ),
    Equation(
        id="A.2.gram",
        section="A.2",
        title="Gram matrix of all measurements with kernels",
        line=1872,
        latex=r"G^{\star} = \F\P\F\T + \F\Q\F\T + \F\K\F\T + \R",
        machine="F @ calP @ F.T + F @ calQ @ F.T + F @ calK @ F.T + calR",
    ),
    Equation(
        id="A.2.kernel-block",
        section="A.2",
        title="points of the kernel matrix",
        line=1874,
        latex=r"\K = \kappa(\vec{y}_{1:m},\vec{y}_{1:m})",
        machine="kernel(y_at, 1, m)",
        inline=True,
    ),
    Equation(
        id="A.2.stable",
        section="A.2",
        title="what absorbing the transition is good for",
        line=1874,
        latex=r"""\text{inference is more compact
and
numerically stable if we absorb $\F$ into the Gram matrix}""",
        machine="'stable'",
        inline=True,
    ),
    Equation(
        id="A.2.gram-compact",
        section="A.2",
        title="Gram matrix with the transition absorbed",
        line=1879,
        latex=r"\G = \P + \Q + \K + \F\inv\R\F^{-\intercal}",
        machine="calP + calQ + calK + inv(F) @ calR @ inv(F).T",
    ),
    Equation(
        id="A.2.covariance",
        section="A.2",
        title="covariance of the state",
        line=1884,
        latex=r"""P_k = \F_{k,:}(\P + \Q + \K)\F_{k,:}\T - \F_{k,:}(\P + \Q + \K)\G\inv (\P +
\Q + \K) \F_{:,k}""",
        machine="row(F, k) @ (calP + calQ + calK) @ row(F, k).T"
        " - row(F, k) @ (calP + calQ + calK) @ inv(calG) @ (calP + calQ + calK) @ column(F, k)",
    ),
    Equation(
        id="A.2.cross",
        section="A.2",
        title="covariance of weights and state",
        line=1888,
        latex=r"""\Sigma^{wx}_k = \left(\Sigma^{xw}_k\right)\T = \F_{k,:} \Phi(\vec{y})
\Sigma^{ww}_0
  - \F_{k,:} \left( \P + \K + \Q \right)
  \G\inv\Phi(\vec{y})\Sigma^{ww}_0""",
        machine="row(F, k) @ Phi_all @ Sww - row(F, k) @ (calP + calK + calQ) @ inv(calG) @ Phi_all @ Sww",
        restated=(
            Restated(
                1148,
                "(row(F, k) @ Phi_all @ Sww - row(F, k) @ (calP + calK + calQ) @ inv(calG) @ Phi_all @ Sww).T",
            ),
        ),
    ),
    Equation(
        id="A.2.weight-covariance",
        section="A.2",
        title="covariance of the weights",
        line=1894,
        latex=r"""\Sigma^{ww}_k = \Sigma^{ww}_0 - \Sigma^{ww}_0\Phi(\vec{y})\T
  \G\inv\Phi(\vec{y})\Sigma^{ww}_0""",
        machine="Sww - Sww @ Phi_all.T @ inv(calG) @ Phi_all @ Sww",
    ),
    Equation(
        id="A.2.mean",
        section="A.2",
        title="mean of the state",
        line=1901,
        latex=r"m_k = \F_{k,0} m_0 + \F_{k,:}(\P + \Q + \K)\G\inv \vec{y}",
        machine="block(k, 0) @ m0 + row(F, k) @ (calP + calQ + calK) @ inv(calG) @ y",
    ),
    Equation(
        id="A.2.weight-mean",
        section="A.2",
        title="mean of the weights",
        line=1904,
        latex=r"""\bar w_k = \bar w_0 + \Sigma^{ww}_0\Phi(\vec{y})\T
  \G\inv\vec{y}""",
        machine="w0 + Sww @ Phi_all.T @ inv(calG) @ y",
    ),
)
