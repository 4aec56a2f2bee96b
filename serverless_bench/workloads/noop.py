"""Nothing: what remains is what the fan-out itself costs."""

from serverless_bench.job.workload import Workload


class Noop(Workload):
    """An invocation without operations."""

    uses_store = False


WORKLOAD = Noop()
