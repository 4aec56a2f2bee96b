"""Arrays: written, appended to and read with an array library."""
