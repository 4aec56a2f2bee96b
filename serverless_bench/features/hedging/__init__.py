"""A second request where the first is slow."""
