"""Commands for studies."""
