"""Conditional writes on keys that all functions share."""
