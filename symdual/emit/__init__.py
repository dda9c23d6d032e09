"""From a derivation to the text of a generated package, and onto the disk."""
