"""A room that is heated by a forecast of weather and prices, and must be warm when people are in it.

What the room loses, what the sun brings through its windows and how strong the heater is are known to 20 or 25 %.
Weather, prices and the least temperature are signals; at noon the weather turns out a degree colder than forecast,
and cloudy. The numbers of the house are those that Bacher and Madsen (Energy and Buildings 43, 2011) found for a
small test house. `examples/gallery/room.py` runs and draws it. Over 400 runs of a day, with the truth drawn from
the prior (seed 0):

             too cold, 7 to 22 h   mean distance   L (price of heat)
    ce       36.9 %                1.2 K           15.95 +- 0.30
    cautious 0.4 %                 3.8 K           20.80 +- 0.31
    dual     0.5 %                 3.6 K           20.15 +- 0.31
    oracle   22.7 %                1.5 K           16.08 +- 0.31

Run by run, `dual` pays 0.66 +- 0.06 less than `cautious` (3 %) for the same comfort: it counts on what it will have
learned by the morning and heats less at midnight. Both keep more distance than the 5 % that are allowed would need,
and pay for it. `ce` is the cheapest and too cold in every third hour; `oracle`, which knows the weather too, keeps
no distance either.
"""

import math

import sympy as sp

from symdual import Model, Scenario, signal, unknown

warmth, heat = sp.symbols("warmth heat")
outside, sun, price, least = (
    signal("outside", usual=2.0),
    signal("sun", usual=0.1),
    signal("price", usual=0.2),
    signal("least", usual=19.0),
)
capacity = 2.07
loss, window, strength = unknown("loss", 0.19, 0.0016), unknown("window", 7.9, 4.0), unknown("strength", 1.0, 0.04)

model = Model(
    states=[warmth],
    inputs=[heat],
    dynamics=[warmth + (loss * (outside - warmth) + window * sun + strength * heat) / capacity],
    process_noise=1e-2,
    measurement_noise=1e-2,
    bounds={heat: (0.0, 9.0)},
)


def day(k: int) -> float:
    """The height of the sun in an hour of the day."""
    return math.sin(math.pi * (k - 6) / 12) if 6 <= k % 24 <= 18 else 0.0


def forecast(k: int) -> float:
    """The temperature outside as it was forecast."""
    return 2.0 - 4.0 * math.cos(2 * math.pi * (k - 3) / 24)


scenario = Scenario(
    model,
    horizon=24,
    cost=price * heat + 0.002 * heat**2,
    start=18.0,
    start_covariance=0.04,
    constraints=[warmth >= least],
    probability=0.95,
    forecasts={outside: forecast, sun: lambda k: 0.3 * day(k)},
    signals={
        outside: lambda k: forecast(k) - (1.0 if k >= 12 else 0.0),  # a front comes in at noon, with clouds
        sun: lambda k: (0.2 if k >= 12 else 0.3) * day(k),
        price: lambda k: 0.4 if 17 <= k % 24 < 21 or 7 <= k % 24 < 9 else 0.2,
        least: lambda k: 20.0 if 7 <= k % 24 < 22 else 17.0,
    },
    truth={"loss": 0.23, "window": 6.0, "strength": 0.85},
)
