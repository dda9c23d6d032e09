"""Section 5, Extension to Contemporary Machine Learning Models, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

_EXACT = (
    "stack([[A(theta_bar + dtheta), zeros(n, p)], [zeros(p, m), identity(p)]])"
    " @ stack([[phi(x_bar + dx)], [theta_bar + dtheta]])"
    " + stack([[B(theta_bar + dtheta)], [zeros(p, 1)]]) @ u + stack([[xi], [zeros(p, 1)]])"
)

PARAMETRIC = (
    Equation(
        id="5.1.features",
        section="5.1",
        title="features with the state itself",
        line=949,
        latex=r"""\phi(x)\T = \begin{pmatrix} x\T &
\varphi(x)\T\end{pmatrix}""",
        machine="stack([[x.T, varphi(x).T]]).T",
        introduces="phi",
        inline=True,
    ),
    Equation(
        id="5.1.perturbed",
        section="5.1",
        title="augmented system around the nominal point",
        line=978,
        latex=r"""z_{k+1} &=
    \begin{pmatrix}
      \bar{x}_{k+1} + \Delta x_{k+1} \\\bar{\theta}_{k+1} + \Delta\theta_{k+1}
    \end{pmatrix} =
    \begin{pmatrix}
      A(\theta_k) & 0 \\ 0 & I
    \end{pmatrix}
    \begin{pmatrix}
      \phi(\bar{x}_k+\Delta x_k)\\ \bar{\theta}_k + \Delta\theta_k
    \end{pmatrix}
    +
    \begin{pmatrix}
      B(\theta_k) \\ 0
    \end{pmatrix}u_k +
    \begin{pmatrix}
      \xi_k \\ 0
    \end{pmatrix}""",
        machine=_EXACT,
    ),
    Equation(
        id="5.1.linearised",
        section="5.1",
        title="linearised augmented system",
        line=996,
        latex=r"""\begin{pmatrix}
      A(\bar\theta_k) & 0 \\ 0 & I
    \end{pmatrix}
    \begin{pmatrix}
      \phi(\bar x_k)\\ \bar{\theta}_k
    \end{pmatrix} +
    \begin{pmatrix}
      B(\bar\t_k) \\ 0
    \end{pmatrix}u_k +
    \begin{pmatrix}
      \xi_k \\ 0
    \end{pmatrix}
    \\
    &\qqqq+
    \begin{pmatrix}
      A(\bar{\theta}_k)\frac{\de}{\de x_k}\phi(\bar x_k) &
      \frac{\de}{\de \t_k}\left( A(\bar \t_k) \phi(\bar x_k)
      + B(\bar\t_k)u_k\right)\\
      0 & I
    \end{pmatrix}
    \begin{pmatrix}
      \Delta x_k \\ \Delta \theta_k
    \end{pmatrix}""",
        machine="stack([[A(theta_bar), zeros(n, p)], [zeros(p, m), identity(p)]]) @ stack([[phi(x_bar)], [theta_bar]])"
        " + stack([[B(theta_bar)], [zeros(p, 1)]]) @ u + stack([[xi], [zeros(p, 1)]])"
        " + stack([[A(theta_bar) @ slope(phi, x_bar),"
        " slope(lambda theta: A(theta) @ phi(x_bar) + B(theta) @ u, theta_bar)],"
        " [zeros(p, n), identity(p)]]) @ stack([[dx], [dtheta]])",
    ),
)

PROCESS = (
    Equation(
        id="5.2.kernel-range",
        section="5.2",
        title="values of the kernel",
        line=1033,
        latex=r"""\bar{\kappa}:\Re^n\times
