"""What the documentation site needs besides Sphinx: code that is run, docstrings, formulas, pages, links."""
