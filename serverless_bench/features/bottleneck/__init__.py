"""Bottlenecks of a run: its functions, their rates, its slots."""