\Re^n\to \Re^n\times \Re^n""",
        machine="n + n",
        inline=True,
        restated=(Restated(1039, "n * n"),),
    ),
    Equation(
        id="5.2.multi-output",
        section="5.2",
        title="covariance of several outputs",
        line=1039,
        label="eq:9",
        latex=r"\cov(f_i(x),f_j(x')) = \bar\kappa_{ij}(x,x')",
        machine="kappa_bar(i, j, x, x2)",
        introduces="kappa_bar",
    ),
    Equation(
        id="5.2.factors",
        section="5.2",
        title="covariance that factors",
        line=1042,
        latex=r"\bar\kappa_{ij}(x,x') = V_{ij}\kappa(x,x')",
        machine="V[i, j] * kappa(x, x2)",
        introduces="kappa",
        inline=True,
    ),
    Equation(
        id="5.2.mercer",
        section="5.2",
        title="Mercer series",
        line=1050,
        label="eq:10",
        latex=r"""\kappa(x,x') = \sum_{\ell=1} ^\infty \lambda_\ell \phi _\ell(x) \phi_\ell ^*
(x')""",
        machine="total(1, infinity, lambda l: lam(l) * phi(l, x) * conj(phi(l, x2)))",
    ),
    Equation(
        id="5.2.eigenfunctions",
        section="5.2",
        title="eigenfunctions of the kernel",
        line=1058,
        label="eq:11",
        latex=r"\int \kappa(x,x') \phi_\ell(x') \, d\mu(x') = \lambda_\ell \phi_\ell(x)",
        machine="integral(lambda t: kappa(x, t) * phi(l, t)) - lam(l) * phi(l, x)",
    ),
    Equation(
        id="5.2.draw",
        section="5.2",
        title="draw from the process",
        line=1066,
        label="eq:12",
        latex=r"""f^i _k(x_k) = \sum_{j=1} ^T L_{ij}  \sum_{\ell=1} ^\infty
\Omega_k ^{j\ell} \phi_i(x_k)""",
        machine="covariance(lambda i, x, Omega: total(1, T, lambda j: L[i, j]"
        " * total(1, infinity, lambda l: Omega[j, l] * phi(i, x))))",
        restated=(Restated(1062, "covariance(lambda i, x, Omega: L_Omega_Phi(i, x, Omega))"),),
    ),
    Equation(
        id="5.2.square-root",
        section="5.2",
        title="square root of the output covariance",
        line=1069,
        latex=r"LL\T=V",
        machine="L @ L.T",
        introduces="L of the process",
        inline=True,
    ),
    Equation(
        id="5.2.mean-square",
        section="5.2",
        title="existence of the draw in mean square",
        line=1072,
        latex=r"\text{exists in $\mu^2$ expectation, and is well-defined in this sense}",
        machine="None",
        inline=True,
    ),
    Equation(
        id="5.2.prior-covariance",
        section="5.2",
        title="prior covariance of theta",
        line=1074,
        latex=r"""\Sigma_0 ^{\theta\theta} = V\otimes
(\Phi\Lambda\Phi \T)""",
        machine="kron(V, Phi @ Lambda @ Phi.T)",
        inline=True,
    ),
    Equation(
        id="5.2.gram",
        section="5.2",
        title="Gram matrix",
        line=1085,
        latex=r"\G = \P + \Q + \K + \F\inv\R\F^{-\intercal}",
        machine="calP + calQ + calK + inv(F) @ calR @ inv(F).T",
    ),
    Equation(
        id="5.2.prior-block",
        section="5.2",
        title="block of the prior covariance",
        line=1089,
        latex=r"\P = \begin{bmatrix} P_0 & 0 \\ 0 & 0 \end{bmatrix}",
        machine="corner(P0)",
    ),
    Equation(
        id="5.2.drift-block",
        section="5.2",
        title="block of the drift covariance",
        line=1090,
        latex=r"\Q = \left(Q\otimes I\right)",
        machine="kron(Q, identity(k))",
    ),
    Equation(
        id="5.2.kernel-block",
        section="5.2",
        title="points of the kernel matrix",
        line=1091,
        latex=r"\K = \kappa(\vec{y}_{1:m},\vec{y}_{1:m})",
        machine="kernel(y_at, 1, m)",
    ),
    Equation(
        id="5.2.noise-block",
        section="5.2",
        title="block of the measurement covariance",
        line=1092,
        latex=r"\R = \left(R\otimes I\right)",
        machine="kron(R, identity(k))",
    ),
    Equation(
        id="5.2.transition",
        section="5.2",
        title="multi-step transition matrix",
        line=1097,
        latex=r"""\F = \begin{bmatrix}
    I & 0 & 0 &  \cdots & 0 \\
    A_1 & I & 0 &  \cdots & 0 \\
    A_2 A_1 & A_2 & I &  \cdots & 0 \\
    \vdots & & & \ddots & \\
    A_m \cdots A_1 & A_m \cdots A_2 & \cdots & & I \\
    \end{bmatrix}""",
        machine="blocks(m + 1, lambda i, j: one if i == j else (nil if i < j else product(A, i - 1, j)))",
    ),
    Equation(
        id="5.2.transition-inverse",
        section="5.2",
        title="inverse of the multi-step transition matrix",
        line=1105,
        latex=r"""\F\inv =
    \begin{bmatrix}
    I & 0 & 0  & \cdots & 0 \\
    -A_1 & I & 0  & \cdots & 0 \\
    0 & -A_2 & I  & \cdots & 0 \\
    \vdots & \ddots & \ddots & \ddots & \\
    0 & \cdots &  0 &  -A_m & I \\
    \end{bmatrix}""",
        machine="blocks(m + 1, lambda i, j: one if i == j else (-A[j] if i == j + 1 else nil))",
    ),
    Equation(
        id="5.2.posterior-mean",
        section="5.2",
        title="posterior mean",
        line=1121,
        label="eq:np-mean-posterior",
        latex=r"""\begin{bmatrix}
    \hat{x}_k\\
    \hat{\theta}_k
  \end{bmatrix} =
  \begin{bmatrix}
    \hat x_{k-1} \\
    0
  \end{bmatrix}
  +
  \begin{bmatrix}
    \Phi(\hat x_{k-1})\Lambda\Phi(\vec{y}_{1:k-1})\T \\
    \Lambda\Phi(\vec{y}_{1:k-1})\T
  \end{bmatrix}
  \G\inv
  \begin{bmatrix}
    \Phi(\vec{y}_{1:k-1})\Lambda\Phi(\hat x_{k-1})\T &
    \Phi(\vec{y}_{1:k-1})\Lambda
  \end{bmatrix}""",
        machine="stack([[x_hat[k - 1]], [zeros(p, 1)]])"
        " + stack([[Phi(x_hat[k - 1]) @ Lambda @ Phi_all.T], [Lambda @ Phi_all.T]]) @ inv(calG)"
        " @ stack([[Phi_all @ Lambda @ Phi(x_hat[k - 1]).T, Phi_all @ Lambda]])",
    ),
    Equation(
        id="5.2.prediction",
        section="5.2",
        title="predicted covariance of the state",
        line=1143,
        latex=r"""\bar \Sigma_k ^{xx} &= A_k \Sigma_k^{xx} A_k\T + Q + \Phi_k \Sigma^{\t x}_k
  A_k\T
  + A_k \Sigma^{x\t}_k \Phi_k\T + \Phi_k \Sigma^{\t\t}\Phi_k\T""",
        machine="Ak @ Sxx @ Ak.T + Q + Phik @ Stx @ Ak.T + Ak @ Sxt @ Phik.T + Phik @ Stt @ Phik.T",
    ),
    Equation(
        id="5.2.update",
        section="5.2",
        title="updated covariance of the state",
        line=1146,
        latex=r"""\Sigma_k^{xx} &= \bar\Sigma_{k-1} ^{xx} - \bar\Sigma_{k-1} ^{xx}
  \left[ \bar\Sigma_{k-1} ^{xx} + R \right]\inv \bar\Sigma_{k-1} ^{xx}""",
        machine="Sbar - Sbar @ inv(Sbar + R) @ Sbar",
    ),
    Equation(
        id="5.2.cross",
        section="5.2",
        title="covariance of state and parameters",
        line=1148,
        label="eq:np-cross-posterior",
        latex=r"""\Sigma_k ^{x\theta} &= \F_{k,:}\Phi(\vec{y})\Lambda
   - \F_{k,:} \left[ \P + \K + \Q \right] \G\inv \Phi(\vec{y}) \Lambda""",
        machine="row(F, k) @ Phi_all @ Lambda - row(F, k) @ (calP + calK + calQ) @ inv(calG) @ Phi_all @ Lambda",
    ),
    Equation(
        id="5.2.cross-transposed",
        section="5.2",
        title="covariance of parameters and state",
        line=1151,
        latex=r"\Sigma_k ^{\theta x} &= (\Sigma_k ^{x\theta})\T",
        machine="Sxt.T",
    ),
    Equation(
        id="5.2.parameter-covariance",
        section="5.2",
        title="covariance of the parameters",
        line=1152,
        label="eq:np-theta-posterior",
        latex=r"""\Sigma_k ^{\t\t} &= \Lambda
  - \Lambda \Phi(\vec{y})\T \G\inv \Phi(\vec{y}) \Lambda""",
        machine="Lambda - Lambda @ Phi_all.T @ inv(calG) @ Phi_all @ Lambda",
    ),
    Equation(
        id="5.2.gram-size",
        section="5.2",
        title="size of the Gram matrix",
        line=1161,
        latex=r"""nT\times
nT""",
        machine="n * T",
        inline=True,
    ),
    Equation(
        id="5.2.1.bochner",
        section="5.2.1",
        title="spectral representation of the kernel",
        line=1187,
        latex=r"\kappa(r) = \int S(s)e^{2\pi i s r} ds",
        machine="integral(lambda s: S(s) * exp(2*pi*i*s*r))",
    ),
    Equation(
        id="5.2.1.square-exponential",
        section="5.2.1",
        title="square exponential kernel",
        line=1193,
        latex=r"\kappa_\SE(x,x') = \exp\left(-\frac{(x-x')^2}{2\lambda^2}\right)",
        machine="exp(-(x - x2)**2 / (2*lam**2))",
        introduces="kappa_SE",
    ),
    Equation(
        id="5.2.1.approximate-kernel",
        section="5.2.1",
        title="kernel from sines and cosines",
        line=1197,
        latex=r"""\kappa(x,x') \approx \tilde \kappa(x,x') =
\sqrt{\frac{2}{F}}\sum_{i=1}^{\nicefrac{F}{2}}
    \sin(\omega_{2i-1} |x-x'|) + \cos(\omega_{2i} |x-x'|)""",
        machine="average(lambda omega: sqrt(2/F) * total(1, F//2, lambda i:"
        " sin(omega[2*i - 1]*abs(x - x2)) + cos(omega[2*i]*abs(x - x2))))",
    ),
)

