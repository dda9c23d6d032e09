"""Section 4, Approximate Dual Control for Linear Systems, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

_TRACE = (
    "0.5 * trace(W[T] @ Sxx(T, T)"
    " + total(k, T - 1, lambda j: W[j] @ Sxx(j, j) + (S(j + 1, j) - S(j + 1, j + 1)) @ K[j + 1]))"
)

EQUATIONS = (
    Equation(
        id="4.augmented-system",
        section="4",
        title="augmented system",
        line=714,
        label="eq:augmented-system",
        latex=r"""z_{k+1} =
  \begin{pmatrix}
    x_{k+1}\\\theta_{k+1}
  \end{pmatrix} =
  \begin{pmatrix}
    A(\theta_k) & 0 \\ 0 & \Id
  \end{pmatrix}z_k +
  \begin{pmatrix}
    B(\theta_k) \\ 0
  \end{pmatrix}u_k +
  \begin{pmatrix}
    \xi_k \\ 0
  \end{pmatrix}""",
        machine="stack([[A(theta), zeros(n, p)], [zeros(p, n), identity(p)]]) @ z"
        " + stack([[B(theta)], [zeros(p, 1)]]) @ u + stack([[xi], [zeros(p, 1)]])",
    ),
    Equation(
        id="4.augmented-map",
        section="4",
        title="map of the augmented system",
        line=727,
        label="eq:augmented-system",
        latex=r"\equalscolon \tilde f(z_k, u_k)",
        machine="stack([[A(theta), zeros(n, p)], [zeros(p, n), identity(p)]]) @ z"
        " + stack([[B(theta)], [zeros(p, 1)]]) @ u + stack([[xi], [zeros(p, 1)]])",
    ),
    Equation(
        id="4.nonlinear",
        section="4",
        title="kind of the augmented system",
        line=711,
        latex=r"""\text{a nonlinear system, because $\theta$ and $x$ interact multiplicatively}""",
        machine="'multiplicatively'",
        inline=True,
    ),
    Equation(
        id="4.inner-loop",
        section="4",
        title="name of the search's loop (caption of Figure 2)",
        line=698,
        latex=r"\text{The left cycle is the inner loop}",
        machine="'inner'",
        introduces="left cycle",
        inline=True,
    ),
    Equation(
        id="4.1.decoupled",
        section="4.1",
        title="parameters at their mean",
        line=743,
        latex=r"""\text{decouples $\theta$ entirely from $x$}""",
        machine="'decoupled'",
        inline=True,
    ),
    Equation(
        id="4.1.linear",
        section="4.1",
        title="shape of the control law",
        line=747,
        latex=r"\text{an optimal linear control law}",
        machine="'linear'",
        inline=True,
    ),
    Equation(
        id="4.1.control",
        section="4.1",
        title="certainty equivalent control law",
        line=749,
        latex=r"""\un_j^* = -\left(\Bn\T \Kn_{j+1} \Bn +
    U_j\right)\inv \Bn\T \left[ \Kn_{j+1} \An \bar{x}_j + \pn_{j+1} \right]""",
        machine="-inv(B.T @ K[j + 1] @ B + U[j]) @ B.T @ (K[j + 1] @ A @ x[j] + p[j + 1])",
    ),
    Equation(
        id="4.1.range",
        section="4.1",
        title="range of the recursion",
        line=754,
        latex=r"j=k+1,\dots,T",
        machine="span(k + 1, T)",
        inline=True,
    ),
    Equation(
        id="4.1.riccati",
        section="4.1",
        title="Riccati recursion of the nominal system",
        line=759,
        label="eq:dp-nominal",
        latex=r"""\Kn_j &= \An\T\left(\Kn_{j+1}-\Kn_{j+1}\Bn\left(\Bn\T
        \Kn_{j+1} \Bn
        + U_j\right)\inv \Bn\T \Kn_{j+1} \right) \An + W_j""",
        machine="A.T @ (K[j + 1] - K[j + 1] @ B @ inv(B.T @ K[j + 1] @ B + U[j]) @ B.T @ K[j + 1]) @ A + W[j]",
    ),
    Equation(
        id="4.1.riccati-end",
        section="4.1",
        title="end of the Riccati recursion",
        line=761,
        label="eq:dp-nominal",
        latex=r"\Kn_T &= W_T",
        machine="W[T]",
    ),
    Equation(
        id="4.1.offset",
        section="4.1",
        title="offset recursion of the nominal system",
        line=762,
        label="eq:dp-nominal",
        latex=r"""\pn_j &= \An\T\left(\pn_{j+1}-\Kn_{j+1}\Bn\left(\Bn\T
        \Kn_{j+1} \Bn + U_j\right)\inv \Bn\T \Kn_{j+1} \right)
    \pn_{j+1} - W_j r_j""",
        machine="A.T @ (p[j + 1] - K[j + 1] @ B @ inv(B.T @ K[j + 1] @ B + U[j]) @ B.T @ K[j + 1]) @ p[j + 1]"
        " - W[j] @ r[j]",
    ),
    Equation(
        id="4.1.offset-end",
        section="4.1",
        title="end of the offset recursion",
        line=764,
        label="eq:dp-nominal",
        latex=r"\pn_T &= -W_T r_T",
        machine="-W[T] @ r[T]",
    ),
    Equation(
        id="4.1.nominal-cost",
        section="4.1",
        title="inputs of the nominal cost",
        line=772,
        latex=r"""\bar{J}^*_k
