"""Runs with a known bottleneck, and the verdicts of reports on them."""
