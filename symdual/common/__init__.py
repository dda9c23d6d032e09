"""For all rooms: what went wrong, arrays and numbers, files in one go, how values show themselves."""
