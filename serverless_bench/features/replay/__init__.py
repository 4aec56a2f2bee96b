"""Replay of a log of requests: reading it, the schedule, and the workload."""
