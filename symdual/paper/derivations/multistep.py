"""Appendix A.1 against the recursive filter: n = 1..3, k = 1..5, non-commuting Q and R, non-zero prior mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from symdual.common.arrays import Array
from symdual.paper.case import Case, Convention, Correction, Derivation, Form
from symdual.paper.derivations import draws, lettered
from symdual.paper.derivations.filtering import Belief, predict, run, update
from symdual.paper.derivations.gaussians import beside
from symdual.paper.machine import counted
from symdual.paper.matrices import Matrix, identity, inverse, kronecker, stack, zeros

COLUMN = "F_{:,k} should be the transpose of F_{k,:}, which the first term has: a column of F is something else."
REVERSED = "Q (x) I repeats Q along the block diagonal (elsewhere written I (x) Q)"
TRANSITIONS = "m is the number of transitions between measurements, m = k - 1, not the number of features"


@dataclass(frozen=True)
class Steps:
    """A linear system over k steps, measured completely (or through H) after each of them."""

    n: int
    k: int
    measured: int

    @cached_property
    def numbers(self) -> dict[str, Array]:
        """Transitions A_0.., covariances and measurements."""
        rng = draws.source(60, self.n, self.k, self.measured)
        named = {f"A{j}": draws.stable(rng, self.n).array for j in range(self.k)}
        full = self.measured == self.n
        return {
            **named,
            "P0": draws.covariance(rng, self.n).array,
            "Q": draws.covariance(rng, self.n, 0.5).array,
            "R": draws.covariance(rng, self.measured, 0.7).array,
            "H": np.eye(self.n) if full else draws.matrix(rng, self.measured, self.n).array,
            "m0": draws.matrix(rng, self.n).array[:, 0],
            "y": draws.matrix(rng, self.k, self.measured).array,
        }

    @property
    def transitions(self) -> list[Array]:
        """A_0 .. A_{k-1}."""
        return [self.numbers[f"A{j}"] for j in range(self.k)]

    @cached_property
    def belief(self) -> Belief:
        """The recursive filter's belief after k measurements."""
        v = self.numbers
        return run(Belief(v["m0"], v["P0"]), self.transitions, v["Q"], v["H"], v["R"], list(v["y"]))

    @cached_property
    def impulse(self) -> Array:
        """x_{1:k} as a map of the increments d_{1:k}: simulated with one unit increment at a time."""
        columns = []
        for unit in np.eye(self.n * self.k):
            state, path = np.zeros(self.n), []
            for j, increment in enumerate(unit.reshape(self.k, self.n)):
                state = (self.transitions[j] @ state if j else np.zeros(self.n)) + increment
                path.append(state)
            columns.append(np.concatenate(path))
        return np.stack(columns, axis=1)

    @cached_property
    def from_start(self) -> Array:
        """x_{1:k} as a map of x_0, without noise."""
        columns = []
        for unit in np.eye(self.n):
            state, path = unit, []
            for transition in self.transitions:
                state = transition @ state
                path.append(state)
            columns.append(np.concatenate(path))
        return np.stack(columns, axis=1)

    @cached_property
    def parts(self) -> dict[str, Matrix]:
        """The ingredients as they follow from the system: covariances of the increments and of the noise."""
        v = self.numbers
        start = np.linalg.solve(self.impulse, self.from_start)
        wide = self.n * self.k
        drift = np.zeros((wide, wide))
        noise = np.zeros((self.measured * self.k, self.measured * self.k))
        for j in range(self.k):
            drift[j * self.n : (j + 1) * self.n, j * self.n : (j + 1) * self.n] = v["Q"]
            at = slice(j * self.measured, (j + 1) * self.measured)
            noise[at, at] = v["R"]
        return {
            "F": Matrix(self.impulse),
            "calP": Matrix(start @ v["P0"] @ start.T),
            "calQ": Matrix(drift),
            "calR": Matrix(noise),
            "mu": Matrix(start @ v["m0"]),
        }

    def measurement_covariance(self) -> Array:
        """The joint covariance of y_{1:k}, from the maps of x_0 and of the increments."""
        v, h = self.numbers, np.kron(np.eye(self.k), self.numbers["H"])
        states = self.from_start @ v["P0"] @ self.from_start.T
        states = states + self.impulse @ self.parts["calQ"].array @ self.impulse.T
        return np.asarray(h @ states @ h.T + self.parts["calR"].array)

    def symbols(self) -> dict[str, object]:
        """Everything that the printed formulas of the appendix refer to."""
        v, n = self.numbers, self.n

        def row(matrix: Matrix, index: int) -> Matrix:
            return Matrix(matrix.array[(index - 1) * n : index * n])

        def column(matrix: Matrix, index: int) -> Matrix:
            return Matrix(matrix.array[:, (index - 1) * n : index * n])

        def block(i: int, j: int) -> Matrix:
            whole = np.hstack([self.from_start, self.impulse])
            return Matrix(whole[(i - 1) * n : i * n, j * n : (j + 1) * n])

        return {
            "n": n,
            "k": self.k,
            "A": counted([Matrix(a) for a in self.transitions], 0),
            **{name: Matrix(v[name]) for name in ("P0", "Q", "R", "H", "m0")},
            "y": Matrix(v["y"].reshape(-1)),
            **self.parts,
            "row": row,
            "column": column,
            "block": block,
            "inv": inverse,
            "stack": stack,
            "identity": identity,
            "zeros": zeros,
        }

    def where(self) -> str:
        """The sizes in words."""
        return f"n = {self.n}, k = {self.k}"


