"""Figures, tables and pages made from derivations and results."""
