"""Section 6, Experiments: their definitions and the statements about them, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation

EQUATIONS = (
    Equation(
        id="6.bonus",
        section="6",
        title="Bayesian exploration bonus",
        line=1316,
        latex=r"""\ell_\BEB =
  \tau
\left[\operatorname{sqrt}\left(\diag\left(\Sigma^{\tt}\right)\right)\right]\T
\left[\operatorname{sqrt}\left(\diag\left(\Sigma^{\tt}\right)\right)\right]""",
        machine="tau * root(diag(Stt)).T @ root(diag(Stt))",
        introduces="bonus",
    ),
    Equation(
        id="6.1.setting",
        section="6.1",
        title="constants of experiment 1",
        line=1350,
        latex=r"""($a = 1$
(known), $b = 2$, $p(b)=\N(b; 1, 10)$, $Q = 10^{-1}$, $R = 0$, $W = 1$,
$\L = 1$, $T=2$)""",
        machine="dict(a=1, b=2, prior_mean=1, prior_variance=10, Q=1e-1, R=0, W=1, U=1, T=2, tau=0.1)",
        inline=True,
    ),
    Equation(
        id="6.2.system",
        section="6.2",
        title="cart on a rail",
        line=1387,
        label="eq:pendulum-system",
        latex=r"""x_{k+1} = \begin{bmatrix} 1 & 0.4 \\ 0 & 1 \end{bmatrix} x_k
  + \begin{bmatrix} 0 & 0 \\ \t^1 & \t^2 \end{bmatrix}
  \begin{bmatrix} \varphi^1(x^1_k) \\ \varphi^2(x^1_k) \end{bmatrix}
  + \begin{bmatrix} 0 \\ 1 \end{bmatrix} u_k""",
        machine="matrix([[1, 0.4], [0, 1]]) @ x + matrix([[0, 0], [theta[1], theta[2]]])"
        " @ matrix([[varphi(1, x)], [varphi(2, x)]]) + matrix([[0], [1]]) @ u",
    ),
    Equation(
        id="6.2.prior",
        section="6.2",
        title="prior of the parameters",
        line=1392,
        label="eq:pendulum-system",
        latex=r"""\t \sim \N\left(\begin{bmatrix} 0 \\ 0 \end{bmatrix},
    \begin{bmatrix}1 & 0 \\ 0 & 1  \end{bmatrix}\right)""",
        machine="N(matrix([[0], [0]]), matrix([[1, 0], [0, 1]]))",
        introduces="prior of experiment 2",
    ),
    Equation(
        id="6.2.truth",
        section="6.2",
        title="true parameters",
        line=1395,
        label="eq:pendulum-system",
        latex=r"\t_\text{true} = \begin{bmatrix} 0.8 \\ 0.4 \end{bmatrix}",
        machine="matrix([[0.8], [0.4]])",
        introduces="truth of experiment 2",
    ),
    Equation(
        id="6.2.feature-1",
        section="6.2",
        title="first logistic function",
        line=1401,
        label="eq:logistic-nonlinearity",
        latex=r"\varphi^1(x) = -\frac{1}{1+e^{(x+5)}}",
        machine="-1 / (1 + exp(x + 5))",
        introduces="varphi1",
    ),
    Equation(
        id="6.2.feature-2",
        section="6.2",
        title="second logistic function",
        line=1402,
        label="eq:logistic-nonlinearity",
        latex=r"\varphi^2(x) = \frac{1}{1+e^{-(x-5)}}",
        machine="1 / (1 + exp(-(x - 5)))",
        introduces="varphi2",
    ),
    Equation(
        id="6.2.reference",
        section="6.2",
        title="reference of experiment 2",
        line=1410,
        label="eq:exp2-trajectory",
        latex=r"""\vec{r}_{0:11} = \begin{bmatrix} 0 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{12:14} = \begin{bmatrix} 10 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{15} = \begin{bmatrix} 0 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{16:18} = \begin{bmatrix} -10 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{19:20} = \begin{bmatrix} 0 \\ 0 \end{bmatrix}""",
        machine="[(0, 11, (0, 0)), (12, 14, (10, 0)), (15, 15, (0, 0)), (16, 18, (-10, 0)), (19, 20, (0, 0))]",
        introduces="reference of experiment 2",
    ),
    Equation(
        id="6.2.weights",
        section="6.2",
        title="state weights of experiment 2",
        line=1423,
        latex=r"""\vec{W}_{0:5} = \begin{bmatrix} 10 & 0 \\ 0 & 0 \end{bmatrix}
  \qquad
  \vec{W}_{5:10} = \begin{bmatrix} 0 & 0 \\ 0 & 0 \end{bmatrix}
  \qquad
  \vec{W}_{11:20} = \begin{bmatrix} 100 & 0 \\ 0 & 0 \end{bmatrix}""",
        machine="[(0, 5, 'W11 = 10'), (5, 10, 'W11 = 0'), (11, 20, 'W11 = 100')]",
        introduces="weights of experiment 2",
    ),
    Equation(
        id="6.2.precise-phase",
        section="6.2",
        title="length of the precise phase",
        line=1431,
        latex=r"""\text{first 4 time steps}""",
        machine="[4, 5]",
        inline=True,
    ),
    Equation(
        id="6.2.setting",
        section="6.2",
        title="constants of experiment 2",
        line=1404,
        latex=r"R = Q = 10^{-2} I",
        machine="dict(Q=1e-2, R=1e-2, U=1e-3, r='given', W='given', T=20, features=30, amplitude=1,"
        " theta_true=(0.8, 0.4))",
        inline=True,
    ),
    Equation(
        id="6.3.reference",
        section="6.3",
        title="reference of experiment 3",
        line=1468,
        label="eq:exp3-trajectory",
        latex=r"""\vec{r}_{0:11} = \begin{bmatrix} 0 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{12:18} = \begin{bmatrix} 10 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{18:20} = \begin{bmatrix} 0 \\ 0 \end{bmatrix}""",
        machine="[(0, 11, (0, 0)), (12, 18, (10, 0)), (18, 20, (0, 0))]",
        introduces="reference of experiment 3",
    ),
    Equation(
        id="6.3.weights",
        section="6.3",
        title="state weights of experiment 3",
        line=1476,
        latex=r"""\vec{W}_{0:10} = \begin{bmatrix} 0 & 0 \\ 0 & 0 \end{bmatrix}
  \qquad
  \vec{W}_{11:20} = \begin{bmatrix} 10 & 0 \\ 0 & 0 \end{bmatrix}""",
        machine="[(0, 10, 'W11 = 0'), (11, 20, 'W11 = 10')]",
        introduces="weights of experiment 3",
    ),
    Equation(
        id="6.3.strong-feature",
        section="6.3",
        title="feature that the reference meets",
        line=1484,
        latex=r"\text{where $\varphi^1$ is strong, and $\varphi^2$ is negligible}",
        machine="dict(strong=1, negligible=2)",
        inline=True,
    ),
    Equation(
        id="6.3.relevant-parameter",
        section="6.3",
        title="relevant and irrelevant parameter",
        line=1498,
        latex=r"""\text{between the relevant $\theta^1$ and the irrelevant $\theta^2$}""",
        machine="dict(strong=1, negligible=2)",
        inline=True,
    ),
    Equation(
        id="6.3.perfect-model",
        section="6.3",
        title="truth within the model",
        line=1492,
        latex=r"\text{This means it is possible to learn the perfect model in this case}",
        machine="True",
        inline=True,
    ),
    Equation(
        id="6.3.setting",
        section="6.3",
        title="constants of experiment 3",
        line=1464,
        latex=r"R = Q = 10^{-3}I",
        machine="dict(Q=1e-3, R=1e-3, r='given', W='given', T=20, units=4, b='given', tau=1, theta_true=(0.8, 0.4))",
        inline=True,
    ),
    Equation(
        id="6.4.feature-1",
        section="6.4",
        title="first Gaussian function",
        line=1527,
        latex=r"\varphi^1(x) = e^{-\frac{(x-2)^2}{2}}",
        machine="exp(-(x - 2)**2 / 2)",
        introduces="Gaussian varphi1",
    ),
    Equation(
        id="6.4.feature-2",
        section="6.4",
        title="second Gaussian function",
        line=1529,
        latex=r"\varphi^2(x) = e^{-\frac{(x+2)^2}{2}}",
        machine="exp(-(x + 2)**2 / 2)",
        introduces="Gaussian varphi2",
    ),
    Equation(
        id="6.4.truth",
        section="6.4",
        title="true parameters",
        line=1531,
        latex=r"\t_\text{true} = \begin{bmatrix} 1.0 \\ 0.8 \end{bmatrix}",
        machine="matrix([[1.0], [0.8]])",
        introduces="truth of experiment 4",
    ),
    Equation(
        id="6.4.reference",
        section="6.4",
        title="reference of experiment 4",
        line=1543,
        label="eq:exp4-trajectory",
        latex=r"""\vec{r}_{0:6} = \begin{bmatrix} -5 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{7} = \begin{bmatrix} -4 \\ 0 \end{bmatrix}
  \qq
  \vec{r}_{8} = \begin{bmatrix} -2 \\ 0 \end{bmatrix}
  \qq
  \vec{r}_{9} = \begin{bmatrix} 0 \\ 0 \end{bmatrix}
  \qquad
  \vec{r}_{10:20} = \begin{bmatrix} 2 \\ 0 \end{bmatrix}""",
        machine="[(0, 6, (-5, 0)), (7, 7, (-4, 0)), (8, 8, (-2, 0)), (9, 9, (0, 0)), (10, 20, (2, 0))]",
        introduces="reference of experiment 4",
    ),
    Equation(
        id="6.4.weights",
        section="6.4",
        title="state weights of experiment 4",
        line=1555,
        latex=r"""\vec{W}_{0:5} = \begin{bmatrix} 0 & 0 \\ 0 & 0 \end{bmatrix}
  \qquad
  \vec{W}_{6:20} = \begin{bmatrix} 10 & 0 \\ 0 & 0 \end{bmatrix}""",
        machine="[(0, 5, 'W11 = 0'), (6, 20, 'W11 = 10')]",
        introduces="weights of experiment 4",
    ),
    Equation(
        id="6.4.order-of-parameters",
        section="6.4",
        title="parameters in the order in which the reference meets them",
        line=1585,
        latex=r"""\text{ignores the growing uncertainty on $\t^1$ after reaching the area of
$\t^2$}""",
        machine="(1, 2)",
        inline=True,
    ),
    Equation(
        id="6.4.setting",
        section="6.4",
        title="constants of experiment 4",
        line=1535,
        latex=r"""\text{the model now assumes \emph{parameter drift}}""",
        machine="dict(r='given', W='given', T=20, theta_true=(1.0, 0.8))",
        inline=True,
    ),
    Equation(
        id="6.5.costs",
        section="6.5",
        title="costs of the table",
        line=1615,
        latex=r"""\text{Average and standard deviation of costs in the experiments for 50
runs.}""",
        machine="dict(mean='given', deviation='given', runs=50)",
        inline=True,
    ),
)
