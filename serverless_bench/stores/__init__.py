"""Stores to run against that start on this machine."""
