"""A run on disk: the record of each invocation, the directory that holds them, and its tables."""
