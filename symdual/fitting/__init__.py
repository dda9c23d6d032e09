"""Hyperparameters of Gaussian processes from recorded data, by maximum marginal likelihood.

task         a model, what is known of its start, and a recording of it
program      derived expressions as numbers, at many points at once
linearised   the model along a trajectory, linear in the state, the unknowns and the values of its processes
whitening    what the measurements say beside the noise: a Kalman filter in which the processes are known
evidence     log p(y | hyperparameters) with its gradient
trajectory   the most probable trajectory, along which the model is linearised
optimum      trajectory and hyperparameters in turn, until neither moves
certainty    how well the data determine each hyperparameter
result       what is printed and stored
joint        the same in the form of all other fits
features     processes as families of features, to predict recordings that were not fitted
"""
