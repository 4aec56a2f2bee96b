"""Answers of series of runs: kept beside the runs, and shown again."""