= \cL(\bar{\vec{x}}_{k:T},\bar{\vec{u}}^* _{k:T})""",
        machine="span(k, T)",
        inline=True,
        restated=(Restated(769, "span(k, T - 1)"),),
    ),
    Equation(
        id="4.2.nominal-symbol",
        section="4.2",
        title="symbol of the nominal trajectory",
        line=781,
        latex=r"\text{around the nominal trajectory $\vec{x}$}",
        machine="x",
        inline=True,
        restated=(Restated(770, "xbar"),),
    ),
    Equation(
        id="4.2.perturbations",
        section="4.2",
        title="perturbations",
        line=789,
        latex=r"\dJ_j = J_j - \Jn_j, \dz_j = z_j - \zn_j,$ and $\du_j = u_j - \un_j",
        machine="stack([[J[j] - Jbar[j]], [z[j] - zbar[j]], [u[j] - ubar[j]]])",
        introduces="perturbations",
        inline=True,
    ),
    Equation(
        id="4.2.control-changes",
        section="4.2",
        title="effect of the state on the control",
        line=791,
        latex=r"""\text{a change in the state results in a change of
the control signal}""",
        machine="'changes'",
        inline=True,
    ),
    Equation(
        id="4.2.belief",
        section="4.2",
        title="belief on the perturbation",
        line=800,
        label="eq:6",
        latex=r"""p(\dz_j) = \N\left[
    \begin{pmatrix}
      \dx_j\\ \Delta \theta_j
    \end{pmatrix};
    \begin{pmatrix}
      \Delta \hat{x}_j \\ 0
    \end{pmatrix},
    \begin{pmatrix}
      \Sigma^{xx} _j & \Sigma^{x\theta} _j \\
      \Sigma^{\theta x} _j & \Sigma^{\theta\theta} _j \\
    \end{pmatrix} \right]""",
        machine="N(stack([[dx], [zeros(p, 1)]]), stack([[Sxx, Sxt], [Stx, Stt]]))",
        introduces="belief on the perturbation",
    ),
    Equation(
        id="4.2.shift",
        section="4.2",
        title="uncertainty of the perturbation",
        line=812,
        latex=r"""\text{shifting the mean to the nominal trajectory does not change the
uncertainty}""",
        machine="covariance(lambda z: z)",
        inline=True,
    ),
    Equation(
        id="4.2.parameters-stay",
        section="4.2",
        title="expected perturbation of the parameters",
        line=813,
        latex=r"""\text{the expected perturbation in the parameters is
nil}""",
        machine="zeros(p, 1)",
        inline=True,
    ),
    Equation(
        id="4.2.deterministic",
        section="4.2",
        title="effect of future measurements on the uncertainty",
        line=821,
        latex=r"\text{since these effects are deterministic}",
        machine="'deterministic'",
        inline=True,
    ),
    Equation(
        id="4.2.expansion",
        section="4.2",
        title="cost as nominal cost plus perturbation cost",
        line=826,
        latex=r"""J_k(\vec{u}_{k:T-1}, p(x_{k})) = \Jn_k^* + \dJ_k
    \approx \Jn_k^* + \Delta \tilde J_k""",
        machine="Jbar + dJ",
    ),
    Equation(
        id="4.2.perturbation-cost",
        section="4.2",
        title="cost of the perturbation",
        line=833,
        label="eq:5",
        latex=r"""\Delta \tilde J_k \ce \Exp_{\vec{x}_{k:T}}\left[ \sum_{j=k}^{T}
\left\{ (\bar{x}_j - r_j)\T W_j \dx_j + \frac{1}{2}\dx_j\T W_j \dx_j
    \right\} + \sum_{j=k}^{T-1} \left\{ \bar{u}_j\T
      U_j \du_j + \frac{1}{2}\du_j\T U_j \du_j\right\}\right]""",
        machine="E(lambda dx, du:"
        " total(k, T, lambda j: (xbar[j] - r[j]).T @ W[j] @ dx[j] + 0.5 * dx[j].T @ W[j] @ dx[j])"
        " + total(k, T - 1, lambda j: ubar[j].T @ U[j] @ du[j] + 0.5 * du[j].T @ U[j] @ du[j]))",
    ),
    Equation(
        id="4.2.higher-uncertainty",
        section="4.2",
        title="effect of uncertain parameters on the cost",
        line=842,
        latex=r"""\text{increases the expectation of the
quadratic term}""",
        machine="'increases'",
        inline=True,
    ),
    Equation(
        id="4.2.benefit",
        section="4.2",
        title="benefit of exploration",
        line=843,
        latex=r"""\text{Control that decreases uncertainty
in $\theta$ can lower this approximate cost}""",
        machine="'lowers'",
        inline=True,
    ),
    Equation(
        id="4.2.not-quadratic",
        section="4.2",
        title="shape of the perturbation cost",
        line=846,
        latex=r"\text{in fact still not a quadratic function}",
        machine="'not quadratic'",
        inline=True,
    ),
    Equation(
        id="4.2.no-closed-form",
        section="4.2",
        title="perturbation cost without closed form",
        line=846,
        latex=r"""\text{has no closed form
solution}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="4.2.ansatz",
        section="4.2",
        title="quadratic ansatz",
        line=849,
        latex=r"g_j + p_j\T \Delta z_j + \nicefrac{1}{2}\Delta z_j\T K_j \Delta z_j",
        machine="g[j] + p[j].T @ dz + 0.5 * dz.T @ K[j] @ dz",
        introduces="ansatz",
        inline=True,
    ),
    Equation(
        id="4.2.linear-terms",
        section="4.2",
        title="linear terms in the parameters",
        line=853,
        latex=r"\text{linear terms in these quantities vanish in the expectation}",
        machine="0.0",
        inline=True,
    ),
    Equation(
        id="4.2.optimal-perturbation",
        section="4.2",
        title="optimal cost of the perturbation, one step",
        line=858,
        label="eq:optimal-perturbation-cost",
        latex=r"""\Delta \tilde J_j^*(p(x_j)) = \underset{\du_j}{\min} \left\{ (x_j -
  r_j)\T W_j
  \dhx_{j|j} + \frac{1}{2}\dhx_{j|j}\T W_j \dhx_{j|j} + u_j\T U \du_j +
  \frac{1}{2}\du_j\T U \du_j
    \right. \\ \left.
    + \frac{1}{2} \tr\left[W_j \Sigma^{xx}_{j|j}\right]
    + \underset{\dx_{j+1}}{\Exp} \left[
  \Delta\tilde J_{j+1}^*(\vec{y}_{1:j+1}) \g
  p(x_j) \right] \right\}""",
        machine="minimum(lambda du: (x[j] - r[j]).T @ W[j] @ dx + 0.5 * dx.T @ W[j] @ dx + u[j].T @ U @ du"
        " + 0.5 * du.T @ U @ du + 0.5 * trace(W[j] @ Sxx) + ahead(du))",
    ),
    Equation(
        id="4.2.expected-update",
        section="4.2",
        title="effect of expected measurements on the mean",
        line=869,
        latex=r"""\text{the
update to the mean from \emph{expected} future observations $y_{j+1}$ is nil}""",
        machine="zeros(n, 1)",
        inline=True,
    ),
    Equation(
        id="4.2.dual-effect",
        section="4.2",
        title="the dual effect",
        line=872,
        latex=r"""\text{the (co-)variance changes depending on the control input
$u_j$}""",
        machine="'changes'",
        inline=True,
    ),
    Equation(
        id="4.2.cost-to-go",
        section="4.2",
        title="resulting cost to go",
        line=879,
        latex=r"""\Delta\tilde{J}^*_k(p(x_k)) = \gp_{k+1}  + \pp_{k+1}\T\Delta\hat z_k +
  \frac{1}{2}  \Delta\hat z_k\T \Kp_{k+1}\Delta\hat z_k \\
    + \frac{1}{2} \tr\left\{ W_T\Sigma^{xx}_{T|T} + \sum_{j=k}^{T-1} \left[ W_j
    \Sigma^{xx}_{j|j} + (\Sigma_{j+1|j} - \Sigma_{j+1|j+1} ) \Kp_{j+1} \right]
\right\}""",
        machine="g[k + 1] + p[k + 1].T @ dz + 0.5 * dz.T @ K[k + 1] @ dz + " + _TRACE,
    ),
    Equation(
        id="4.2.no-shift",
        section="4.2",
        title="expected perturbation of the augmented state",
        line=886,
        latex=r"\dhz=0",
        machine="zeros(n + p, 1)",
        inline=True,
    ),
    Equation(
        id="4.2.dual-cost",
        section="4.2",
        title="dual cost",
        line=888,
        latex=r"""J^d_k = \frac{1}{2} \tr\left\{ W_T\Sigma^{xx}_{T|T} + \sum_{j=k}^{T-1}
    \left[ W_j \Sigma^{xx}_{j|j} + (\Sigma_{j+1|j} - \Sigma_{j+1|j+1} )
\Kp_{j+1}    \right] \right\} \qq \left(=\Delta\tilde J_k^* - \const\right)""",
        machine=_TRACE,
    ),
    Equation(
        id="4.2.second-order",
        section="4.2",
        title="what the dual cost neglects",
        line=885,
        latex=r"\text{(where we have neglected second-order effects of the dynamics)}",
        machine="Jd",
        inline=True,
    ),
    Equation(
        id="4.2.perturbed-riccati",
        section="4.2",
        title="Riccati recursion of the augmented system",
        line=895,
        label="eq:dp-perturbed",
        latex=r"""\Kp_j = \Ap\T\left(\Kp_{j+1}-\Kp_{j+1}\Bp\left(B\T K^{xx}_{j+1} B
        + U_j\right)\inv \Bp\T \Kp_{j+1} \right) \Ap + \Wp_j""",
        machine="Atilde.T @ (K[j + 1] - K[j + 1] @ Btilde @ inv(B.T @ Kxx[j + 1] @ B + U[j]) @ Btilde.T @ K[j + 1])"
        " @ Atilde + Wtilde[j]",
    ),
    Equation(
        id="4.2.perturbed-riccati-end",
        section="4.2",
        title="end of the augmented recursion",
        line=896,
        label="eq:dp-perturbed",
        latex=r"""\Kp_T =
      \Wp_T""",
        machine="Wtilde[T]",
    ),
    Equation(
        id="4.2.augmented-weight",
        section="4.2",
        title="weight of the augmented state",
        line=900,
        latex=r"""\Wp_j =
\blkdiag(W_j,\vec{0})""",
        machine="blkdiag(W[j], zeros(p, p))",
        inline=True,
    ),
    Equation(
        id="4.2.jacobian-state",
        section="4.2",
        title="Jacobian of the augmented map by z",
        line=899,
        latex=r"""\Ap =
\frac{\de}{\de z}\tilde f""",
        machine="slope(f, z)",
        introduces="Atilde",
        inline=True,
    ),
    Equation(
        id="4.2.jacobian-input",
        section="4.2",
        title="Jacobian of the augmented map by u",
        line=900,
        latex=r"\Bp = \frac{\de}{\de u}\tilde f",
        machine="slope(f, u)",
        introduces="Btilde",
        inline=True,
    ),
    Equation(
        id="4.2.overall",
        section="4.2",
        title="overall cost",
        line=901,
        latex=r"""\Jn^*_k
+ J^d_k""",
        machine="Jbar + Jd",
        inline=True,
    ),
    Equation(
        id="4.3.outer-loop",
        section="4.3",
        title="name of the search's loop",
        line=908,
        latex=r"\text{amounts to the outer loop of the overall algorithm}",
        machine="[caption, 'outer']",
        inline=True,
    ),
    Equation(
        id="4.3.dominates",
        section="4.3",
        title="cost of the search",
        line=922,
        latex=r"""\text{this outer
loop dominates computational cost}""",
        machine="'dominates'",
        inline=True,
    ),
)
