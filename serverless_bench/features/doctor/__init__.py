"""Checks of a machine, an account and a stack before a run."""
