"""The edge: the only package that reads flags, prints, and chooses exit codes."""
