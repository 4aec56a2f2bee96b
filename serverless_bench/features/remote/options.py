"""Settings of jobs whose functions leave their records in a store."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from serverless_bench.base.units import parse_duration
from serverless_bench.job.defaults import CONTROL_PREFIX, REMOTE
from serverless_bench.job.meaning import Meaning, Options, always
from serverless_bench.job.types import Limits

if TYPE_CHECKING:
    from serverless_bench.job.spec import JobSpec

_LOOKS_PER_S: Final = 200
"""Most looks for the stop object per second, by all functions together: each is a GET."""
_LEAST_LOOK_S: Final = 2.0
_SAMPLE: Final = 100
_PROGRESS_PER_S: Final = 20
"""Most progress objects per second, of all functions together: each is a PUT and a GET."""
_LEAST_PROGRESS_S: Final = 2.0


def look_s(at_once: int) -> float:
    """Return the interval at which each of so many functions looks for the stop object."""
    return max(_LEAST_LOOK_S, at_once / _LOOKS_PER_S)


def sample_size(functions: int) -> int:
    """Return how many of so many functions write progress objects."""
    return min(_SAMPLE, functions)


def progress_s(sampled: int) -> float:
    """Return the interval at which each of so many functions writes its progress object."""
    return max(_LEAST_PROGRESS_S, sampled / _PROGRESS_PER_S)


def progress_age_s(functions: int) -> float:
    """Return the greatest age of the driver's knowledge of functions that write these objects."""
    # An object is read up to an interval after it was written.
    return 2 * progress_s(sample_size(functions)) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOptions(Options):
    """The records of remote functions, and their start.

    Parameters
    ----------
    control_prefix
        Location of the records.
    start_timeout
        Time after which a function that has not started is launched again, and can no longer
        start; only with ``control``.
    progress_objects
        Whether a sample of the functions shows its progress in objects below the control prefix.
    """

    control_prefix: Annotated[
        str | None,
        Meaning(
            "Location of the functions' records: PREFIX, or s3://BUCKET/PREFIX, az:// or gs://.",
            section=REMOTE,
            otherwise=always(CONTROL_PREFIX),
            by_executor=True,
        ),
    ] = None
    start_timeout: Annotated[
        float,
        Limits(positive=True),
        Meaning(
            "Time after which a function that has not started is launched again.",
            parse=parse_duration,
            section=REMOTE,
        ),
    ] = 60.0
    progress_objects: Annotated[
        bool,
        Meaning(
            "Let a sample of remote functions show its progress: 20 small objects a second.",
            section=REMOTE,
            by_executor=True,
        ),
    ] = True


def progress_objects(job: "JobSpec", function_s: float) -> int:
    """Return how many progress objects functions of that length write; the driver gets each."""
    sampled = sample_size(job.number)
    times = function_s // progress_s(sampled)
    is_off = job.control is None or not RemoteOptions.from_work(job).progress_objects
    # A function that wrote one writes another at the end.
    return 0 if is_off or not times else round(sampled * (times + 1))
