"""The user's own function as a workload."""
