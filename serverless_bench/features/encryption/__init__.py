"""Server-side encryption that requests for new objects ask for."""
