"""The entries of generated packages: every function that is called from outside, with the types of its arguments.

They are declared here once, as protocols whose annotations also say shapes: the type checker knows a loaded package by
them, the emitter writes the shapes into docstrings, and backends translate functions from them on. `types` has the
words, `package` the modules of a package; SymPy and numba are not needed for any of it.
"""
