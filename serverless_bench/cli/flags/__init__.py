"""Flags: declaration, spelling, and sources of their values."""
