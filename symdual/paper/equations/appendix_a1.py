"""Appendix A up to A.1, Derivation of the Multi-Step KF Formulation, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

_PREDICTED = "(A[0] @ P0 @ A[0].T + Q)"
_G_INVERSE = (
    "stack([[inv(S1) + inv(S1) @ H @ g01 @ H.T @ inv(S2) @ H @ g10 @ H.T @ inv(S1),"
    " -inv(S1) @ H @ g01 @ H.T @ inv(S2)], [-inv(S2) @ H @ g10 @ H.T @ inv(S1), inv(S2)]])"
)
_F = "blocks(m + 1, lambda i, j: one if i == j else (nil if i < j else product(A, i - 1, j)))"
_F_INVERSE = "blocks(m + 1, lambda i, j: one if i == j else (-A[j] if i == j + 1 else nil))"
_F_LATEX = r"""\F = \begin{bmatrix}
    I & 0 & 0 &  \cdots & 0 \\
    A_1 & I & 0 &  \cdots & 0 \\
    A_2 A_1 & A_2 & I &  \cdots & 0 \\
    \vdots & & & \ddots & \\
    A_m \cdots A_1 & A_m \cdots A_2 & \cdots & & I \\
    \end{bmatrix}"""
_F_INVERSE_LATEX = r"""\F\inv =
    \begin{bmatrix}
    I & 0 & 0  & \cdots & 0 \\
    -A_1 & I & 0  & \cdots & 0 \\
    0 & -A_2 & I  & \cdots & 0 \\
    \vdots & \ddots & \ddots & \ddots & \\
    0 & \cdots &  0 &  -A_m & I \\
    \end{bmatrix}"""

EQUATIONS = (
    Equation(
        id="A.density",
        section="A",
        title="belief of the filter",
        line=1654,
        latex=r"p(z_k) = \N(z_k,m_k,P_k)",
        machine="N(m0, P0)",
        introduces="m_k, P_k",
    ),
    Equation(
        id="A.1.one-step",
        section="A.1",
        title="covariance after one step",
        line=1665,
        label="eq:single-step",
        latex=r"""P_1 = \left(A_0 P_0 A_0\T + Q\right) - \left(A_0 P_0 A_0\T + Q\right)H\T
  S_1\inv H \left(A_0 P_0 A_0\T + Q\right)\T""",
        machine=f"{_PREDICTED} - {_PREDICTED} @ H.T @ inv(S1) @ H @ {_PREDICTED}.T",
    ),
    Equation(
        id="A.1.innovation",
        section="A.1",
        title="covariance of the first measurement",
        line=1669,
        latex=r"S_1 = H\left(A_0 P_0 A_0\T + Q\right)H\T + R",
        machine=f"H @ {_PREDICTED} @ H.T + R",
    ),
    Equation(
        id="A.1.predicted",
        section="A.1",
        title="predicted covariance of the second step, inserted",
        line=1678,
        label="eq:compact-notation",
        latex=r"""\left(A_1  P_1  A_1\T + Q\right)\\
  =
  \left(A_1  \left[
  \left(A_0 P_0 A_0\T + Q\right) - \left(A_0 P_0 A_0\T + Q\right)H\T
    S_1\inv  H \left(A_0 P_0 A_0\T + Q\right)\T
  \right]  A_1\T + Q\right)""",
        machine=f"A[1] @ ({_PREDICTED} - {_PREDICTED} @ H.T @ inv(S1) @ H @ {_PREDICTED}.T) @ A[1].T + Q",
    ),
    Equation(
        id="A.1.predicted-expanded",
        section="A.1",
        title="predicted covariance of the second step, multiplied out",
        line=1684,
        label="eq:compact-notation",
        latex=r"""=
  \underbrace{A_1 \left(A_0 P_0 A_0\T + Q\right) A_1\T + Q}_{\ce g_{11}}
   -
   \underbrace{A_1 \left(A_0 P_0 A_0\T + Q\right)}_{\ce g_{10}}H\T
  (\underbrace{S_1}_{\ce g_{00}})\inv
  H \underbrace{\left(A_0 P_0 A_0\T + Q\right) A_1\T}_{\ce g_{01}}""",
        machine=f"A[1] @ {_PREDICTED} @ A[1].T + Q - A[1] @ {_PREDICTED} @ H.T @ inv(S1) @ H @ {_PREDICTED} @ A[1].T",
    ),
    Equation(
        id="A.1.g00",
        section="A.1",
        title="the symbol g_00",
        line=1688,
        label="eq:compact-notation",
        latex=r"\underbrace{S_1}_{\ce g_{00}}",
        machine="S1",
        restated=(Restated(1752, _PREDICTED),),
    ),
    Equation(
        id="A.1.predicted-compact",
        section="A.1",
        title="predicted covariance of the second step, compact",
        line=1692,
        label="eq:compact-notation",
        latex=r"g_{11} - g_{10}H\T g_{00}\inv H g_{01}",
        machine="g11 - g10 @ H.T @ inv(g00) @ H @ g01",
        restated=(Restated(1697, "g11 - g10 @ H.T @ inv(S1) @ H @ g01"),),
    ),
    Equation(
        id="A.1.second-innovation",
        section="A.1",
        title="covariance of the second measurement",
        line=1694,
        latex=r"\text{defining $S_2$ analogously to $S_1$}",
        machine="H @ (A[1] @ P1 @ A[1].T + Q) @ H.T + R",
        inline=True,
    ),
    Equation(
        id="A.1.two-steps",
        section="A.1",
        title="covariance after two steps",
        line=1697,
        latex=r"""P_2 = \left(g_{11} - g_{10}H\T S_1\inv H g_{01}\right)
  - \left(g_{11} - g_{10}H\T S_1\inv H g_{01}\right)
  H\T S_2\inv H \left(g_{11} - g_{10}H\T S_1\inv H g_{01}\right)""",
        machine="(g11 - g10 @ H.T @ inv(S1) @ H @ g01) - (g11 - g10 @ H.T @ inv(S1) @ H @ g01)"
        " @ H.T @ inv(S2) @ H @ (g11 - g10 @ H.T @ inv(S1) @ H @ g01)",
    ),
    Equation(
        id="A.1.two-steps-expanded",
        section="A.1",
        title="covariance after two steps, multiplied out",
        line=1702,
        latex=r"""P_2 = g_{11} - g_{10}H\T S_1\inv H g_{01}
  - g_{11}H\T S_2\inv H g_{11}
  - g_{10}H\T S_1\inv H g_{01} H\T S_2\inv H g_{10}H\T S_1\inv H g_{01}\\
  + g_{11}H\T S_2\inv H g_{10}H\T S_1\inv H g_{01}
  + g_{10}H\T S_1\inv H g_{01} H\T S_2\inv H g_{11}""",
        machine="g11 - g10 @ H.T @ inv(S1) @ H @ g01 - g11 @ H.T @ inv(S2) @ H @ g11"
        " - g10 @ H.T @ inv(S1) @ H @ g01 @ H.T @ inv(S2) @ H @ g10 @ H.T @ inv(S1) @ H @ g01"
        " + g11 @ H.T @ inv(S2) @ H @ g10 @ H.T @ inv(S1) @ H @ g01"
        " + g10 @ H.T @ inv(S1) @ H @ g01 @ H.T @ inv(S2) @ H @ g11",
    ),
    Equation(
        id="A.1.two-steps-block",
        section="A.1",
        title="covariance after two steps, in blocks",
        line=1709,
        latex=r"""P_2 = g_{11} - \begin{bmatrix}g_{10}H\T & g_{11}H\T\end{bmatrix}
  \underbrace{
  \begin{bmatrix}
  S_1\inv + S_1\inv H g_{01} H\T S_2\inv H g_{10}H\T S_1\inv &
  -S_1\inv H g_{01} H\T S_2\inv \\
  -S_2\inv H g_{10} H\T S_1\inv&
  S_2\inv
  \end{bmatrix}
  }_{\ce G\inv}
  \begin{bmatrix}H g_{01} \\ H g_{11}\end{bmatrix}""",
        machine=f"g11 - stack([[g10 @ H.T, g11 @ H.T]]) @ {_G_INVERSE} @ stack([[H @ g01], [H @ g11]])",
    ),
    Equation(
        id="A.1.gram-inverse",
        section="A.1",
        title="inverse of the Gram matrix",
        line=1710,
        latex=r"""\underbrace{
  \begin{bmatrix}
  S_1\inv + S_1\inv H g_{01} H\T S_2\inv H g_{10}H\T S_1\inv &
  -S_1\inv H g_{01} H\T S_2\inv \\
  -S_2\inv H g_{10} H\T S_1\inv&
  S_2\inv
  \end{bmatrix}
  }_{\ce G\inv}""",
        machine=_G_INVERSE,
    ),
    Equation(
        id="A.1.schur",
        section="A.1",
        title="Gram matrix of two measurements",
        line=1722,
        latex=r"""G
  =
  \begin{bmatrix}
  H g_{00} H\T + R &
  H g_{01} H\T \\
  H g_{10} H\T &
  H g_{11} H\T + R
  \end{bmatrix}""",
        machine="stack([[H @ g00 @ H.T + R, H @ g01 @ H.T], [H @ g10 @ H.T, H @ g11 @ H.T + R]])",
    ),
    Equation(
        id="A.1.full-measurement",
        section="A.1",
        title="covariance after two steps for H = I",
        line=1735,
        label="eq:twostep-result",
        latex=r"""P_2 = g_{11}
  - \begin{bmatrix}g_{10}\T & g_{11}\T\end{bmatrix}
    \begin{bmatrix}
  g_{00}+ R &
  g_{01}\\
  g_{10}&
  g_{11} + R
  \end{bmatrix}\inv
  \begin{bmatrix}g_{01} \\ g_{11}\end{bmatrix}""",
        machine="g11 - stack([[g10.T, g11.T]]) @ inv(stack([[g00 + R, g01], [g10, g11 + R]])) @ stack([[g01], [g11]])",
        restated=(
            Restated(
                1746,
                "g11 - stack([[g10, g11]]) @ inv(stack([[g00 + R, g01], [g10, g11 + R]])) @ stack([[g01], [g11]])",
            ),
        ),
    ),
    Equation(
        id="A.1.full-measurement-expanded",
        section="A.1",
        title="covariance after two steps for H = I, inserted",
        line=1745,
        label="eq:twostep-result",
        latex=r"""A_1 \left(A_0 P_0 A_0\T + Q\right) A_1\T + Q
  - \begin{bmatrix}A_1 \left(A_0 P_0 A_0\T + Q\right) &
    \left( A_1 \left(A_0 P_0 A_0\T + Q\right) A_1\T + Q \right)\end{bmatrix}
    \\
    \cdot
  \begin{bmatrix}
  \left(A_0 P_0 A_0\T + Q\right) + R &
  \left(A_0 P_0 A_0\T + Q\right) A_1\T \\
  A_1 \left(A_0 P_0 A_0\T + Q\right) &
  \left( A_1 \left(A_0 P_0 A_0\T + Q\right) A_1\T + Q \right) + R
  \end{bmatrix}\inv
  \begin{bmatrix}\left(A_0 P_0 A_0\T + Q\right) A_1\T \\
  \left( A_1 \left(A_0 P_0 A_0\T + Q\right) A_1\T + Q \right)\end{bmatrix}""",
        machine=f"A[1] @ {_PREDICTED} @ A[1].T + Q"
        f" - stack([[A[1] @ {_PREDICTED}, A[1] @ {_PREDICTED} @ A[1].T + Q]])"
        f" @ inv(stack([[{_PREDICTED} + R, {_PREDICTED} @ A[1].T],"
        f" [A[1] @ {_PREDICTED}, A[1] @ {_PREDICTED} @ A[1].T + Q + R]]))"
        f" @ stack([[{_PREDICTED} @ A[1].T], [A[1] @ {_PREDICTED} @ A[1].T + Q]])",
    ),
    Equation(
        id="A.1.gram",
        section="A.1",
        title="Gram matrix of all measurements",
        line=1763,
        latex=r"G = \F\P\F\T + \F\Q\F\T + \R",
        machine="F @ calP @ F.T + F @ calQ @ F.T + calR",
    ),
    Equation(
        id="A.1.prior-block",
        section="A.1",
        title="block of the prior covariance",
        line=1767,
        latex=r"\P = \begin{bmatrix} P_0 & 0 \\ 0 & 0 \end{bmatrix}",
        machine="corner(P0)",
    ),
    Equation(
        id="A.1.drift-block",
        section="A.1",
        title="block of the drift covariance",
        line=1768,
        latex=r"\Q = \left(Q\otimes I\right)",
        machine="kron(Q, identity(k))",
    ),
    Equation(
        id="A.1.noise-block",
        section="A.1",
        title="block of the measurement covariance",
        line=1769,
        latex=r"\R = \left(R\otimes I\right)",
        machine="kron(R, identity(k))",
    ),
    Equation(
        id="A.1.transition",
        section="A.1",
        title="multi-step transition matrix",
        line=1774,
        latex=_F_LATEX,
        machine=_F,
    ),
    Equation(
        id="A.1.transition-inverse",
        section="A.1",
        title="inverse of the multi-step transition matrix",
        line=1782,
        latex=_F_INVERSE_LATEX,
        machine=_F_INVERSE,
    ),
    Equation(
        id="A.1.covariance",
        section="A.1",
        title="covariance after k steps",
        line=1794,
        latex=r"""P_k = \F_{k,:}(\P + \Q)\F_{k,:}\T - \F_{k,:}(\P + \Q)\F (\F\P\F\T + \F\Q\F\T +
\R)\inv \F\T (\P + \Q) \F_{:,k}""",
        machine="row(F, k) @ (calP + calQ) @ row(F, k).T - row(F, k) @ (calP + calQ) @ F"
        " @ inv(F @ calP @ F.T + F @ calQ @ F.T + calR) @ F.T @ (calP + calQ) @ column(F, k)",
    ),
    Equation(
        id="A.1.covariance-compact",
        section="A.1",
        title="covariance after k steps, compact",
        line=1800,
        label="eq:cov-prediction",
        latex=r"""P_k = \F_{k,:}(\P + \Q)\F_{k,:}\T - \F_{k,:}(\P + \Q)(\P + \Q +
\F\inv\R\F^{-\intercal})\inv (\P + \Q) \F_{:,k}""",
        machine="row(F, k) @ (calP + calQ) @ row(F, k).T - row(F, k) @ (calP + calQ)"
        " @ inv(calP + calQ + inv(F) @ calR @ inv(F).T) @ (calP + calQ) @ column(F, k)",
    ),
    Equation(
        id="A.1.mean",
        section="A.1",
        title="mean after k steps",
        line=1806,
        label="eq:mean-prediction",
        latex=r"""m_k = \F_{k,0} m_0 + \F_{k,:}(\P + \Q)(\P + \Q +
\F\inv\R\F^{-\intercal})\inv \vec{y}""",
        machine="block(k, 0) @ m0 + row(F, k) @ (calP + calQ) @ inv(calP + calQ + inv(F) @ calR @ inv(F).T) @ y",
    ),
)
