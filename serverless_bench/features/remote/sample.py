"""Progress objects: a sample of remote functions shows the driver what it has done so far.

``claims/progress/INDEX/LAUNCH`` below the run's prefix is written again every few seconds.
"""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from typing import Annotated, Final

import msgspec

from serverless_bench.base.clock import monotonic_ns, repeated
from serverless_bench.base.errors import OperationError
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.live.layout import SLOT_WORDS
from serverless_bench.features.live.sampled import SampledBoard
from serverless_bench.features.remote.claims import for_run
from serverless_bench.features.remote.looks import progress_name
from serverless_bench.features.remote.options import (
    RemoteOptions,
    progress_age_s,
    progress_s,
    sample_size,
)
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.worker.in_memory import TooLong
from serverless_bench.worker.object_io import ObjectIO

_MOST_BYTES: Final = 64 * 1024
_GET_S: Final = 5.0
_THREADS: Final = 16


class _Counted(msgspec.Struct):
    """The content of an object: the counters of a function that are not zero, by their place."""

    counters: dict[
        Annotated[int, msgspec.Meta(ge=0, lt=SLOT_WORDS)],
        Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)],
    ]
    begin_ns: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    at_ns: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
    """When the function began, and when it read the counters, by its own wall clock."""
    ended: bool


class ProgressSample:
    """The functions of a run that write progress objects, and what these contain.

    Parameters
    ----------
    job, control, run_id
        The run, and the location of its claims.
    launch
        Launch of the functions.
    """

    def __init__(self, job: JobSpec, control: Target, run_id: str, launch: int) -> None:
        wanted = sample_size(job.number) if RemoteOptions.from_work(job).progress_objects else 0
        self.indexes = frozenset(random.Random(job.seed).sample(range(job.number), wanted))
        self.every_s = progress_s(wanted)
        self.board = SampledBoard(job.number, sorted(self.indexes), progress_age_s(job.number))
        self._io = ObjectIO(for_run(control, run_id))
        self._launch = launch
        self._ended: set[int] = set()
        self._leads: dict[int, int] = {}
        """Lead of the driver's monotonic clock over a function's, plus the delay of its first
        object: a constant, since a drift would change the rate."""

    @contextmanager
    def watched(self, progress: RunProgress) -> Iterator[None]:
        """Read the objects while the block runs."""
        progress.begin(self.board)
        threads = ThreadPoolExecutor(_THREADS)
        turns = count()

        def read() -> None:
            # The first objects are written after an interval.
            if progress.started and next(turns):
                list(threads.map(self._read, self.indexes - self._ended))

        try:
            with repeated(read, self.every_s, name="progress objects"):
                yield
        finally:
            threads.shutdown(cancel_futures=True)
            self._io.close()
            progress.requests.update(self._io.requests)

    def _read(self, index: int) -> None:
        # An object that is missing may appear later; one that is none of ours is left out.
        with suppress(OperationError, RecursionError, TooLong, msgspec.DecodeError):
            name = progress_name(index, self._launch)
            progress = msgspec.json.decode(
                self._io.get(name, most=_MOST_BYTES, timeout_s=_GET_S), type=_Counted
            )
            words = [progress.counters.get(place, 0) for place in range(SLOT_WORDS)]
            lead_ns = self._leads.setdefault(index, monotonic_ns() - progress.at_ns)
            self.board.add(index, progress.at_ns + lead_ns, words, progress.begin_ns + lead_ns)
            if progress.ended:
                self._ended.add(index)
