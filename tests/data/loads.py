"""Loads of workloads whose folder a test does not import, because it may have been removed."""

from typing import Any

from serverless_bench.job.workload import Load, workload_of


def load_of(workload: str, **values: Any) -> Load:
    """Return a load of a workload; one without values if the workload was removed."""
    kind = workload_of(workload).load_type
    return Load() if kind is Load else kind(**values)


def array_load(**values: Any) -> Load:
    """Return the load of an array with these fields, likewise."""
    if workload_of("array").load_type is Load:
        return Load()
    from serverless_bench.features.array.load import ArraySpec

    return load_of("array", array=ArraySpec(**values))


def array_in(load: Load) -> Any:
    """Return the array of a load; None if it has none."""
    return getattr(load, "array", None)