def all_sizes() -> Iterator[Steps]:
    """n = 1..3 and k = 1..5, complete measurements."""
    for n in (1, 2, 3):
        for k in range(1, 6):
            yield Steps(n, k, n)


def _two_step_symbols(steps: Steps) -> dict[str, object]:
    """The symbols of the two-step update: g_ij are predicted covariances of (x_1, x_2), S_i innovations."""
    v = steps.numbers
    joint = steps.from_start @ v["P0"] @ steps.from_start.T
    joint = joint + steps.impulse @ steps.parts["calQ"].array @ steps.impulse.T
    n, h = steps.n, v["H"]
    after = update(predict(Belief(v["m0"], v["P0"]), v["A0"], v["Q"]), h, v["R"], v["y"][0])
    second = predict(after, v["A1"], v["Q"])
    return {
        **steps.symbols(),
        "g00": Matrix(joint[:n, :n]),
        "g01": Matrix(joint[:n, n:]),
        "g10": Matrix(joint[n:, :n]),
        "g11": Matrix(joint[n:, n:]),
        "S1": Matrix(steps.measurement_covariance()[: steps.measured, : steps.measured]),
        "S2": Matrix(h @ second.cov @ h.T + v["R"]),
        "P1": Matrix(after.cov),
        "G": Matrix(steps.measurement_covariance()),
    }


def _two_steps(
    wanted: Callable[[Steps], Array], full: bool = False, letters: Callable[[], Iterator[Case]] | None = None
) -> Iterator[Case]:
    for n, measured in ((1, 1), (2, 2), (3, 3)) if full else ((1, 1), (2, 1), (3, 2), (2, 2)):
        steps = Steps(n, 2, measured)
        yield Case(f"n = {n}, {measured} measured", _two_step_symbols(steps), Matrix(wanted(steps)))
    if letters is not None:
        yield from letters()


def _after_one(steps: Steps) -> Array:
    v = steps.numbers
    return update(predict(Belief(v["m0"], v["P0"]), v["A0"], v["Q"]), v["H"], v["R"], v["y"][0]).cov


def _predicted_two(steps: Steps) -> Array:
    v = steps.numbers
    return predict(Belief(v["m0"], _after_one(steps)), v["A1"], v["Q"]).cov


def _innovation(steps: Steps) -> Array:
    return steps.measurement_covariance()[: steps.measured, : steps.measured]


def _predicted_one(steps: Steps) -> Array:
    v = steps.numbers
    return predict(Belief(v["m0"], v["P0"]), v["A0"], v["Q"]).cov


def _gram_inverse(steps: Steps) -> Array:
    return np.asarray(np.linalg.inv(steps.measurement_covariance()), dtype=np.float64)


def _second_innovation(steps: Steps) -> Array:
    v = steps.numbers
    return np.asarray(v["H"] @ _predicted_two(steps) @ v["H"].T + v["R"])


def _filter_form() -> Iterator[Case]:
    for n in (1, 3):
        yield Case(f"n = {n}", {**Steps(n, 1, n).symbols(), "N": beside}, Form(n, n + 1))


def _general(wanted: Callable[[Steps], Matrix]) -> Iterator[Case]:
    for steps in all_sizes():
        yield Case(steps.where(), steps.symbols(), wanted(steps))


def _kron(name: str, repeated: bool) -> Iterator[Case]:
    product = (lambda left, right: kronecker(right, left)) if repeated else kronecker
    for steps in all_sizes():
        yield Case(steps.where(), {**steps.symbols(), "kron": product}, steps.parts[name])


def _corner() -> Iterator[Case]:
    for steps in all_sizes():
        wide = steps.n * steps.k

        def corner(block: Matrix, wide: int = wide) -> Matrix:
            whole = np.zeros((wide, wide))
            whole[: block.shape[0], : block.shape[1]] = block.array
            return Matrix(whole)

        yield Case(steps.where(), {**steps.symbols(), "corner": corner}, steps.parts["calP"])


