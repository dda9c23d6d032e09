"""Pure SymPy: from a `Model` to its derivatives on the augmented state, as structured blocks."""
