"""Partitions that some functions write and others read."""