def transition_symbols(steps: Steps, m: int) -> dict[str, object]:
    """What the printed F and its inverse refer to."""

    def blocks(count: int, entry: Callable[[int, int], Matrix]) -> Matrix:
        return stack([[entry(i, j) for j in range(1, count + 1)] for i in range(1, count + 1)])

    def product(factors: object, last: int, first: int) -> Matrix:
        result = factors[last]  # type: ignore[index]
        for index in range(last - 1, first - 1, -1):
            result = result @ factors[index]  # type: ignore[index]
        return result  # type: ignore[no-any-return]

    shapes = {"one": identity(steps.n), "nil": zeros(steps.n, steps.n)}
    return {**steps.symbols(), **shapes, "m": m, "blocks": blocks, "product": product}


def _transition(inverted: bool, features: int | None) -> Iterator[Case]:
    for steps in all_sizes():
        expected = np.linalg.inv(steps.impulse) if inverted else steps.impulse
        m = steps.k - 1 if features is None else features
        yield Case(steps.where(), transition_symbols(steps, m), Matrix(expected))
    if features is None:
        yield from lettered.transition(inverted)


def _transition_derivation(inverted: bool) -> Derivation:
    how = "Simulation with unit increments" + (", inverted numerically" if inverted else "")
    return Derivation(
        f"{how}; and with non-commuting letters.",
        partial(_transition, inverted, 7),
        conventions=(Convention(TRANSITIONS, partial(_transition, inverted, None)),),
    )


def _covariance(steps: Steps) -> Matrix:
    return Matrix(steps.belief.cov)


def _mean(steps: Steps) -> Matrix:
    return Matrix(steps.belief.mean)


PRIOR_CORRECTION = Correction(
    r"\P = \begin{bmatrix} A_0 P_0 A_0\T & 0 \\ 0 & 0 \end{bmatrix}",
    "corner(A[0] @ P0 @ A[0].T)",
    "The first block of F belongs to x_1, so the prior has to be moved through A_0 first.",
)


def prior_block() -> Derivation:
    """The block of the prior, for the appendix and for the main text."""
    return Derivation(
        "The covariance that x_0 gives to the increments d = F^-1 x_{1:k}, by simulation.",
        _corner,
        correction=PRIOR_CORRECTION,
    )


def kron_block(name: str, what: str) -> Derivation:
    """The repeated covariance, for the appendix and for the main text."""
    return Derivation(
        f"The covariance of the stacked {what}, block by block, in the order of time.",
        partial(_kron, name, False),
        conventions=(
            Convention(REVERSED.replace("Q", "R") if name == "calR" else REVERSED, partial(_kron, name, True)),
        ),
    )


transition_matrix = partial(_transition_derivation, False)
transition_inverse = partial(_transition_derivation, True)

_RECURSIVE = "The recursive filter, n = 1..3, k = 1..5."
_TWO = "The recursive filter after two steps, complete and partial measurements"

