"""What runs inside a function: an invocation, its operations, and the record of what happened.

This package imports nothing: a worker pays for every import in each cold start.
"""
