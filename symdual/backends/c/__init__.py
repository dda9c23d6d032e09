"""From a generated package to C99: its syntax tree is translated, so that no recursion is written a second time.

    package -> program -> units -> source -> library
               (run      (typed    (text)    (compiler,
               without    C)                  ctypes)
               numba)

`program` runs the modules of a package with a stand-in for numba and holds their functions as syntax trees; `declared`
gives the types of the arguments of entries; `unit` and its helpers turn one function into C, for the types of its
arguments; `translator` follows the calls from the entries on; `library` calls through ctypes, `backend` makes modules.
"""