NETWORK = (
    Equation(
        id="5.3.nonlinear-parameters",
        section="5.3",
        title="features with parameters of their own",
        line=1270,
        label="eq:7",
        latex=r"f(x;\theta) = \sum_i^F \theta^\text{lin} _i \phi_i(x;\theta_i ^\text{nonlin})",
        machine="total(1, F, lambda i: theta_lin[i] * phi(i, x, theta_nonlin[i]))",
        introduces="nonlinear features",
    ),
    Equation(
        id="5.3.network",
        section="5.3",
        title="two-layer network",
        line=1276,
        label="eq:8",
        latex=r"f(x) = \sum_i \vec{v}_i \sigma(\vec{w}_ix + \vec{b}_i)",
        machine="total(1, F, lambda i: v[i] * sigma(w[i]*x + b[i]))",
        introduces="network",
    ),
    Equation(
        id="5.3.hidden-units",
        section="5.3",
        title="hidden units (Figure 4)",
        line=1254,
        latex=r"""z_k ^i = \sigma\left( \sum_{j} \vec{w}_{ij} x ^j _k
+
    \vec{b}_i \right)""",
        machine="sigma(total(1, n, lambda j: W[i, j]*X[j]) + b[i])",
        introduces="hidden units",
        inline=True,
    ),
    Equation(
        id="5.3.outputs",
        section="5.3",
        title="outputs (Figure 4)",
        line=1258,
        latex=r"x_{k+1} ^i = f^i(x_k)\approx \sum_j \vec{v}_{ij} z_k ^j",
        machine="total(1, F, lambda j: V[i, j]*Z[j])",
        introduces="outputs",
        inline=True,
    ),
    Equation(
        id="5.3.augmented",
        section="5.3",
        title="augmented state of the network",
        line=1294,
        latex=r"z\T = (x\T \; v\T \; w\T)",
        machine="vector([x], v, w)",
        introduces="network state",
        inline=True,
    ),
)

EQUATIONS = (*PARAMETRIC, *PROCESS, *NETWORK)
