"""Section 2, Model and Notation, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

EQUATIONS = (
    Equation(
        id="2.dynamics",
        section="2",
        title="state dynamics",
        line=278,
        label="eq:system",
        latex=r"x_{k+1} = f_k(x_k, u_k) + \xi_k",
        machine="f(x[k], u[k]) + xi[k]",
        introduces="x",
    ),
    Equation(
        id="2.observation",
        section="2",
        title="observation model",
        line=279,
        label="eq:system",
        latex=r"y_{k} = Cx_k + \gamma_k",
        machine="C @ x[k] + gamma[k]",
        introduces="y",
    ),
    Equation(
        id="2.density-state",
        section="2",
        title="density of the next state",
        line=285,
        latex=r"p(x_{k+1}\g x_k,u_k) = \N(x_{k+1};f_k(x_k,u_k),Q)",
        machine="N(f(x[k], u[k]), Q)",
        inline=True,
    ),
    Equation(
        id="2.density-observation",
        section="2",
        title="density of the measurement",
        line=286,
        latex=r"p(y_k\g x_k)=\N(y_k;Cx_k,R)",
        machine="N(C @ x[k], R)",
        inline=True,
    ),
    Equation(
        id="2.features",
        section="2",
        title="general linear model",
        line=295,
        label="eq:feature-linear-system",
        latex=r"x_{k+1} = A_k\phi(x_k) + B_k u_k + \xi_k, \qqqq A_k\in\Re^{n\times m}; B_k\in\Re^{n\times 1}",
        machine="A[k] @ phi(x[k]) + B[k] @ u[k] + xi[k]",
        introduces="A, B",
    ),
    Equation(
        id="2.parameter-size",
        section="2",
        title="length of the parameter vector",
        line=300,
        latex=r"\t_k=[\operatorname{vec}(A_k);\operatorname{vec}(B_k)]\in\Re^{(m+1)n}",
        machine="(m + 1) * n",
        inline=True,
    ),
    Equation(
        id="2.prior",
        section="2",
        title="belief at initialisation",
        line=307,
        label="eq:13",
        latex=r"""p\left(\begin{bmatrix}x_0\\ \t_0 \end{bmatrix}\right)
  = \N\left(
  \begin{bmatrix}
    x_0\\ \t_0
  \end{bmatrix}
  ;
  \begin{bmatrix}
    \hat x_0\\ \hat{\t}_0
  \end{bmatrix}
  ,
  \begin{bmatrix}
    \Sigma^{xx} _0 & \Sigma^{x\t} _0 \\ \Sigma^{\t x} _0 & \Sigma^{\t\t} _0
  \end{bmatrix} \right)""",
        machine="N(stack([[x_hat], [theta_hat]]), stack([[Sxx, Sxt], [Stx, Stt]]))",
        introduces="belief",
    ),
    Equation(
        id="2.constant-parameters",
        section="2",
        title="parameters that do not change",
        line=326,
        latex=r"p(\t_{k+1}\g\t_k)=\delta(\t_{k+1}-\t_{k})",
        machine="theta[k]",
        introduces="theta",
        inline=True,
    ),
    Equation(
        id="2.drift",
        section="2",
        title="autoregressive parameters",
        line=327,
        latex=r"p(\t_{k+1}\g\t_k)=\N(\t_{k+1};D\t_{k},\Xi)",
        machine="N(D @ theta[k], Xi)",
        introduces="drift",
        inline=True,
    ),
    Equation(
        id="2.cost",
        section="2",
        title="quadratic cost",
        line=333,
        label="eq:cost",
        latex=r"""\cL(\vec{x},\vec{u}) = \left[\sum_{k=0}^{T} (x_k - r_k)\T W_k (x_k
    - r_k) +
    \sum_{k=0}^{T-1} u_k\T U_k u_k \right]""",
        machine="total(0, T, lambda k: (x[k] - r[k]).T @ W[k] @ (x[k] - r[k]))"
        " + total(0, T - 1, lambda k: u[k].T @ U[k] @ u[k])",
        introduces="L",
    ),
    Equation(
        id="2.expected-cost",
        section="2",
        title="expected cost to the horizon",
        line=344,
        label="eq:1",
        latex=r"""J_k(\vec{u}_{k:T-1},p(x_k)) = \Exp_{x_k}\left[ (x_k - r_k)\T W_k (x_k -
r_k) + u_k\T U_k u_k +
J_{k+1}(\vec{u}_{k+1:T-1},p(x_{k+1}))\g p(x_k)\right]""",
        machine="E(lambda x: (x - r[k]).T @ W[k] @ (x - r[k]) + u[k].T @ U[k] @ u[k] + J[k + 1])",
    ),
    Equation(
        id="2.past-inputs",
        section="2",
        title="inputs that enter the belief",
        line=348,
        latex=r"\vec{u}_{1:k-1}",
        machine="span(1, k - 1)",
        inline=True,
        restated=(Restated(335, "span(0, k - 1)"),),
    ),
    Equation(
        id="2.terminal-cost",
        section="2",
        title="expected cost at the horizon",
        line=355,
        latex=r"""J_{T}(p(x_T)) = \Exp_{x_{T}}\left[ (x_T - r_T)\T W_T (x_T - r_T)
  \g p(x_T) \right]""",
        machine="E(lambda x: (x - r[T]).T @ W[T] @ (x - r[T]))",
    ),
    Equation(
        id="2.optimal-cost",
        section="2",
        title="Bellman's equation on the belief",
        line=362,
        label="eq:optimal-cost",
        latex=r"""J^*_k(p(x_k)) = \min_{u_k}\Exp_{x_k}\left[ (x_k - r_k)\T W_k (x_k - r_k) +
    u_k\T U_k u_k + J_{k+1} ^*(p(x_{k+1}))\g p(x_k) \right]""",
        machine="minimum(lambda u: E(lambda x: (x - r[k])*W[k]*(x - r[k]) + u*U[k]*u + Jstar(u)))",
    ),
)
