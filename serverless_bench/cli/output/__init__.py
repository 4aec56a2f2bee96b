"""Output for users: help, tables, pages and lines on a terminal."""
