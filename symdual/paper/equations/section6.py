"""Section 6, Experiments: their definitions and the statements about them, as printed."""

from __future__ import annotations

from symdual.paper.equation import Equation, Restated

_RELEVANT = (
    "dict(relevant=effect(reference, system, (varphi1, varphi2), 1),"
    " irrelevant=effect(reference, system, (varphi1, varphi2), 2))"
)

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
        id="6.lower-bound",
        section="6",
        title="the oracle as a lower bound",
        line=1310,
        latex=r"""\text{an unattainable lower bound (LB) on the achievable
performance}""",
        machine="'Oracle'",
        inline=True,
    ),
    Equation(
        id="6.prediction-time",
        section="6",
        title="when the bonus looks at the belief",
        line=1323,
        latex=r"""\text{the prediction time is chosen according to the order of the
system such that the effect of the current control signal shows up in the
belief over the parameters}""",
        machine="(order('toy', toy), order('cart', cart))",
        inline=True,
    ),
    Equation(
        id="6.runs",
        section="6",
        title="number of runs",
        line=1330,
        latex=r"\text{Every experiment was repeated $50$ times}",
        machine="50",
        introduces="runs",
        inline=True,
    ),
    Equation(
        id="6.1.noise-free",
        section="6.1",
        title="noise of the toy",
        line=1350,
        latex=r"\text{For the noise-free linear system}",
        machine="dict(Q=0, R=0)",
        inline=True,
        restated=(Restated(469, "dict(Q=setting['Q'], R=0)"),),
    ),
    Equation(
        id="6.1.setting",
        section="6.1",
        title="constants of experiment 1",
        line=1350,
        latex=r"""($a = 1$
(known), $b = 2$, $p(b)=\N(b; 1, 10)$, $Q = 10^{-1}$, $R = 0$, $W = 1$,
$\L = 1$, $T=2$)""",
        machine="dict(a=1, b=2, prior_mean=1, prior_variance=10, Q=1e-1, R=0, W=1, U=1, T=2, tau=tau)",
        introduces="setting of experiment 1",
        inline=True,
    ),
    Equation(
        id="6.1.quadratic",
        section="6.1",
        title="shape of the certainty equivalent cost",
        line=1355,
        latex=r"\text{The CE cost is quadratic}",
        machine="'quadratic'",
        inline=True,
    ),
    Equation(
        id="6.1.indifferent",
        section="6.1",
        title="certainty equivalent cost at zero",
        line=1356,
        latex=r"\text{indifferent about zero}",
        machine="'indifferent'",
        inline=True,
    ),
    Equation(
        id="6.1.bonus-weight",
        section="6.1",
        title="weight of the bonus",
        line=1356,
        latex=r"\tau = 0.1",
        machine="0.1",
        introduces="tau of experiment 1",
        inline=True,
    ),
    Equation(
        id="6.1.bonus-structure",
        section="6.1",
        title="cost with bonus near zero",
        line=1356,
        latex=r"""\text{gives additional structure near
zero that encourages learning}""",
        machine="'encourages'",
        inline=True,
    ),
    Equation(
        id="6.1.bonus-minimum",
        section="6.1",
        title="where the cost with bonus is lowest",
        line=1358,
        latex=r"\text{its global minimum is almost at the same location as that of CE}",
        machine="dict(apart=apart(setting, 'beb', 'ce'))",
        inline=True,
    ),
    Equation(
        id="6.1.dual-minimum",
        section="6.1",
        title="where the dual cost is lowest",
        line=1358,
        latex=r"""\text{The dual
control approximates the sampling solution much closer}""",
        machine="dict(share=apart(setting, 'dual', 'exact') / apart(setting, 'beb', 'exact'))",
        inline=True,
    ),
    Equation(
        id="6.2.caption",
        section="6.2",
        title="state that the figure shows",
        line=1373,
        latex=r"""\text{(first
state)}""",
        machine="1",
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
        id="6.2.noise",
        section="6.2",
        title="noise of experiment 2",
        line=1404,
        latex=r"R = Q = 10^{-2} I",
        machine="dict(Q=1e-2, R=1e-2)",
        introduces="noise of experiment 2",
        inline=True,
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
        machine="[(0, 5, ((10, 0), (0, 0))), (5, 10, ((0, 0), (0, 0))), (11, 20, ((100, 0), (0, 0)))]",
        introduces="weights of experiment 2",
    ),
    Equation(
        id="6.2.control-cost",
        section="6.2",
        title="control cost of experiment 2",
        line=1429,
        latex=r"\L = 10^{-3}",
        machine="1e-3",
        introduces="control cost of experiment 2",
        inline=True,
    ),
    Equation(
        id="6.2.precise-phase",
        section="6.2",
        title="length of the precise phase",
        line=1431,
        latex=r"\text{first 4 time steps}",
        machine="4",
        inline=True,
        restated=(Restated(1434, "5"),),
    ),
    Equation(
        id="6.2.loose-phase",
        section="6.2",
        title="loose phase",
        line=1431,
        latex=r"""\text{a ``loose'' period between time steps
$5$ and $10$}""",
        machine="(5, 10)",
        inline=True,
    ),
    Equation(
        id="6.2.sides",
        section="6.2",
        title="way of the reference",
        line=1432,
        latex=r"""\text{moved to one side, back to the center, to
the other side, and back again}""",
        machine="(1, 0, -1, 0)",
        inline=True,
    ),
    Equation(
        id="6.2.cautious-phase",
        section="6.2",
        title="length of the cautious phase",
        line=1434,
        latex=r"\text{act cautiously for the first 5 time steps}",
        machine="5",
        inline=True,
    ),
    Equation(
        id="6.2.basis",
        section="6.2",
        title="number of features",
        line=1439,
        latex=r"""\text{$30$ alternating sine
and cosine features}""",
        machine="30",
        introduces="features of experiment 2",
        inline=True,
    ),
    Equation(
        id="6.2.out-of-model",
        section="6.2",
        title="truth outside of the model",
        line=1442,
        latex=r"""\text{the approximation is
out of model}""",
        machine="'out of model'",
        inline=True,
    ),
    Equation(
        id="6.2.oracle-idle",
        section="6.2",
        title="inputs of the oracle without cost",
        line=1448,
        latex=r"""\text{does nothing for
times with zero cost}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.2.perfect",
        section="6.2",
        title="how well the lower bound controls",
        line=1449,
        latex=r"""\text{controlling perfectly up to the measurement and state
disturbances}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.2.accidental",
        section="6.2",
        title="learning of the certainty equivalent controller",
        line=1450,
        latex=r"""\text{never
explores actively}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.2.bad-model",
        section="6.2",
        title="what certainty equivalence has learned",
        line=1452,
        latex=r"""\text{it is left
with a bad model when the reference starts to move}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.2.first-move",
        section="6.2",
        title="first move of the reference",
        line=1453,
        latex=r"\text{the reference starts to move at time step $12$}",
        machine="12",
        inline=True,
    ),
    Equation(
        id="6.2.continuous",
        section="6.2",
        title="exploration of the bonus",
        line=1453,
        latex=r"""\text{The
exploration bonus controller (second from bottom) continuously explores}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.2.blind",
        section="6.2",
        title="what the bonus knows of the weights ahead",
        line=1455,
        latex=r"\text{it has no way of knowing about the ``loose'' phase ahead}",
        machine="'blind'",
        inline=True,
    ),
    Equation(
        id="6.2.early-cost",
        section="6.2",
        title="cost of exploring from the start",
        line=1455,
        latex=r"""\text{Of course,
this strategy incurs a higher cost initially}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.2.holds-off",
        section="6.2",
        title="exploration of the dual controller",
        line=1457,
        latex=r"\text{holds off exploration until it reaches the ``loose'' phase}",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.2.setting",
        section="6.2",
        title="constants of experiment 2",
        line=1404,
        latex=r"""\text{We use this setup as
a testbed for a time-structured exploration problem}""",
        machine="dict(**noise, U=price, r=reference, W=weights, T=last(reference), features=count,"
        " amplitude=kernel(0, 0, 1), prior=prior, theta_true=truth)",
        introduces="setting of experiment 2",
        inline=True,
    ),
    Equation(
        id="6.3.noise",
        section="6.3",
        title="noise of experiment 3",
        line=1464,
        latex=r"R = Q = 10^{-3}I",
        machine="dict(Q=1e-3, R=1e-3)",
        introduces="noise of experiment 3",
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
        machine="[(0, 10, ((0, 0), (0, 0))), (11, 20, ((10, 0), (0, 0)))]",
        introduces="weights of experiment 3",
    ),
    Equation(
        id="6.3.identification",
        section="6.3",
        title="phase that is free for identification",
        line=1480,
        latex=r"\text{allowing for identification in the beginning}",
        machine="'in the beginning'",
        inline=True,
    ),
    Equation(
        id="6.3.strong-feature",
        section="6.3",
        title="feature that the reference meets",
        line=1484,
        latex=r"\text{where $\varphi^1$ is strong, and $\varphi^2$ is negligible}",
        machine="dict(strong=largest(reference, varphi1), negligible=largest(reference, varphi2))",
        inline=True,
    ),
    Equation(
        id="6.3.good-exploration",
        section="6.3",
        title="parameter that good exploration ignores",
        line=1485,
        latex=r"\text{Good exploration thus will ignore $\theta^2$}",
        machine=_RELEVANT,
        inline=True,
    ),
    Equation(
        id="6.3.units",
        section="6.3",
        title="number of units",
        line=1489,
        latex=r"""\text{We use $4$
logistic features}""",
        machine="4",
        introduces="units of experiment 3",
        inline=True,
    ),
    Equation(
        id="6.3.locations",
        section="6.3",
        title="locations of the features",
        line=1491,
        latex=r"""\text{equally spaced $b_i$ between $-5$ and $5$, the locations of the
true nonlinear features}""",
        machine="matrix([[-5], [5]])",
        inline=True,
    ),
    Equation(
        id="6.3.relevant-parameter",
        section="6.3",
        title="relevant and irrelevant parameter",
        line=1498,
        latex=r"""\text{between the relevant $\theta^1$ and the irrelevant $\theta^2$}""",
        machine=_RELEVANT,
        inline=True,
    ),
    Equation(
        id="6.3.symmetry",
        section="6.3",
        title="symmetry of the features",
        line=1496,
        latex=r"""\text{symmetry in the
cost function and feature functions}""",
        machine="varphi1(x) + varphi2(-x)",
        inline=True,
    ),
    Equation(
        id="6.3.bonus-weight",
        section="6.3",
        title="weight of the bonus",
        line=1497,
        latex=r"\tau=1",
        machine="1",
        introduces="tau of experiment 3",
        inline=True,
    ),
    Equation(
        id="6.3.bonus-undecided",
        section="6.3",
        title="direction of the bonus's exploration",
        line=1498,
        latex=r"""\text{choosing the
exploration direction stochastically}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.3.sometimes",
        section="6.3",
        title="what the bonus learns",
        line=1499,
        latex=r"""\text{It thus sometimes reduces the uncertainty
on $\t^2$}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.3.ignored-parameter",
        section="6.3",
        title="parameter that the dual controller ignores",
        line=1500,
        latex=r"""\text{The AD controller ignores
$\t^2$ completely and only identifies $\t^1$ in early phases}""",
        machine=_RELEVANT,
        inline=True,
    ),
    Equation(
        id="6.3.caption",
        section="6.3",
        title="state that the figure shows",
        line=1512,
        latex=r"""\text{(second
state)}""",
        machine="2",
        inline=True,
        restated=(Restated(1373, "1"),),
    ),
    Equation(
        id="6.3.perfect-model",
        section="6.3",
        title="truth within the model",
        line=1492,
        latex=r"\text{This means it is possible to learn the perfect model in this case}",
        machine="'perfect'",
        inline=True,
    ),
    Equation(
        id="6.3.setting",
        section="6.3",
        title="constants of experiment 3",
        line=1488,
        latex=r"""\text{In this experiment, the learned model is of the neural network form}""",
        machine="dict(**noise, r=reference, W=weights, T=last(reference), b=spaced(places, count), tau=bonus,"
        " prior=prior, theta_true=truth)",
        introduces="setting of experiment 3",
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
        id="6.4.growing-uncertainty",
        section="6.4",
        title="uncertainty under drift",
        line=1536,
        latex=r"\text{growing uncertainty for the parameters over time}",
        machine="'growing'",
        inline=True,
    ),
    Equation(
        id="6.4.passes-both",
        section="6.4",
        title="features that the reference meets",
        line=1539,
        latex=r"""\text{passes through both nonlinear features but then
stays at one of them}""",
        machine="dict(first=largest(reference, varphi1), second=largest(reference, varphi2),"
        " stays=at_the_end(reference, varphi1), left=at_the_end(reference, varphi2))",
        inline=True,
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
        machine="[(0, 5, ((0, 0), (0, 0))), (6, 20, ((10, 0), (0, 0)))]",
        introduces="weights of experiment 4",
    ),
    Equation(
        id="6.4.cost-start",
        section="6.4",
        title="first step that costs",
        line=1559,
        latex=r"""\text{there is cost starting with the linear reference trajectory at time
instant $6$}""",
        machine="6",
        inline=True,
    ),
    Equation(
        id="6.4.straight",
        section="6.4",
        title="straight part of the reference",
        line=1559,
        latex=r"""\text{the linear reference trajectory at time
instant $6$}""",
        machine="6",
        inline=True,
    ),
    Equation(
        id="6.4.early-parameter",
        section="6.4",
        title="parameter that is needed first",
        line=1578,
        latex=r"""\text{the in
the beginning necessary parameter $\t^1$}""",
        machine="dict(first=first_met(reference, varphi1, varphi2))",
        inline=True,
    ),
    Equation(
        id="6.4.accidental",
        section="6.4",
        title="what certainty equivalence learns",
        line=1580,
        latex=r"""\text{CE learns only ``accidentally''}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.4.second-parameter",
        section="6.4",
        title="what the bonus learns in the beginning",
        line=1580,
        latex=r"""\text{The BEB controller also
learns the second parameter in the beginning}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.4.second-zone",
        section="6.4",
        title="parameter that is needed last",
        line=1582,
        latex=r"\text{When the trajectory reaches the zone of the second parameter}",
        machine="dict(stays=at_the_end(reference, varphi2))",
        inline=True,
    ),
    Equation(
        id="6.4.refreshing",
        section="6.4",
        title="refreshing of knowledge by the bonus",
        line=1583,
        latex=r"\text{tries to lower the growing uncertainty every now and then}",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.4.drops",
        section="6.4",
        title="way to the parameter that is refreshed",
        line=1584,
        latex=r"\text{visible by the drops in state $x^1$}",
        machine="'drops'",
        inline=True,
    ),
    Equation(
        id="6.4.bonus-cost",
        section="6.4",
        title="cost of the bonus in experiment 4",
        line=1584,
        latex=r"\text{incurring high cost}",
        machine="'CE-BEB'",
        inline=True,
    ),
    Equation(
        id="6.4.order-of-parameters",
        section="6.4",
        title="parameters in the order in which the reference meets them",
        line=1585,
        latex=r"""\text{ignores the growing uncertainty on $\t^1$ after reaching the area of
$\t^2$}""",
        machine="dict(passed=largest(reference, varphi1), passed_at_the_end=at_the_end(reference, varphi1),"
        " stays=at_the_end(reference, varphi2))",
        inline=True,
    ),
    Equation(
        id="6.4.setting",
        section="6.4",
        title="constants of experiment 4",
        line=1535,
        latex=r"""\text{the model now assumes \emph{parameter drift}}""",
        machine="dict(r=reference, W=weights, T=last(reference), theta_true=truth)",
        introduces="setting of experiment 4",
        inline=True,
    ),
    Equation(
        id="6.5.performance",
        section="6.5",
        title="means of the dual controller",
        line=1595,
        latex=r"""\text{The AD controller shows good performance
overall}""",
        machine="'AD'",
        inline=True,
    ),
    Equation(
        id="6.5.low-variance",
        section="6.5",
        title="deviations of the dual controller",
        line=1596,
        latex=r"\text{it also has low variance}",
        machine="'AD'",
        inline=True,
    ),
    Equation(
        id="6.5.instabilities",
        section="6.5",
        title="instabilities",
        line=1596,
        latex=r"""\text{CE and BEB were more
prone to instabilities}""",
        machine="None",
        inline=True,
    ),
    Equation(
        id="6.5.table",
        section="6.5",
        title="Table 1: mean and standard deviation",
        line=1609,
        latex=r"""Oracle   & 0.67&0.23 & 1.75&0.33 &  7.15&3.85 &  0.66&0.51 \\
CE       & 0.84&0.73 & 2.49&0.74 & 15.72&5.20 &  1.76&0.90 \\
CE-BEB   & 0.99&0.92 & 2.64&0.37 & 20.88&6.74 & 84.91&6.77 \\
AD       & 0.77&0.43 & 1.96&0.34 & 14.33&5.40 &  1.62&0.56""",
        machine="{'Oracle': [(0.67, 0.23), (1.75, 0.33), (7.15, 3.85), (0.66, 0.51)],"
        " 'CE': [(0.84, 0.73), (2.49, 0.74), (15.72, 5.20), (1.76, 0.90)],"
        " 'CE-BEB': [(0.99, 0.92), (2.64, 0.37), (20.88, 6.74), (84.91, 6.77)],"
        " 'AD': [(0.77, 0.43), (1.96, 0.34), (14.33, 5.40), (1.62, 0.56)]}",
        introduces="Table 1",
    ),
    Equation(
        id="6.5.costs",
        section="6.5",
        title="costs of the table",
        line=1615,
        latex=r"""\text{Average and standard deviation of costs in the experiments for 50
runs.}""",
        machine="dict(oracle=table['Oracle'][1][0])",
        inline=True,
    ),
    Equation(
        id="6.5.runs",
        section="6.5",
        title="runs of the table",
        line=1615,
        latex=r"""\text{50
runs}""",
        machine="50",
        inline=True,
    ),
)
