"""Built-in commands, one module per command."""
