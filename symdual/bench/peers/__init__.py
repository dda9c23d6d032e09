"""The participants: what one could take instead of a generated package, and the limit in C."""
