"""What compiles a generated package: numba, which packages bring along, and C, which is translated from them.

`loading` chooses between them. README.md says how to add another.
"""
