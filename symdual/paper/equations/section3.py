"""Section 3, Bayesian RL and Dual Control, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

EQUATIONS = (
    Equation(
        id="3.augmented-state",
        section="3",
        title="length of the augmented state",
        line=410,
        latex=r"z_k\T = \begin{pmatrix} x_k\T & \t_k\T\end{pmatrix}\in\Re^{(m+2)n}",
        machine="(m + 2) * n",
        inline=True,
    ),
    Equation(
        id="3.observation-density",
        section="3",
        title="density of the measurement, augmented",
        line=415,
        latex=r"p(y_k\g z_k) =\N(y_k;\tilde{C}z_k,R)",
        machine="N(Ctilde @ z, R)",
        inline=True,
    ),
    Equation(
        id="3.observation-map",
        section="3",
        title="observation of the augmented state",
        line=416,
        latex=r"\tilde{C}=\begin{bmatrix}C & \vec{0}\end{bmatrix}",
        machine="stack([[C, zeros(d, (m + 1) * n)]])",
        inline=True,
    ),
    Equation(
        id="3.1.toy",
        section="3.1",
        title="the toy system",
        line=467,
        label="eq:toy-example",
        latex=r"x_{k+1} = a x_k + b u_k + \xi_k",
        machine="a*x + b*u + xi",
        introduces="toy",
    ),
    Equation(
        id="3.1.oracle",
        section="3.1",
        title="input of the oracle",
        line=473,
        latex=r"u_{k,\text{oracle}} ^* = -\frac{a b x_k}{U + b^2}",
        machine="-(a*b*x) / (U + b**2)",
    ),
    Equation(
        id="3.1.certainty-equivalent",
        section="3.1",
        title="certainty equivalent input",
        line=482,
        latex=r"u_{k,\CE}^* = -\frac{a\mbk x_k}{U + \mbk^2}",
        machine="-(a*mu*x) / (U + mu**2)",
    ),
    Equation(
        id="3.1.expected-cost",
        section="3.1",
        title="expected cost of one step",
        line=489,
        latex=r"\Exp_{b}[ x_{k+1}^2 + U u_k ^2 \g \mbk, \sbk]",
        machine="E(lambda b: (a*x + b*u + xi)**2 + U*u**2)",
        introduces="one-step cost",
        inline=True,
    ),
    Equation(
        id="3.1.cautious",
        section="3.1",
        title="optimal feedback (cautious) input",
        line=496,
        label="eq:2",
        latex=r"u_{k,\OF}^* = -\frac{a\mbk x_k}{U + \sbk + \mbk^2}",
        machine="-(a*mu*x) / (U + s2 + mu**2)",
    ),
    Equation(
        id="3.1.belief-update",
        section="3.1",
        title="belief on b after one step",
        line=505,
        label="eq:belief-update",
        latex=r"""p(b\g \mbkp, \sbkp) = \N(b; \mu_{k+1}, \sbkp) \\ = \N\left(b;
  \frac{\sbk \uk (b \uk + \xi_k) + \mbk Q}{\uk^2 \sbk + Q}, \frac{\sbk
  Q}{\uk^2\sbk + Q}\right)""",
        machine="normal(lambda b: ((s2*u*(b*u + xi) + mu*Q) / (u**2*s2 + Q), (s2*Q) / (u**2*s2 + Q)))",
    ),
    Equation(
        id="3.1.turn-off",
        section="3.1",
        title="turn-off for large variance",
        line=511,
        latex=r"u_{k,\OF} ^*\to 0",
        machine="0",
        inline=True,
    ),
    Equation(
        id="3.1.turn-off-variance",
        section="3.1",
        title="variance that stays, for large variance",
        line=512,
        latex=r"\sigma_{k+1} ^2\to \sigma_{k} ^2",
        machine="1",
        inline=True,
    ),
    Equation(
        id="3.1.second-input",
        section="3.1",
        title="second input of two",
        line=533,
        label="eq:preposterior-control",
        latex=r"""u_{1}^* = -\left[U +
    \frac{\sigma_0 ^2 Q}{u_0 ^2\sigma_0 ^2
      +  Q} + \left(\frac{\sigma_0 ^2 u_0 (b u_0 + \xi_0) + \mu_0
        Q}{u_0 ^2 \sigma_0 ^2 + Q}\right)^2\right]^{-1}
    \left[a \frac{\sigma_0 ^2 u_0 (b u_0 +
      \xi_0) + \mu_0 Q}{u_0 ^2 \sigma_0 ^2 + Q} x_{1}\right]""",
        machine="-(U + (s0*Q) / (u0**2*s0 + Q) + ((s0*u0*(b*u0 + xi0) + mu0*Q) / (u0**2*s0 + Q))**2)**-1"
        " * (a * (s0*u0*(b*u0 + xi0) + mu0*Q) / (u0**2*s0 + Q) * x1)",
    ),
    Equation(
        id="3.1.two-steps",
        section="3.1",
        title="optimal cost of two steps, first line",
        line=545,
        label="eq:3",
        latex=r"""J_0^*(x_0) &= \min_{u_0} \Exp_{x_0}\left[W x_0^2 + U
      u_0^2 + \min_{u_1} \Exp_{x_1} \left[ Wx_1^2 + U u_1 ^2
        +\Exp_{x_2}[Wx_2 ^2]\right]\right]""",
        machine="W*x0**2 + U*u0**2 + E_x1(lambda x1, mu1, s1: minimum(lambda u1: W*x1**2 + U*u1**2"
        " + E_x2(lambda x2: W*x2**2, x1, u1, mu1, s1)))",
    ),
    Equation(
        id="3.1.two-steps-inserted",
        section="3.1",
        title="optimal cost of two steps, second line",
        line=548,
        label="eq:3",
        latex=r"""\min_{u_0} \left[ W x_0^2 + U u_0^2 +
      \Exp_{\xi_0,b} \left[ Wx_1^2 + U (u_1 ^*) ^2
        +\Exp_{\xi_1,b}\left[W(x_1+b u_1 ^* + \xi_1)^2\g \mu_1, \sigma_1 \right]
    \g \mu_0, \sigma_0\right]\right]""",
        machine="W*x0**2 + U*u0**2 + E_xi0_b(lambda x1, mu1, s1, u1: W*x1**2 + U*u1**2"
        " + E_xi1_b(lambda xi1, b: W*(x1 + b*u1 + xi1)**2, mu1, s1))",
        restated=(
            Restated(
                467,
                "W*x0**2 + U*u0**2 + E_xi0_b(lambda x1, mu1, s1, u1: W*x1**2 + U*u1**2"
                " + E_xi1_b(lambda xi1, b: W*(a*x1 + b*u1 + xi1)**2, mu1, s1))",
            ),
        ),
    ),
    Equation(
        id="3.1.order",
        section="3.1",
        title="order of the second input",
        line=554,
        latex=r"\text{rational function of fourth order in $b_0$}",
        machine="('b', 4)",
        inline=True,
    ),
    Equation(
        id="3.1.even-order",
        section="3.1",
        title="order of a sampled cost",
        line=561,
        latex=r"""\text{Each sample is a
rational function of even leading order}""",
        machine="'even'",
        inline=True,
    ),
    Equation(
        id="3.1.narrower",
        section="3.1",
        title="width of the dual cost",
        line=563,
        latex=r"\text{the dual cost is much narrower}",
        machine="dict(share=width(setting, 'exact') / width(setting, 'ce'))",
        inline=True,
    ),
    Equation(
        id="3.1.more-cautious",
        section="3.1",
        title="size of the dual input",
        line=563,
        latex=r"""\text{leading to more cautious behavior of the dual
controller}""",
        machine="dict(share=size(setting, 'exact') / size(setting, 'ce'))",
        inline=True,
    ),
    Equation(
        id="3.1.either-side",
        section="3.1",
        title="minima of the dual cost",
        line=564,
        latex=r"""\text{The average dual cost has its minima not at zero, but to either
side of it}""",
        machine="('below zero', 'above zero')",
        inline=True,
    ),
    Equation(
        id="3.1.no-closed-form",
        section="3.1",
        title="expectations without closed form",
        line=556,
        latex=r"\text{the relevant expectations cannot be computed in closed form}",
        machine="None",
        inline=True,
    ),
)
