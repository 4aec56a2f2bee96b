"""Listings of a tree of keys that is known, from many functions."""
