"""A job with each combination of some settings, such as object size and operations in flight."""
