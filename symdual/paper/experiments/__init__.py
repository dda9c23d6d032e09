"""The paper's four experiments: what is run, the table beside the paper's, the figures, and one page with all of it."""
