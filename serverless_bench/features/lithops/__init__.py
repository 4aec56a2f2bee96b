"""Functions through Lithops, on its backends."""
