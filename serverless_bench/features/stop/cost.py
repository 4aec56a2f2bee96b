"""The cost of functions that a driver leaves behind."""

from serverless_bench.executors import info_of
from serverless_bench.features.aws.options import FunctionOptions
from serverless_bench.features.cost.forecast import VCPU_MIB, CostConditions, functions_usage
from serverless_bench.features.cost.prices import price, prices_for
from serverless_bench.features.remote.options import look_s
from serverless_bench.job.spec import JobSpec


def cost_left(job: JobSpec, count: int) -> str:
    """Return the most that functions can cost until the deadline, for a sentence.

    It is empty for functions that nobody bills, and without prices. The requests of the operations
    are not included.

    Parameters
    ----------
    job, count
        The job, and the number of functions that may still run.
    """
    prices = prices_for(job) if info_of(job.executor).billed else None
    if prices is None:
        return ""
    options = FunctionOptions.from_work(job)
    memory, architecture = options.memory or VCPU_MIB, options.arch or "x86_64"
    setting = CostConditions(memory_mib=memory, architecture=architecture)
    usage = functions_usage(setting, count, job.deadline, look_s=look_s(job.max_concurrency))
    return f", and cost up to {prices.money(price(usage, prices).total)} with {memory} MB each"
