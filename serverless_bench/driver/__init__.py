"""A run from the user's side: plan it, launch it, wait for it, and clean up after it."""
