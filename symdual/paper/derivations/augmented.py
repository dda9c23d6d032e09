"""Appendix A.2 and the posterior of Section 5.2 against the recursive filter on z = (x, w).

Transitions x_{j+1} = A_j x_j + Phi_j w + c_j + q_j, measurements y_{j+1} = x_{j+1} + r_{j+1}; n = 1..3, k = 1..5,
full Q and R that do not commute, non-zero prior means and offsets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.case import Case, Computed, Convention, Correction, Derivation, Form, Printed
from symdual.paper.derivations import draws, lettered, multistep
from symdual.paper.derivations.filtering import Belief, predict, update
from symdual.paper.derivations.gaussians import moments
from symdual.paper.derivations.multistep import COLUMN
from symdual.paper.derivations.weights import (
    FEATURES,
    Learning,
    cross_covariance,
    everything,
    state_covariance,
    weight_covariance,
)
from symdual.paper.machine import Indexed, counted
from symdual.paper.matrices import Matrix, inverse, kronecker, stack, zeros

INDEPENDENT = "x_0 and the weights are independent before the first step (Sigma^xw_0 = 0)"


def _general(wanted: Callable[[Learning], Array]) -> Iterator[Case]:
    for learning in everything():
        yield Case(learning.steps.where(), learning.symbols(), Matrix(wanted(learning)))


def _compact_gram(learning: Learning) -> Array:
    whitened = np.linalg.solve(learning.steps.impulse, learning.measurement_covariance())
    return np.linalg.solve(learning.steps.impulse, whitened.T).T


def _two(correlated: bool, kernels: bool, letters: bool) -> Iterator[Case]:
    for n in (1, 2, 3):
        learning = Learning(n, 2)
        phi, sww = learning.phis, learning.numbers["Sww"]
        kappa = {(i, j): Matrix(phi[i] @ sww @ phi[j].T) for i in range(2) for j in range(2)}
        symbols = {
            **learning.symbols(),
            "G": Matrix(learning.steps.measurement_covariance()),
            "Phi": counted([Matrix(value) for value in phi], 0),
            "kappa": Indexed(kappa),
        }
        yield Case(f"n = {n}", symbols, Matrix(learning.measurement_covariance(correlated)))
    if letters:
        yield from lettered.gram(kernels)


def _kernel() -> Iterator[Case]:
    """cov(f(x), f(x')) of f = Phi w for random weights, by quadrature."""
    for n in (1, 2):
        learning = Learning(n, 2)
        x, other = learning.numbers["points"]
        both = np.vstack([learning.features(x), learning.features(other)])
        _, spread = moments(partial(np.matmul, both), np.zeros(FEATURES), learning.numbers["Sww"])
        symbols = {
            **learning.symbols(),
            "x": Matrix(x),
            "x2": Matrix(other),
            "phi": lambda i, at, learning=learning: Matrix(learning.features(at.array[:, 0])[:, i - 1]),
        }
        yield Case(f"n = {n}", symbols, Matrix(spread[:n, n:]))


def _kernel_points() -> Iterator[Case]:
    for learning in sorted(everything(), key=lambda item: item.k == 1):
        sww = learning.numbers["Sww"]

        def kernel(points: Indexed, first: int, last: int, learning: Learning = learning, sww: Array = sww) -> Matrix:
            phis = [learning.features(points[i].array[:, 0]) for i in range(first, last + 1)]
            if not phis:
                return zeros(0, 0)
            return stack([[Matrix(left @ sww @ right.T) for right in phis] for left in phis])

        symbols = learning.symbols()
        seen = counted([Matrix(value) for value in learning.steps.numbers["y"]], 1)
        symbols |= {"kernel": kernel, "y_at": seen, "m": learning.k - 1}
        yield Case(learning.steps.where(), symbols, symbols["calK"])


def kernel_block() -> Derivation:
    """The kernel matrix, for the appendix and for the main text."""
    return Derivation(
        "The covariance that the weights give to the increments d = F^-1 x_{1:k}, by simulation.",
        _kernel_points,
        correction=Correction(
            r"\K = \kappa(\hat{\vec{x}}_{0:k-1},\hat{\vec{x}}_{0:k-1})",
            "kernel(x_hat, 0, k - 1)",
            "The features are evaluated where the transitions start, at the estimates of x_0 to x_{k-1}: one block more"
            " than y_{1:m} with the m of F, and not at measurements.",
        ),
    )


def _jacobian(printed_phi: bool) -> Iterator[Case]:
    """The Jacobian of (x, w) -> (f, w) with f = sum_j w_j phi_j(x), differentiated by hand."""
    for n in (1, 2, 3):
        learning = Learning(n, 1)
        v, x = learning.numbers, learning.numbers["points"][0]
        weights = v["w0"]
        bends = v["mix"] * np.cos(v["waves"] @ x + 0.3)[None, :] * weights[None, :]
        whole = np.block(
            [[bends @ v["waves"], learning.features(x)], [np.zeros((FEATURES, n)), np.eye(FEATURES)]],
        )

        def phi(at: Matrix, learning: Learning = learning) -> Matrix:
            return Matrix(learning.features(at.array[:, 0]))

        def transposed(at: Matrix, phi: Callable[[Matrix], Matrix] = phi) -> Matrix:
            return phi(at).T

        # f as the paper prints it, Phi' w: there Phi has a row for each weight
        printed = Printed("A.2.weight-space", ("x", "w"), {"Phi": transposed})
        symbols = {
            **learning.symbols(),
            "x": Matrix(x),
            "w": Matrix(weights),
            "f": printed,
            "Phi": transposed if printed_phi else phi,
            "slope": _slope,
        }
        yield Case(f"n = {n}, p = {FEATURES}", symbols, Matrix(whole))


def _slope(function: Callable[[Matrix], Matrix], at: Matrix) -> Matrix:
    """The Jacobian by central differences, extrapolated once."""
    columns = []
    for unit in np.eye(at.shape[0]):
        wide, narrow = (
            (function(at + Matrix(h * unit)).array - function(at - Matrix(h * unit)).array) / (2 * h)
            for h in (2e-3, 1e-3)
        )
        columns.append(narrow + (narrow - wide) / 3)
    return Matrix(np.hstack(columns))


def _replaced() -> Iterator[Case]:
    """Two steps of the recursive filter on z = (x, w), of which x is measured."""
    for n in (1, 2, 3):
        learning = Learning(n, 2)
        s, size = learning.steps.numbers, n + FEATURES
        drift, select = np.zeros((size, size)), np.eye(n, size)
        drift[:n, :n] = s["Q"]
        first, second = learning.jacobian(0), learning.jacobian(1)
        g00 = first @ learning.prior(False).cov @ first.T + drift
        g10, g11 = second @ g00, second @ g00 @ second.T + drift
        s1 = select @ g00 @ select.T + s["R"]
        s2 = select @ (g11 - g10 @ select.T @ np.linalg.solve(s1, select @ g10.T)) @ select.T + s["R"]
        blocks = {"g00": g00, "g01": g10.T, "g10": g10, "g11": g11, "S1": s1, "S2": s2, "H": select, "R": s["R"]}
        symbols = {
            **learning.symbols(),
            **{name: Matrix(value) for name, value in blocks.items()},
            "A": counted([Matrix(first), Matrix(second)], 0),
            "P0": Matrix(learning.prior(False).cov),
            "Q": Matrix(drift),
            "two_steps": Printed("A.1.full-measurement-expanded"),
            "two_steps_with_H": Printed("A.1.two-steps-block"),
        }
        yield Case(f"n = {n}, p = {FEATURES}", symbols, Matrix(learning.belief.cov))


def _forms(kind: str) -> Iterator[Case]:
    for n in (1, 2):
        learning = Learning(n, 2)
        rng = draws.source(71, n)
        phi = draws.matrix(rng, FEATURES, n)
        symbols = {
            **learning.symbols(),
            "k": 1,
            "x": counted([draws.matrix(rng, n), draws.matrix(rng, n)], 0),
            "q": counted([draws.matrix(rng, n)], 0),
            "r": counted([draws.matrix(rng, n)], 1),
            "w": draws.matrix(rng, FEATURES),
            "f": lambda x: Matrix(np.sin(x.array)),
            "Phi": lambda x, phi=phi: phi,
        }
        sizes = {"state": (n, 1), "augmented": (n + FEATURES, 1), "blocks": (n + FEATURES, n + FEATURES)}
        yield Case(f"n = {n}, p = {FEATURES}", symbols, Form(*sizes[kind]))


def _prediction() -> Iterator[Case]:
    """One predict step of the recursive filter from a correlated belief: the block of x."""
    for n in (1, 2, 3):
        learning = Learning(n, 1)
        belief, s = learning.prior(True), learning.steps.numbers
        drift = np.zeros((n + FEATURES,) * 2)
        drift[:n, :n] = s["Q"]
        after = predict(belief, learning.jacobian(0), drift).cov[:n, :n]
        cov = belief.cov
        symbols = {
            **learning.symbols(),
            "Ak": Matrix(s["A0"]),
            "Phik": Matrix(learning.phis[0]),
            "Sxx": Matrix(cov[:n, :n]),
            "Sxt": Matrix(cov[:n, n:]),
            "Stx": Matrix(cov[n:, :n]),
            "Stt": Matrix(cov[n:, n:]),
        }
        yield Case(f"n = {n}", symbols, Matrix(after))


def _measurement() -> Iterator[Case]:
    for n in (1, 2, 3):
        learning = Learning(n, 1)
        s = learning.steps.numbers
        prior = draws.covariance(draws.source(72, n), n).array
        after = update(Belief(np.zeros(n), prior), np.eye(n), s["R"], s["y"][0]).cov
        yield Case(f"n = {n}", {**learning.symbols(), "Sbar": Matrix(prior)}, Matrix(after))


def _transposed_cross() -> Iterator[Case]:
    """The block (theta, x) of the filter's covariance; Sigma^{x theta} is the paper's own formula, just above."""
    for learning in everything():
        symbols = {**learning.symbols(), "Sxt": Printed("5.2.cross")}
        yield Case(learning.steps.where(), symbols, Matrix(learning.belief.cov[learning.n :, : learning.n]))


def _posterior_mean() -> Iterator[Case]:
    for learning in everything():
        symbols = learning.symbols()
        symbols |= {"x_last": Matrix(learning.numbers["points"][-1])}
        yield Case(learning.steps.where(), symbols, Matrix(learning.belief.mean))


def _prior_of_weights() -> Iterator[Case]:
    """The covariance of theta = (L Omega, row by row) for independent Omega_jl of variance lambda_l."""
    rng = draws.source(73)
    variances = np.array([0.9, 0.5, 0.2])
    mixing = np.tril(draws.matrix(rng, 2, 2).array)
    spread = np.zeros((2 * FEATURES, 2 * FEATURES))
    for j in range(2):
        for term in range(FEATURES):
            omega = np.zeros((2, FEATURES))
            omega[j, term] = 1.0
            effect = (mixing @ omega).reshape(-1)
            spread += variances[term] * np.outer(effect, effect)
    symbols = {
        "V": Matrix(mixing @ mixing.T),
        "Phi": draws.matrix(rng, 4, FEATURES),
        "Lambda": Matrix(np.diag(variances)),
        "kron": kronecker,
    }
    yield Case("n = 2, three features at four points", symbols, Matrix(spread))


def _gram_size() -> Iterator[Case]:
    for n, horizon in ((1, 3), (2, 4), (3, 5)):
        size = Learning(n, horizon).measurement_covariance().shape[0]
        yield Case(f"n = {n}, T = {horizon}", {"n": n, "T": horizon}, size)


def _conditions(gram: Matrix, compact: Matrix) -> str:
    """Whether the compact matrix is the easier one to invert."""
    before, after = (float(np.linalg.cond(matrix.array)) for matrix in (gram, compact))
    return "stable" if after < before else "not more stable"


def _stability() -> Iterator[Case]:
    """Twenty steps of a system that shrinks, stays or grows, the kernel being a square exponential."""
    points, steps = draws.matrix(draws.source(97), 20).array, 20
    for pace in (0.5, 1.0, 1.5):
        transition = np.array([[pace ** max(i - j, 0) * (i >= j) for j in range(steps)] for i in range(steps)])
        for level in (1e-4, 1.0):
            symbols = {
                "F": Matrix(transition),
                "calP": Matrix(np.diag([1.0] + [0.0] * (steps - 1))),
                "calQ": Matrix(0.1 * np.eye(steps)),
                "calR": Matrix(level * np.eye(steps)),
                "calK": Matrix(np.exp(-((points - points.T) ** 2) / 2)),
                "inv": inverse,
            }
            lines = {"gram": Printed("A.2.gram"), "compact": Printed("A.2.gram-compact")}
            yield Case(f"A = {pace:g}, R = {level:g}, k = {steps}", symbols, Computed(_conditions, lines))


_RECURSIVE = "The recursive filter on (x, w), n = 1..3, k = 1..5; the parts as derived."

_MEAN = (
    r"\q \mu = \begin{bmatrix} A_0 m_0 \\ 0 \end{bmatrix} + \Phi \bar w_0 + c",
    "The measurements enter through F^-1 and minus their prior mean, to which the weights and the offsets c_j of the"
    " linearisation contribute.",
)

CROSS = Derivation(_RECURSIVE, partial(_general, cross_covariance))
WEIGHTS = Derivation(_RECURSIVE, partial(_general, weight_covariance))
GRAM = Derivation(
    "The joint covariance of F^-1 y by simulation; the parts as derived.", partial(_general, _compact_gram)
)

APPENDIX = {
    "A.2.system-state": Derivation("Sizes.", partial(_forms, "state")),
    "A.2.system-measurement": Derivation("Sizes.", partial(_forms, "state")),
    "A.2.weight-space": Derivation("Sizes: Phi has one row for each weight here.", partial(_forms, "state")),
    "A.2.state": Derivation("Sizes.", partial(_forms, "augmented")),
    "A.2.blocks": Derivation("Sizes.", partial(_forms, "blocks")),
    "A.2.jacobian": Derivation(
        "The Jacobian of (x, w) -> (f, w) by hand; df/dx of the f that is printed above, by differences.",
        partial(_jacobian, True),
        conventions=(
            Convention("Phi stands for df/dw, that is f = Phi w and not f = Phi' w", partial(_jacobian, False)),
        ),
    ),
    "A.2.replaced": Derivation(
        "Two steps of the recursive filter on (x, w), of which x is measured.",
        _replaced,
        correction=Correction(
            r"\text{where, in the formula for $P_2$ with $H$, the original $x$ is replaced by the augmented $z$,"
            r" $P$ by $\Sigma$ and $A$ by $J_A$}",
            "two_steps_with_H",
            "The formula referred to holds for H = I, but the weights are not measured: R is too small for it. The form"
            " with H, three formulas earlier, is the one to replace in.",
        ),
    ),
    "A.2.gram-two": Derivation(
        "The joint covariance of y_1 and y_2 by simulation; and with non-commuting letters.",
        partial(_two, True, False, False),
        conventions=(Convention(INDEPENDENT, partial(_two, False, False, True)),),
    ),
    "A.2.kernel": Derivation(
        "cov(f(x), f(x')) for random weights, by quadrature.",
        _kernel,
        correction=Correction(
            r"\Phi(x) \Sigma^{ww}_0 \Phi(x')\T",
            "Phi(x) @ Sww @ Phi(x2).T",
            "The second factor belongs to x'; the sum beside it has it right.",
        ),
    ),
    "A.2.kernel-sum": Derivation("cov(f(x), f(x')) for random weights, by quadrature.", _kernel),
    "A.2.gram-kernel": Derivation(
        "The joint covariance of y_1 and y_2 by simulation; and with non-commuting letters.",
        partial(_two, False, True, True),
        remark="x_0 and the weights are independent.",
    ),
    "A.2.gram": Derivation(
        "The joint covariance of all measurements by simulation; the parts as derived.",
        partial(_general, lambda learning: learning.measurement_covariance()),
    ),
    "A.2.kernel-block": kernel_block(),
    "A.2.stable": Derivation("The condition numbers of both printed matrices after twenty steps.", _stability),
    "A.2.gram-compact": GRAM,
    "A.2.covariance": Derivation(
        _RECURSIVE,
        partial(_general, state_covariance),
        correction=Correction(
            r"P_k = \F_{k,:}(\P + \Q + \K)\F_{k,:}\T - \F_{k,:}(\P + \Q + \K)\G\inv (\P + \Q + \K) \F_{k,:}\T",
            "row(F, k) @ (calP + calQ + calK) @ row(F, k).T"
            " - row(F, k) @ (calP + calQ + calK) @ inv(calG) @ (calP + calQ + calK) @ row(F, k).T",
            COLUMN,
        ),
    ),
    "A.2.cross": Derivation(
        _RECURSIVE,
        partial(_general, lambda learning: cross_covariance(learning).T),
        correction=Correction(
            r"\Sigma^{xw}_k = \left(\Sigma^{wx}_k\right)\T = \F_{k,:} \Phi \Sigma^{ww}_0"
            r" - \F_{k,:} \left( \P + \K + \Q \right) \G\inv\Phi\Sigma^{ww}_0",
            "(row(F, k) @ Phi_all @ Sww - row(F, k) @ (calP + calK + calQ) @ inv(calG) @ Phi_all @ Sww).T",
            "The right-hand side is the block of (x, w), not of (w, x); Section 5.2 has it right.",
        ),
    ),
    "A.2.weight-covariance": WEIGHTS,
    "A.2.mean": Derivation(
        f"{_RECURSIVE} F_{{k,0}} is read as A_{{k-1}} ... A_0.",
        partial(_general, lambda learning: learning.belief.mean[: learning.n]),
        correction=Correction(
            r"m_k = \F_{k,:}\left[\mu + (\P + \Q + \K)\G\inv (\F\inv\vec{y} - \mu)\right]," + _MEAN[0],
            "row(F, k) @ (mu + (calP + calQ + calK) @ inv(calG) @ (inv(F) @ y - mu))",
            _MEAN[1],
        ),
    ),
    "A.2.weight-mean": Derivation(
        _RECURSIVE,
        partial(_general, lambda learning: learning.belief.mean[learning.n :]),
        correction=Correction(
            r"\bar w_k = \bar w_0 + \Sigma^{ww}_0\Phi\T \G\inv(\F\inv\vec{y} - \mu)," + _MEAN[0],
            "w0 + Sww @ Phi_all.T @ inv(calG) @ (inv(F) @ y - mu)",
            _MEAN[1],
        ),
    ),
}

MAIN_TEXT = {
    "5.2.prior-covariance": Derivation(
        "The covariance of the weights L Omega, row by row, from draws of single coefficients.",
        _prior_of_weights,
        correction=Correction(
            r"\Sigma_0 ^{\theta\theta} = V\otimes \Lambda",
            "kron(V, Lambda)",
            "With the features on both sides it is the covariance of values of f, not of the weights theta; the"
            " posterior further down starts from Lambda.",
        ),
    ),
    "5.2.gram": GRAM,
    "5.2.prior-block": multistep.prior_block(),
    "5.2.drift-block": multistep.kron_block("calQ", "drift"),
    "5.2.kernel-block": kernel_block(),
    "5.2.noise-block": multistep.kron_block("calR", "measurement noise"),
    "5.2.transition": multistep.transition_matrix(),
    "5.2.transition-inverse": multistep.transition_inverse(),
    "5.2.posterior-mean": Derivation(
        _RECURSIVE,
        _posterior_mean,
        correction=Correction(
            r"""\begin{bmatrix} \hat{x}_k\\ \hat{\theta}_k \end{bmatrix} =
            \begin{bmatrix} \F_{k,:}\mu \\ \hat\theta_0 \end{bmatrix} +
            \begin{bmatrix} \F_{k,:}(\P+\Q+\K) \\ \Lambda\Phi\T \end{bmatrix} \G\inv (\F\inv\vec{y} - \mu)""",
            "stack([[row(F, k) @ mu], [w0]]) + stack([[row(F, k) @ (calP + calQ + calK)], [Lambda @ Phi_all.T]])"
            " @ inv(calG) @ (inv(F) @ y - mu)",
            "Printed, a matrix is added to a vector and no measurement occurs; mu is the prior mean of F^-1 y.",
        ),
    ),
    "5.2.prediction": Derivation("The recursive filter's predict step from a correlated belief.", _prediction),
    "5.2.update": Derivation(
        "The recursive filter's update step (Joseph form) for a complete measurement.", _measurement
    ),
    "5.2.cross": CROSS,
    "5.2.cross-transposed": Derivation(
        "The block (theta, x) of the recursive filter's covariance, against the transposed formula above it.",
        _transposed_cross,
    ),
    "5.2.parameter-covariance": WEIGHTS,
    "5.2.gram-size": Derivation("The joint covariance of T complete measurements, counted.", _gram_size),
}

DERIVATIONS = {**APPENDIX, **MAIN_TEXT}
