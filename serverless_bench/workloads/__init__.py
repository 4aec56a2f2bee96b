"""Workloads, each in a file or folder; the table of them is in ``job.workload``."""
