"""Command line: the only package that reads flags, prints, and chooses exit codes."""
