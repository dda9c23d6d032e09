"""From recordings to numbers, and what can be learned at all.

fit              from a model and recordings to a result
fitted           from a likelihood to a result
validate         how well a fitted model predicts recordings that it has not seen
identify         which unknowns an experiment can tell, before it is made

likelihood       what fits have in common: a function of coordinates that is maximised
parameters       one with unknowns, first states and noise as coordinates
processes        one with hyperparameters of Gaussian processes and noise as coordinates

chosen_model     which model of a file is meant
choice           which numbers are fitted
noise            noise among them, and its coordinates
recordings       tables with a row for each step of the model; what is odd about them
surroundings     signals without a column and inputs before the first row
standard_errors  how well the recordings determine each coordinate
result           what is printed and stored
held_out         how wide bands must be, from parts that are held out
autocorrelation  how many independent numbers a series of errors is worth
structural       combinations of unknowns that no experiment can tell apart
experiment       the inputs within bounds that tell most
"""
