"""Hyperparameters of Gaussian processes and noise from recordings, by maximum marginal likelihood.

setup        a model, what is known of its start, and recordings of it
program      derived expressions as numbers, at many points at once
linearised   the model along a trajectory, linear in the state, the unknowns and the values of its processes
whitening    what the measurements say beside the noise: a Kalman filter in which the processes are known
score        derivatives by the noise, and what is known of the begins
evidence     log p(y | hyperparameters, noise) with its gradient
trajectory   the most probable trajectory, along which the model is linearised
search       trajectory and hyperparameters in turn, until neither moves
points       how well the points are known at which processes are evaluated
features     processes as families of features, to predict recordings that were not fitted
likelihood   all of it as a `Likelihood`
"""
