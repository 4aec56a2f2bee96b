"""Samples to intervals and verdicts; pure."""
