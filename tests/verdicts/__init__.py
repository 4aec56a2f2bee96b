"""Runs whose bottleneck is known beforehand, and the verdicts that reports give of them."""
