"""Stores for benchmarks that run on this machine."""
