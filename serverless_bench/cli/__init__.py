"""Command line: the only package that parses flags, prints, and chooses exit codes."""
