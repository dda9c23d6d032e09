"""Several feature families in one model: a greenhouse whose losses, plants and heater are all partly unknown.

- the heat loss is a polynomial of the temperature;
- the plants give off moisture: radial basis functions of temperature and humidity;
- the heater's effect is a Fourier series of its own input, a feature of u;
- the vent works on the product of a scalar unknown and the loss: families and unknowns mixed.
"""

import numpy as np
import sympy as sp

from symdual import Model, Scenario, features, unknown

temperature, humidity = sp.symbols("temperature humidity")
heat, vent = sp.symbols("heat vent")
draught = unknown("draught", mean=0.1, variance=0.01)

loss = features.polynomial("loss", temperature, degree=3, mean=[0.0, -0.1, 0.0, 0.0], variance=[1e-2, 1e-2, 1e-3, 1e-3])
grid = np.array([[t, w] for t in (-1.0, 0.0, 1.0) for w in (-1.0, 0.0, 1.0)])
plants = features.rbf("plants", [temperature, humidity], centres=grid, lengthscale=[1.0, 0.8], variance=1e-2)
burner, drying = features.fourier("burner", heat, count=8, lengthscale=2.0, variance=0.05, outputs=2)

model = Model(
    states=[temperature, humidity],
    inputs=[heat, vent],
    dynamics=[
        temperature + loss * (1 + draught * vent) + 0.5 * heat + burner,
        0.9 * humidity + plants - 0.3 * vent * sp.tanh(humidity) - 0.1 * drying,
    ],
    process_noise=1e-4,
    measurement_noise=1e-3,
    transition=0.999,
    drift=1e-6,
    bounds={heat: (-2.0, 2.0), vent: (0.0, 1.0)},
)

scenario = Scenario(
    model,
    horizon=12,
    state_cost=[1.0, 1.0],
    input_cost=1e-2,
    reference=lambda k: [0.8 if k >= 4 else 0.0, 0.2],
)
