"""Text for people: help, tables, pages and lines on a terminal."""
