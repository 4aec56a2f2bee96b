"""Functions on machines that poll for them."""
