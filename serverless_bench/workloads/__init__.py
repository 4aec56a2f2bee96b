"""Every workload a file, or a folder; the table of them is in ``job.workload``."""
