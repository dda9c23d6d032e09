"""The paper's figures, drawn again from our own runs; the same numbers give the same bytes."""
