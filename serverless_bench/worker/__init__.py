"""Code that runs inside a function: an invocation, its operations and the record of the run.

This package imports nothing itself: a worker pays for each import in every cold start.
"""