DERIVATIONS = {
    "A.density": Derivation("Sizes of mean and covariance.", _filter_form),
    "A.1.one-step": Derivation("The recursive filter after one step (Joseph form).", partial(_two_steps, _after_one)),
    "A.1.innovation": Derivation(
        "The covariance of y_1 from the joint distribution of all measurements.", partial(_two_steps, _innovation)
    ),
    "A.1.predicted": Derivation(
        "Predict, update, predict with the recursive filter.", partial(_two_steps, _predicted_two)
    ),
    "A.1.predicted-expanded": Derivation(
        "Predict, update, predict with the recursive filter; and with non-commuting letters.",
        partial(_two_steps, _predicted_two, letters=lettered.predicted),
    ),
    "A.1.g00": Derivation(
        "The predicted covariance of x_1, which every later formula takes for g_00.",
        partial(_two_steps, _predicted_one),
        correction=Correction(
            r"H \underbrace{\left(A_0 P_0 A_0\T + Q\right)}_{\ce g_{00}} H\T + R = S_1",
            "A[0] @ P0 @ A[0].T + Q",
            "Under the brace g_00 is S_1; in the Gram matrix it is the predicted covariance, and S_1 = H g_00 H' + R.",
        ),
    ),
    "A.1.predicted-compact": Derivation(
        "Predict, update, predict with the recursive filter; g_00 as corrected, the predicted covariance of x_1.",
        partial(_two_steps, _predicted_two),
        correction=Correction(
            r"g_{11} - g_{10}H\T S_1\inv H g_{01}",
            "g11 - g10 @ H.T @ inv(S1) @ H @ g01",
            "What is inverted is S_1 = H g_00 H' + R, as the next formula of the paper has it.",
        ),
    ),
    "A.1.second-innovation": Derivation(
        "The covariance of y_2 given y_1, from the recursive filter.", partial(_two_steps, _second_innovation)
    ),
    "A.1.gram-inverse": Derivation(
        "The inverse of the joint covariance of y_1 and y_2, computed numerically.", partial(_two_steps, _gram_inverse)
    ),
    "A.1.two-steps": Derivation(f"{_TWO}.", partial(_two_steps, lambda s: s.belief.cov)),
    "A.1.two-steps-expanded": Derivation(
        f"{_TWO}; and with non-commuting letters.",
        partial(_two_steps, lambda s: s.belief.cov, letters=lettered.two_steps),
    ),
    "A.1.two-steps-block": Derivation(
        f"{_TWO}; and with non-commuting letters.",
        partial(_two_steps, lambda s: s.belief.cov, letters=lettered.two_steps),
    ),
    "A.1.schur": Derivation(
        "The joint covariance of y_1 and y_2; g_00 is the predicted covariance of x_1.",
        partial(_two_steps, lambda s: s.measurement_covariance()),
    ),
    "A.1.full-measurement": Derivation(
        f"{_TWO}.",
        partial(_two_steps, lambda s: s.belief.cov, True),
        correction=Correction(
            r"""P_2 = g_{11} - \begin{bmatrix}g_{10} & g_{11}\end{bmatrix}
    \begin{bmatrix} g_{00}+ R & g_{01}\\ g_{10}& g_{11} + R \end{bmatrix}\inv
  \begin{bmatrix}g_{01} \\ g_{11}\end{bmatrix}""",
            "g11 - stack([[g10, g11]]) @ inv(stack([[g00 + R, g01], [g10, g11 + R]])) @ stack([[g01], [g11]])",
            "g_10 must not be transposed; the next line of the paper has it right.",
        ),
    ),
    "A.1.full-measurement-expanded": Derivation(f"{_TWO}.", partial(_two_steps, lambda s: s.belief.cov, True)),
    "A.1.gram": Derivation(
        "The joint covariance of all measurements, by simulation; the parts as derived.",
        partial(_general, lambda s: Matrix(s.measurement_covariance())),
    ),
    "A.1.prior-block": prior_block(),
    "A.1.drift-block": kron_block("calQ", "drift"),
    "A.1.noise-block": kron_block("calR", "measurement noise"),
    "A.1.transition": transition_matrix(),
    "A.1.transition-inverse": transition_inverse(),
    "A.1.covariance": Derivation(
        _RECURSIVE,
        partial(_general, _covariance),
        correction=Correction(
            r"P_k = \F_{k,:}(\P + \Q)\F_{k,:}\T - \F_{k,:}(\P + \Q)\F\T (\F\P\F\T + \F\Q\F\T + \R)\inv"
            r" \F (\P + \Q) \F_{k,:}\T",
            "row(F, k) @ (calP + calQ) @ row(F, k).T - row(F, k) @ (calP + calQ) @ F.T"
            " @ inv(F @ calP @ F.T + F @ calQ @ F.T + calR) @ F @ (calP + calQ) @ row(F, k).T",
            f"F and its transpose are exchanged, and {COLUMN}",
        ),
    ),
    "A.1.covariance-compact": Derivation(
        _RECURSIVE,
        partial(_general, _covariance),
        correction=Correction(
            r"P_k = \F_{k,:}(\P + \Q)\F_{k,:}\T - \F_{k,:}(\P + \Q)(\P + \Q + \F\inv\R\F^{-\intercal})\inv"
            r" (\P + \Q) \F_{k,:}\T",
            "row(F, k) @ (calP + calQ) @ row(F, k).T - row(F, k) @ (calP + calQ)"
            " @ inv(calP + calQ + inv(F) @ calR @ inv(F).T) @ (calP + calQ) @ row(F, k).T",
            COLUMN,
        ),
    ),
    "A.1.mean": Derivation(
        f"{_RECURSIVE} F_{{k,0}} is read as A_{{k-1}} ... A_0.",
        partial(_general, _mean),
        correction=Correction(
            r"m_k = \F_{k,:}\left[\mu + (\P + \Q)(\P + \Q + \F\inv\R\F^{-\intercal})\inv (\F\inv\vec{y} - \mu)\right],"
            r" \q \mu = \begin{bmatrix} A_0 m_0 \\ 0 \end{bmatrix}",
            "row(F, k) @ (mu + (calP + calQ) @ inv(calP + calQ + inv(F) @ calR @ inv(F).T) @ (inv(F) @ y - mu))",
            "The measurements enter through F^-1 and minus their prior mean.",
        ),
    ),
}
