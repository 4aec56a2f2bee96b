"""A run while it is under way: on a terminal, in a notebook, in a log."""
