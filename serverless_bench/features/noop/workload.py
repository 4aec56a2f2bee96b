"""A workload without operations, to measure the cost of the fan-out itself."""

from serverless_bench.job.workload import Trait, Workload


class Noop(Workload):
    """An invocation without operations."""

    traits = Trait.NO_REQUESTS


WORKLOAD = Noop()
