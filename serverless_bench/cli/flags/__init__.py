"""Flags: how they are declared and spelled, and where their values come from."""
