"""Repeated runs of a job: in turns, at different levels, and the results derived from them.

``runs`` is the engine: each run has its own directory, all runs share a cost limit, and their
objects are deleted. ``turns`` alternates between sides, ``scale`` increases concurrency, ``limit``
searches. Commands and Python users call the same functions.
"""
