"""Unknowns, first states and noise from recordings, by the likelihood of the emitted filter.

prior_model   a model with what is known before a recording
quantities    what is fitted, and in which coordinates
filtering     the emitted filter over a recording
evidence      log p(y | quantities) over all recordings with its exact gradient
objective     the same with a prior, and without the bias of noise
search        the maximum, from several starts
likelihood    all of it as a `Likelihood`
"""
