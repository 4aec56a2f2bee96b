"""A job again and again: in turns, by level, and what follows from it."""
