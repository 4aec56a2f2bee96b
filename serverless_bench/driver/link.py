"""Whether a link can carry the rate of a job, as far as that is known before."""

from collections.abc import Iterator, Sequence

from serverless_bench.job.keys import declared_size
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.planned_objects import mean_size
from serverless_bench.job.spec import JobSpec
from serverless_bench.units import format_rate, format_size

_WHOLE = frozenset({OperationKind.PUT, OperationKind.GET})


def beyond_the_link(job: JobSpec, keys: Sequence[str]) -> Iterator[str]:
    """Yield a note for a job whose rate is more than its link carries.

    Parameters
    ----------
    job
        With a rate and a link, or there is nothing to say.
    keys
        Of the objects that it reads.
    """
    rate, link = job.load.rate, job.link
    each = mean_bytes(job, keys)
    if rate is not None and link is not None and rate * each > link:
        yield (
            f"{rate:g} operations per second of {format_size(round(each))} are"
            f" {format_rate(rate * each)}, and the link carries {format_rate(link)}:"
            " some will be overdue"
        )


def mean_declared(keys: Sequence[str]) -> int | None:
    """Return the mean size of objects that say theirs; None if none does."""
    sizes = [size for key in keys if (size := declared_size(key)) is not None]
    return sum(sizes) // len(sizes) if sizes else None


def mean_bytes(job: JobSpec, keys: Sequence[str]) -> float:
    """Return what an operation moves on average, as far as it is known."""
    load = job.load
    if keys:
        sizes = [declared_size(key) or 0 for key in keys]
        return sum(sizes) / len(sizes) / (load.split or 1)
    size = float(mean_size(job) or 0)
    if not load.is_drawn:
        return size
    kinds = job.declared.kinds(load)
    whole = sum(weight for kind, weight in kinds.items() if kind in _WHOLE)
    ranges = kinds.get(OperationKind.GET_RANGE, 0.0)
    moved = whole * size + ranges * min(load.range_size, size)
    return moved / sum(kinds.values())
