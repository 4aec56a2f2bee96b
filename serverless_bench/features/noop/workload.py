"""A workload without operations, to measure the cost of the fan-out itself."""

from serverless_bench.job.workload import Workload


class Noop(Workload):
    """An invocation without operations."""

    uses_store = False


WORKLOAD = Noop()
