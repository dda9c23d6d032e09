"""Experiment 2 with the exact squared-exponential kernel instead of 30 Fourier features: one line is another.

The paper derives this form (section 5.2, Appendix A) and does not run it. 20 values are remembered, one for each step,
so nothing is approximated.
"""

from symdual import Model, Scenario, features
from symdual.paper.models.schedule import force, position, reference, schedule_plant, state_cost, velocity

slope = features.gaussian_process("g", position, lengthscale=7.0, memory=20)

model = Model(
    states=[position, velocity],
    inputs=[force],
    dynamics=[position + 0.4 * velocity, velocity + slope + force],
    process_noise=1e-2,
    measurement_noise=1e-2,
)

scenario = Scenario(
    model,
    horizon=20,
    state_cost=state_cost,
    input_cost=1e-3,
    reference=reference,
    start=reference(0),
    plant=schedule_plant,
    truth={"theta1": 0.8, "theta2": 0.4},
    bonus=10.0,
)
