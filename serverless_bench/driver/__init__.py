"""One run from the user's side: plan it, launch it, wait for it, clean up after it."""
