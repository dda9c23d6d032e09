"""A vehicle that sees where it is only near a light: noise of the measurement that depends on the state.

Nothing about the model is unknown, only the position is. The vehicle is to stop at 0 after twelve steps; its start
is known to 0.7, and the only light stands at 4, in the other direction. The variance of a measurement grows with the
square of the distance to the light, so that what a plan learns depends on where it goes. `ce` does not count what it
does not know, and goes straight to where it believes 0 to be. `dual` sees that a detour through the light makes the
end certain; it chooses one input after the other, and `planned`, which moves all of them together, makes a shorter one.

Over 400 runs with the start drawn from the prior (seed 0):

             nearest to the light, mean   deviation known at the end   L
    ce       3.00                         0.296                        1.756 +- 0.129
    dual     0.14                         0.101                        0.996 +- 0.018
    planned  0.31                         0.115                        0.703 +- 0.025

`cautious` is `dual` here: what it leaves out is learning about parameters, and there are none.
"""

import sympy as sp

from symdual import Model, Scenario, constant

position, step = sp.symbols("position step")
light, dark = constant("light", 4.0), constant("dark", 0.1)

model = Model(
    states=[position],
    inputs=[step],
    dynamics=[position + step],
    process_noise=1e-4,
    measurement_noise=0.05 + dark * (position - light) ** 2,
)

scenario = Scenario(
    model,
    horizon=12,
    start=1.0,
    start_covariance=0.5,
    state_cost=lambda k: 20.0 if k == 12 else 0.0,
    input_cost=0.1,
)
