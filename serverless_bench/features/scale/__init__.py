"""A job with more and more functions, and how its throughput scales."""
