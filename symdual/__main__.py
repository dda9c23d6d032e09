"""`python -m symdual` is the same as `symdual`."""

from symdual.cli import main

main(prog_name="symdual")
