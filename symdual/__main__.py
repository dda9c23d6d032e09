"""`python -m symdual` is the same as `symdual`."""

from symdual.commands import main

main(prog_name="symdual")
