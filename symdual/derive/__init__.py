"""Pure SymPy: from a `Specification` to its derivatives on the augmented state, as structured blocks."""
