"""The model along a trajectory, linear in the state, the unknowns and the values of its processes.

With z = (x, theta), theta being the unknowns that belong to no process, and g_t the values that step t takes of
processes, at the points s_t that lie on the trajectory z^:

    z_{t+1} = A_t z_t + B_t g_t + c_t + noise,      y_t = C_t z_t + d_t + noise

    A = [f_x f_theta; 0 D],    B = [df/dg; 0],    c = [f^ - f_x x^ - f_theta theta^ - df/dg g^; 0],    C = [h_x h_theta]

f_x contains the slope of the mean of g: where x is off the trajectory, g moves along its mean, and the values g_t are
taken at known points only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from symdual.common.arrays import Array
from symdual.common.errors import SymdualError
from symdual.derive.calculus import Calculus
from symdual.identification.processes.program import NumericProgram, ProgramValues
from symdual.identification.processes.setup import Indices, ProcessSetup
from symdual.spec.symbols import Family


class Block(NamedTuple):
    """Where a process is evaluated: `points` (N, arguments) in the steps `times` (N,).

    Its values there are entries `columns` (outputs, N) of all values of all processes; `slopes` (N, arguments, states)
    say how the points move with the state.
    """

    family: Family
    points: Array
    times: Indices
    columns: Indices
    slopes: Array


class MeanFunction(NamedTuple):
    """E g_t(a) = sum_n weights[n] tau(t, times[n]) kappa(a, points[n]) for every output of every process."""

    blocks: tuple[Block, ...]
    weights: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Linearised:
    """A (T, Z, Z), B (T, Z, G), c (T, Z), and C (K, Y, Z), d (K, Y) at the rows of the recording."""

    transition: Array
    gains: Array
    offset: Array
    observation: Array
    shift: Array
    blocks: tuple[Block, ...]


class Lineariser:
    """Linearises the model of a setup. Wherever `constants` are asked for, they are all known numbers by name."""

    def __init__(self, setup: ProcessSetup) -> None:
        self.setup = setup
        derivation = setup.derivation
        self._dynamics = NumericProgram(derivation.dynamics)
        self._observation = NumericProgram(derivation.observation)
        self._weights = [block for block in derivation.weights if block not in derivation.processes]
        self._points = [
            [p for p in derivation.dynamics.program.points if p.family is family] for family in setup.families
        ]
        #: the symbol of each value that a step takes, or None for an output that it does not use at this point
        self._values = [
            dict(point.values).get(output)
            for family, points in zip(setup.families, self._points, strict=True)
            for output in range(len(family.weights))
            for point in points
        ]

    @property
    def prior(self) -> MeanFunction:
        """The mean functions before anything is known."""
        n, never = len(self.setup.model.states), np.zeros(0, np.intp)
        blocks = [
            Block(f, np.zeros((0, q)), never, np.zeros((len(f.weights), 0), np.intp), np.zeros((0, q, n)))
            for f in self.setup.families
            for q in [len(f.arguments)]
        ]
        return MeanFunction(tuple(blocks), tuple(np.zeros(block.columns.shape) for block in blocks))

    def along(self, trajectory: Array, mean: MeanFunction, constants: dict[str, float]) -> Linearised:
        """The linearisation along z^ (T + 1, Z), given what is known of the processes so far."""
        rows = self.setup.times
        observation, shift = self.observed(trajectory[rows], rows, constants)
        every = np.arange(self.setup.steps)
        transition, gains, offset, blocks = self.steps(trajectory[:-1], every, mean, constants)
        return Linearised(transition, gains, offset, observation, shift, blocks)

    def observed(self, z: Array, times: Indices, constants: dict[str, float]) -> tuple[Array, Array]:
        """C (K, Y, Z) and d (K, Y) at z^ (K, Z)."""
        calculus = self.setup.derivation.observation
        values = self._observation.at(len(z), self._scalars(z, times, constants), self._arrays(z))
        observation = self._jacobian(calculus, values)
        shift = np.stack([values.scalar(e) for e in calculus.program.outputs], axis=1)
        shift = shift - np.einsum("kyz,kz->ky", observation, z)
        _require_finite(times, observation, shift)
        return observation, shift

    def steps(
        self, z: Array, times: Indices, mean: MeanFunction, constants: dict[str, float]
    ) -> tuple[Array, Array, Array, tuple[Block, ...]]:
        """A, B, c of the steps `times` from z^, and where they evaluate processes."""
        calculus, n = self.setup.derivation.dynamics, len(self.setup.model.states)
        scalars = self._scalars(z, times, constants)
        scalars |= {s: self.setup.inputs[times, i] for i, s in enumerate(self.setup.derivation.inputs)}
        values = self._dynamics.at(len(z), scalars, self._arrays(z) | self._process_arrays(mean, times))
        transition = np.zeros((*z.shape, z.shape[1]))
        transition[:, :n] = self._jacobian(calculus, values)
        transition[:, n:, n:] = np.diag(self.setup.persistence)
        gains = np.zeros((*z.shape, len(self._values)))
        offset = np.zeros_like(z)
        offset[:, :n] = np.stack([values.scalar(e) for e in calculus.program.outputs], axis=1)
        for g, symbol in enumerate(self._values):
            if symbol is not None:
                gains[:, :n, g] = np.stack([values.scalar(calculus.jacobian(i, symbol)) for i in range(n)], axis=1)
                offset -= gains[:, :, g] * values.scalar(symbol)[:, None]
        offset[:, :n] -= np.einsum("tij,tj->ti", transition, z)[:, :n]
        between = np.isin(times, list(self.setup.breaks))
        transition[between, :n], gains[between], offset[between, :n] = 0.0, 0.0, self.setup.start[:n]
        _require_finite(times, transition, gains, offset)
        return transition, gains, offset, self._blocks(values, times)

    def _jacobian(self, calculus: Calculus, values: ProgramValues) -> Array:
        """The derivatives of all outputs by z, (size, outputs, Z)."""
        rows = []
        for i in range(len(calculus.program.outputs)):
            core = [values.scalar(calculus.jacobian(i, v))[:, None] for v in self.setup.derivation.core]
            core += [values.vector(calculus.weight_jacobian(i, b.symbol), b.count) for b in self._weights]
            rows.append(np.concatenate(core, axis=1))
        return np.stack(rows, axis=1)

    def _blocks(self, values: ProgramValues, times: Indices) -> tuple[Block, ...]:
        states, tangent = self.setup.derivation.states, self.setup.derivation.dynamics.tangent
        blocks, first = [], 0
        for family, points in zip(self.setup.families, self._points, strict=True):
            outputs, count, width = len(family.weights), len(points), len(family.arguments)
            arguments = [argument for point in points for argument in point.arguments]
            places = np.stack([values.scalar(a) for a in arguments], axis=1)
            slopes = np.stack([values.scalar(tangent(a, x)) for a in arguments for x in states], axis=1)
            numbers = first + np.arange(outputs * count).reshape(outputs, 1, count)
            columns = len(self._values) * np.arange(len(times))[None, :, None] + numbers
            blocks.append(
                Block(
                    family,
                    places.reshape(-1, width),
                    np.repeat(times, count),
                    columns.reshape(outputs, -1),
                    slopes.reshape(-1, width, len(states)),
                )
            )
            first += outputs * count
        return tuple(blocks)

    def _scalars(self, z: Array, times: Indices, constants: dict[str, float]) -> dict[sp.Symbol, Any]:
        derivation = self.setup.derivation
        scalars: dict[sp.Symbol, Any] = {sp.Symbol(name, real=True): value for name, value in constants.items()}
        scalars |= {s: z[:, i] for i, s in enumerate(derivation.core)}
        if derivation.model.time is not None:
            scalars[sp.Symbol(derivation.model.time.name, real=True)] = self.setup.clock[times].astype(np.float64)
        for i, heard in enumerate(derivation.model.signals):
            scalars[sp.Symbol(heard.name, real=True)] = self.setup.signals[times, i]
        return scalars

    def _arrays(self, z: Array) -> dict[sp.Symbol, Array]:
        """Weights and data of families that are no processes."""
        arrays: dict[sp.Symbol, Array] = {}
        start = len(self.setup.derivation.core)
        for block in self._weights:
            arrays[block.symbol] = z[:, start : start + block.count]
            start += block.count
        for family in self.setup.model.families:
            if family.process is None:
                arrays |= {array.symbol: array.values for array in family.data}
        return arrays

    def _process_arrays(self, mean: MeanFunction, times: Indices) -> dict[sp.Symbol, Array]:
        """A process is the sum of features kappa(., s_n), whatever is known of it."""
        arrays: dict[sp.Symbol, Array] = {}
        for block, weights in zip(mean.blocks, mean.weights, strict=True):
            process = block.family.process
            assert process is not None
            arrays |= {place: block.points[:, q] for q, place in enumerate(process.places)}
            arrays[process.known] = np.ones(len(block.points))
            tau = self.setup.drifts[block.family.name].between(times, block.times)
            arrays |= {w.symbol: tau * weights[o] for o, w in enumerate(block.family.weights)}
        return arrays


def _require_finite(times: Indices, *arrays: Array) -> None:
    for array in arrays:
        bad = ~np.isfinite(array.reshape(len(times), -1)).all(axis=1)
        if bad.any():
            raise SymdualError(
                f"the model or a derivative of it is not finite at step {times[int(np.argmax(bad))]} of the recording"
            )
