"""Functions through Lithops, on any backend."""
