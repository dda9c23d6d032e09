"""Symbolic code generation for dual control: controllers that learn while they steer."""

__version__ = "0.1.0"
