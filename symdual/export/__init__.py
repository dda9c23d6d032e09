"""A controller in C for the user's own program: `symdual export --c`.

The recursions are those of `symdual.backends.c`; `controller` adds the struct and the functions that a person calls.
"""
