"""Models whose noise depends on where they are: every branch of the templates is seen in a package."""

import sympy as sp

from symdual import Model, Scenario, previous, signal, unknown

x, v, u = sp.symbols("x v u")
k = sp.symbols("k")
fog = signal("fog", usual=0.5)

# correlated noise of the steps, which grows with the input; a position that is seen worse far away, and a speed
lit = Model(
    states=[x, v],
    inputs=[u],
    dynamics=[x + 0.4 * v, v + unknown("b", 1.0, 0.5) * u - 0.1 * sp.sin(x)],
    process_noise=sp.Matrix([[0.01 + 0.02 * u**2, 0.01 * u], [0.01 * u, 0.02 + 0.01 * v**2]]),
    measurement_noise=[0.01 + 0.1 * (x - 2) ** 2, 0.05 + 0.02 * sp.exp(-v)],
)

# the square-root filter, a signal and the past of an input in the noise
lit_rooted = Model(
    states=[x],
    inputs=[u],
    dynamics=[x + unknown("b", 1.0, 0.5) * u],
    process_noise=[0.01 * (1 + fog) + 0.01 * previous(u) ** 2],
    measurement_noise=[0.02 + fog * x**2],
    square_root=True,
)
rooting = Scenario(lit_rooted, horizon=5, signals={fog: [0.1, 0.2, 0.5, 0.4, 0.3, 0.2]}, truth={"b": 0.7})

# the iterated filter, and time
lit_iterated = Model(
    states=[x, v],
    inputs=[u],
    dynamics=[x + 0.4 * v, v + u],
    observation=[sp.atan(x), x * v],
    process_noise=0.01,
    measurement_noise=sp.Matrix([[0.01 + 0.1 * x**2, 0.01 * x], [0.01 * x, 0.02 + 0.01 / (1 + k)]]),
    time=k,
    filter="iterated",
)

# constant noise in a world whose noise depends
dim = Model(
    states=[x, v],
    inputs=[u],
    dynamics=[x + 0.4 * v, v + unknown("b", 1.0, 0.5) * u],
    process_noise=0.02,
    measurement_noise=0.05,
)
dimming = Scenario(dim, horizon=5, plant=lit, truth={"b": 0.8})
