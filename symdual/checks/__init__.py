"""Independent oracles: 50-digit evaluation, differences, dense numpy recursions."""
