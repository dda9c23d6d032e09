"""numba, which packages bring along: what is compiled ahead of its use, in processes of their own."""
