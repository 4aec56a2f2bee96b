"""Specification of a job, sizes and keys of its objects, and the assignment of reads."""
