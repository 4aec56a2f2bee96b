"""Tests of the Python API of workloads."""
