"""`derive`: everything that is known about a model before a line of code is written."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from symdual.derive.calculus import Calculus, Hessian, Vector, differentiate
from symdual.derive.program import (
    dynamics_program,
    observation_program,
    scalar_symbol,
    slope_program,
    terms_program,
)
from symdual.integrators import INTEGRATORS, Implicit, Integrator
from symdual.spec.noise import lower
from symdual.spec.specification import Specification, specified
from symdual.spec.system import System

LONG = 600  # parts of the derivatives of a step beyond which it is taken apart: about as many statements


@dataclass(frozen=True)
class WeightBlock:
    """Where the weights of one array stand in theta."""

    symbol: sp.Symbol
    family: str
    start: int
    count: int


@dataclass(frozen=True, eq=False)
class DerivedObjective:
    """The terms of a cost with their derivatives by states and inputs, those of the end by states, and constraints."""

    stage: Calculus
    final: Calculus
    constraints: Calculus


@dataclass(frozen=True, eq=False)
class DerivedNoise:
    """The entries on and below the diagonals of Q(x, u) and R(x), with their derivatives."""

    process: Calculus
    measurement: Calculus


@dataclass(frozen=True, eq=False)
class Loops:
    """How the derivatives of a step are composed in loops of those of a map that is written once.

    A step has so many substeps. The map is the right-hand side where these go by the stages of a method, and a substep
    itself where there is none.
    """

    link: Calculus
    method: Integrator | None
    substeps: int

    @property
    def stages(self) -> int:
        """How often a substep evaluates the map; of an implicit method, each of its parts."""
        return 1 if self.method is None else self.method.stages

    @property
    def links(self) -> int:
        """How often a step evaluates the map, at least."""
        return self.stages * self.substeps

    @property
    def implicit(self) -> bool:
        """Whether stages are found together."""
        return isinstance(self.method, Implicit)


@dataclass(frozen=True, eq=False)
class Derivation:
    """A specification with its derivatives on the augmented state z = (x, theta).

    theta is ordered: scalar unknowns first (those with bounds by their logarithms or logits), then the weight arrays of
    the families one after another. `dynamics` is a whole step, or the first of its substeps, or of an implicit step the
    right-hand side. `loops` is there for steps that are not written out.
    """

    model: Specification
    states: tuple[sp.Symbol, ...]
    inputs: tuple[sp.Symbol, ...]
    scalars: tuple[sp.Symbol, ...]
    weights: tuple[WeightBlock, ...]
    dynamics: Calculus
    observation: Calculus
    loops: Loops | None = None
    objective: DerivedObjective | None = None
    noise: DerivedNoise | None = None

    @property
    def theta_size(self) -> int:
        """The number of unknowns, p."""
        return len(self.scalars) + sum(block.count for block in self.weights)

    @property
    def core(self) -> tuple[sp.Symbol, ...]:
        """The rows of z that are not weights of a family: states and scalar unknowns."""
        return self.states + self.scalars

    @property
    def processes(self) -> tuple[WeightBlock, ...]:
        """The weight arrays that belong to Gaussian processes."""
        names = {family.name for family in self.model.families if family.process is not None}
        return tuple(block for block in self.weights if block.family in names)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a user should know about the derivatives, a sentence each."""
        programs = [self.dynamics.program, self.observation.program]
        if self.objective is not None:
            programs += [c.program for c in (self.objective.stage, self.objective.final, self.objective.constraints)]
        if self.noise is not None:
            programs += [self.noise.process.program, self.noise.measurement.program]
        return tuple(dict.fromkeys(remark for program in programs for remark in program.remarks))

    @property
    def dynamics_hessian(self) -> Hessian:
        """sum_i lam_i f^i_(zz, zu, uu)."""
        return self.dynamics.hessian

    @property
    def observation_hessian(self) -> Hessian:
        """sum_i lam_i h^i_zz."""
        return self.observation.hessian


def derive(system: System) -> Derivation:
    """Derive the augmented system of a specification, or of a model of which no scenario asks anything.

    Output: its dynamics, its observation, and what scenarios ask of the code, as differentiated programs.
    """
    model = system if isinstance(system, Specification) else specified(system)
    states, inputs = (tuple(sp.Symbol(s.name, real=True) for s in part) for part in (model.states, model.inputs))
    scalars = tuple(map(scalar_symbol, model.unknowns))
    blocks: list[WeightBlock] = []
    start = len(scalars)
    for family in model.families:
        for weight in family.weights:
            blocks.append(WeightBlock(weight.symbol, family.name, start, family.count))
            start += family.count
    variables = states + scalars + inputs
    program = slope_program(model) if model.is_implicit else dynamics_program(model)
    dynamics = differentiate(program, variables)
    return Derivation(
        model=model,
        states=states,
        inputs=inputs,
        scalars=scalars,
        weights=tuple(blocks),
        dynamics=dynamics,
        observation=differentiate(observation_program(model), states + scalars),
        loops=_loops(model, dynamics),
        objective=_objective(model, states, scalars, inputs),
        noise=_noise(model, states, inputs),
    )


def _noise(model: System, states: tuple[sp.Symbol, ...], inputs: tuple[sp.Symbol, ...]) -> DerivedNoise | None:
    if model.noise is None:
        return None
    return DerivedNoise(
        differentiate(terms_program(model, lower(model.noise.process)), states + inputs),
        differentiate(terms_program(model, lower(model.noise.measurement)), states),
    )


def _objective(
    model: Specification, states: tuple[sp.Symbol, ...], scalars: tuple[sp.Symbol, ...], inputs: tuple[sp.Symbol, ...]
) -> DerivedObjective | None:
    if model.objective is None:
        return None
    return DerivedObjective(
        differentiate(terms_program(model, model.objective.stage.expressions), states + inputs),
        differentiate(terms_program(model, model.objective.final.expressions), states),
        differentiate(terms_program(model, model.objective.constraints), states + scalars + inputs),
    )


def _loops(model: System, dynamics: Calculus) -> Loops | None:
    """Which loops make a step: none where it is short and has no substeps."""
    method = INTEGRATORS[model.method]
    if model.is_implicit:
        return Loops(dynamics, method, model.substeps)
    if method.stages > 1 and model.step is not None and _is_long(model, dynamics):
        return Loops(differentiate(slope_program(model), dynamics.variables), method, model.substeps)
    return Loops(dynamics, None, model.substeps) if model.substeps > 1 else None


def _is_long(model: System, dynamics: Calculus) -> bool:
    """Whether the derivatives of a step have so many parts that its stages are better not written out one by one.

    Gaussian processes need the derivatives by each of their values in a step, which only the whole step has. And only
    a whole step stops at bounds of states.
    """
    if model.state_bounds or any(family.process is not None for family in model.families):
        return False
    hessian = dynamics.hessian
    vectors = sum(len(vector) for vector in hessian.mixed_vectors.values())
    return len(dynamics.definitions) + len(hessian.core) + 2 * vectors > LONG


def theta_row(derivation: Derivation, calculus: Calculus, row: int) -> tuple[dict[int, sp.Expr], dict[int, Vector]]:
    """Row `row` of f_theta (or h_theta): entries of scalar unknowns, and vectors by the start of their weight array."""
    scalars = {i: calculus.jacobian(row, s) for i, s in enumerate(derivation.scalars)}
    vectors = {block.start: calculus.weight_jacobian(row, block.symbol) for block in derivation.weights}
    return {i: e for i, e in scalars.items() if e != 0}, {start: v for start, v in vectors.items() if v}
