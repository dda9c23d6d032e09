"""Models from sympy.physics.mechanics: the same motion as with numbers in a matrix, and exact derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from sympy.physics.mechanics import KanesMethod, LagrangesMethod, Particle, Point, ReferenceFrame, dynamicsymbols

from symdual import Model, unknown
from symdual.common.arrays import Array
from symdual.common.errors import ModelError
from symdual.runtime import evaluate
from symdual.spec.mechanics import solved

g = 9.81


def arm(links: int) -> tuple[LagrangesMethod, list[sp.Expr]]:
    """Rods without mass and of length 1, with a mass at each end; a torque on each; the last mass is unknown."""
    N, q, torques = ReferenceFrame("N"), dynamicsymbols(f"q1:{links + 1}"), dynamicsymbols(f"t1:{links + 1}")
    origin = point = Point("O")
    origin.set_vel(N, 0)
    potential, bodies, forces = sp.S.Zero, [], []
    frames = [N.orientnew(f"A{i}", "Axis", [angle, N.z]) for i, angle in enumerate(q)]
    for i, frame in enumerate(frames):
        tip = point.locatenew(f"P{i}", frame.x)
        tip.v2pt_theory(point, N, frame)
        mass = unknown("payload", 1.0, 0.25) if i == links - 1 else sp.Symbol("m")
        bodies.append(Particle(f"B{i}", tip, mass))
        potential += mass * g * tip.pos_from(origin).dot(N.y)
        forces.append((frame, torques[i] * N.z))
        point = tip
    kinetic = sum(body.kinetic_energy(N) for body in bodies)
    method = LagrangesMethod(kinetic - potential, q, forcelist=forces, frame=N)
    method.form_lagranges_equations()
    return method, torques


def numbers(method: Any, torques: list[sp.Expr], at: Array) -> tuple[Array, Array]:
    """M and F at (q, rates, torques, payload)."""
    q = list(method.q)
    rates = [e.diff(dynamicsymbols._t) for e in q]
    payload = next(s for s in method.mass_matrix.free_symbols if s.name == "payload")
    place = dict(zip([*q, *rates, *torques, payload], at, strict=True)) | {sp.Symbol("m"): 2.0}

    def value(matrix: sp.Matrix) -> Array:
        return np.array(matrix.subs({r: place[r] for r in rates}).subs(place).tolist(), dtype=float)

    return value(method.mass_matrix), value(method.forcing)[:, 0]


@pytest.mark.parametrize("links", [1, 2, 3])
def test_accelerations_are_those_of_the_matrix(links: int, interpreted: Callable[[Model], Any]) -> None:
    method, torques = arm(links)
    model = Model.from_mechanics(
        method, torques, values={sp.Symbol("m"): 2.0}, step=1e-6, method="euler", observation=list(method.q), name="arm"
    )
    assert [s.name for s in model.states] == [f"q{i + 1}{end}" for end in ("", "_rate") for i in range(links)]
    package, random, h = interpreted(model), np.random.default_rng(2), 1e-6
    state, action, theta = random.normal(size=2 * links), random.normal(size=links), np.array([1.3])
    M, F = numbers(method, torques, np.concatenate([state, action, theta]))
    found = (evaluate.dynamics(package, state, action, theta) - state) / h
    np.testing.assert_allclose(found[:links], state[links:], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found[links:], np.linalg.solve(M, F), rtol=1e-7, atol=1e-7)

    # M a = F differentiated: M a_w = F_w - M_w a, by differences of M and F alone
    acceleration, step = np.linalg.solve(M, F), 1e-6
    first = evaluate.jacobian(package, state, action, theta)
    slopes = np.hstack([first.f_x, first.f_u, first.f_theta])[links:]
    at = np.concatenate([state, action, theta])
    for j, direction in enumerate(np.eye(len(at))):
        ahead, behind = (numbers(method, torques, at + s * step * direction) for s in (1, -1))
        change = ((ahead[1] - behind[1]) - (ahead[0] - behind[0]) @ acceleration) / (2 * step)
        own = h * np.linalg.solve(M, change) + (direction[links : 2 * links] if j < 2 * links else 0.0)
        np.testing.assert_allclose(slopes[:, j], own, rtol=1e-6, atol=1e-12)


def test_kane_and_lagrange_agree(interpreted: Callable[[Model], Any]) -> None:
    """A mass on a rod, with the speed of its tip as generalised speed."""
    q, v, torque = dynamicsymbols("q v torque")
    N, O = ReferenceFrame("N"), Point("O")  # noqa: E741
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, v / 2 * N.z)
    P, m = O.locatenew("P", 2 * A.x), unknown("m", 1.0, 0.1)
    P.v2pt_theory(O, N, A)
    kane = KanesMethod(N, q_ind=[q], u_ind=[v], kd_eqs=[q.diff() - v / 2])
    kane.kanes_equations([Particle("B", P, m)], [(P, -m * g * N.y), (A, torque * N.z)])
    model = Model.from_mechanics(kane, [torque], step=0.01, bounds={torque: (-5, 5)}, observation=[q], name="rod")
    assert [s.name for s in model.states] == ["q", "v"] and model.lower.tolist() == [-5.0]
    x, w, u = sp.symbols("x w u")
    plain = Model(
        [x, w], [u], derivatives=[w / 2, u / (2 * unknown("m", 1.0, 0.1)) - g * sp.cos(x)], step=0.01, method="rk4"
    )
    at = [0.3, -1.2], [0.7], [1.4]
    one, other = (evaluate.jacobian(interpreted(each.named("rod")), *at) for each in (model, plain))
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_systems_are_solved() -> None:
    random = np.random.default_rng(1).normal(size=(4, 4))
    matrix, right = sp.Matrix(random @ random.T), [1.0, -2.0, 0.5, 3.0]
    found = solved([list(matrix.row(i)) for i in range(4)], list(map(sp.Float, right)))
    np.testing.assert_allclose(np.array(found, dtype=float), np.linalg.solve(random @ random.T, right), rtol=1e-8)


def test_what_cannot_be_a_model_is_told() -> None:
    method, torques = arm(1)
    with pytest.raises(ModelError, match="takes a KanesMethod or a LagrangesMethod, not int"):
        Model.from_mechanics(3, torques, step=0.1)
    with pytest.raises(ModelError, match=r'"t1\(t\)" is a function of time that is no coordinate, speed or input'):
        Model.from_mechanics(method, [sp.Symbol("u")], step=0.1)
    q = dynamicsymbols("q")
    with pytest.raises(ModelError, match="form the equations of motion first"):
        Model.from_mechanics(LagrangesMethod(q.diff() ** 2, [q]), [sp.Symbol("u")], step=0.1)
