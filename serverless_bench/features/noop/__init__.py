"""Functions without an operation: what the executor alone takes."""
