"""A run that ends when its throughput is known precisely enough."""
