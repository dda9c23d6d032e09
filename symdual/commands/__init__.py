"""The command line, one module for each command.

group        `symdual` itself: finds commands, turns errors into sentences
faults       what becomes of errors that nobody expected
options      arguments and options that several commands share
terminal     what commands print with
json_file    results as JSON

Modules of commands import nothing heavy; that stands inside the commands, so that `symdual --help` answers at once.
"""

from symdual.commands.group import main

__all__ = ["main"]
