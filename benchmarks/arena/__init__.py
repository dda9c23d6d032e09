"""The arena: controllers against each other on the same systems, with exact answers where there are any."""
