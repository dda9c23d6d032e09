"""Parameters, noise and starts from recordings, and what can be learned at all.

series        recordings as arrays, one row for each step of the model; what is odd about them
surroundings  signals without a column and inputs before the first row
quantities    what is fitted, and in which coordinates
likelihood    log p(y | quantities) over all recordings with its exact gradient
search        the maximum, from several starts
certainty     standard errors, correlations, and what the data say nothing about
result        what is printed and stored
fit           from files to a result
validation    how well a fitted model predicts recordings that it has not seen
structural    combinations of unknowns that no experiment can tell apart
experiment    the inputs within bounds that tell most
identify      which unknowns an experiment can tell, before it is made
"""
