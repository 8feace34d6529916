"""The syntax tree of a function: where it is found, and what its names are used for."""
