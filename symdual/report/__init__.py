"""Figures and pages made from derivations and results."""
