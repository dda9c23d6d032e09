"""A model as it is written, and any expression, evaluated with 50 digits and more: for checks and identification.

arithmetic   expressions at many points, and the error that double precision may make in them
model        dynamics and observation of a model, and their differences
"""
