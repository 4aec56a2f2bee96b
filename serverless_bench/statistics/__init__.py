"""Statistics: from samples to intervals and verdicts; pure functions."""
