"""The driver's side of the stop object: it ends functions that share no memory with the driver."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from operator import sub
from typing import Any, Final

from serverless_bench.base.clock import monotonic_ns, repeated, wall_ns
from serverless_bench.base.errors import NotFound, OperationError
from serverless_bench.base.units import NS_PER_S, format_seconds
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.remote.claims import for_run
from serverless_bench.features.remote.delivery import RECORD_S
from serverless_bench.features.remote.looks import LOOK, PROGRESS, STOP, read_stop
from serverless_bench.features.remote.options import look_s
from serverless_bench.features.remote.sample import ProgressSample
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.rundir.rows import column
from serverless_bench.rundir.schema import Stopped
from serverless_bench.worker.board import ABORT, ABORT_S, RUN_OVER, Board
from serverless_bench.worker.object_io import ObjectIO

NO_LAUNCH: Final = -1
"""``launch`` of the object while no launch has to stop."""
BY_COMMAND: Final = "sbench stop"
_TICK_S: Final = 0.1
_WRITE_S: Final = 10.0
SEEN_S: Final = ABORT_S + 2.0
"""Time for a look itself, and until the function has noticed what it found."""
_LEAST_WAIT_S: Final = 10.0
_LEAVING_S: Final = 5.0
"""Time of the driver from the last wait for functions to the end."""


def write_stop(
    store: ObjectIO, run_id: str, launch: int, level: int, every_s: float, timeout_s: float
) -> None:
    """Write the stop object of a run; ``looks.STOP`` has the parameters.

    Raises
    ------
    OperationError
        If the store does not accept it in time.
    """
    # The run id comes first, because `sbench clean` reads only the beginning.
    content = {"run_id": run_id, "launch": launch, "level": level, LOOK: every_s}
    content["at_ns"] = wall_ns()
    store.put(STOP, json.dumps(content).encode(), timeout_s=timeout_s)


def longest_stop_s(job: JobSpec) -> float:
    """Return the longest time from a stop until the functions have ended their operations."""
    # Without any byte for that long, a request ends by itself.
    return look_s(job.max_concurrency) + SEEN_S + job.transfer.timeout


class StopSign:
    """The stop object of a run with an active driver; ``signed`` opens it.

    Parameters
    ----------
    job, control, run_id
        The run, and the location of claims.
    launch
        Latest launch of the driver.
    progress
        Receives a board, through which the driver is told to stop its functions.
    """

    def __init__(
        self, job: JobSpec, control: Target, run_id: str, launch: int, progress: RunProgress
    ) -> None:
        self.look_s = look_s(job.max_concurrency)
        self.seen_s = self.look_s + SEEN_S
        """Longest time until a function has noticed the stop."""
        self._wait_s = longest_stop_s(job) + RECORD_S
        self._longest_s = 0.0
        """Time that is left for an operation; 0 as long as it is not known."""
        self._stopped_ns: int | None = None
        """Monotonic instant of the stop."""
        self._run_id = run_id
        self._launch = launch
        self._progress = progress
        self._io = ObjectIO(for_run(control, run_id))
        self._board = Board.here()
        self.sample = ProgressSample(job, control, run_id, launch)
        self._written = 0
        """Level in the object."""
        self._begin_ns = monotonic_ns()
        self._next_ns = self._begin_ns + round(self.look_s * NS_PER_S)
        self._earlier: Mapping[str, Any] = {}
        """The object of a stop that was in force before this driver began."""

    def event(self, spec: InvocationSpec) -> InvocationSpec:
        """Return an invocation that looks for the stop, and shows progress if it is sampled."""
        shown = {PROGRESS: self.sample.every_s} if spec.index in self.sample.indexes else {}
        return spec.with_options(**{LOOK: self.look_s, **shown})

    def open(self) -> None:
        """Write the object for a new launch; an earlier stop remains for earlier launches."""
        try:
            before = read_stop(self._io) if self._launch else {}
            if before.get("launch", 0) < self._launch and before:
                return
            level = before.get("level", 0)
            self._write(self._launch - 1 if self._launch else NO_LAUNCH, level)
        except NotFound:
            self._write(NO_LAUNCH, 0)

    def follow(self) -> None:
        """Note a stop that is already in force for launches of another driver.

        That does not end this driver, but limits the wait for these functions.
        """
        found = read_stop(self._io)
        if self._stops(found):
            self._earlier = found
            self._stopped_ns = monotonic_ns()

    def learn(self, record: InvocationRecord) -> None:
        """Note whether a function was denied the looks; after a stop, the longest operation.

        Functions without a record are awaited for twice as long.
        """
        looked_s = (record.end_ns - record.start_ns) / NS_PER_S
        if record.control_gets == 1 and looked_s > 2 * self.look_s:
            self._progress.note(
                f"functions may not read {STOP} below the control prefix, so no stop reaches them:"
                " give them the permission to read claims"
            )
        if self._stopped_ns is not None:
            begins, ends = (column(record.operations, name) for name in ("start_ns", "end_ns"))
            longest_ns = max(map(sub, ends, begins), default=0)
            self._longest_s = max(_LEAST_WAIT_S, self._longest_s, 2 * longest_ns / NS_PER_S)

    @property
    def give_up_ns(self) -> int | None:
        """Monotonic instant after which no function is awaited; None without a stop."""
        if self._stopped_ns is None:
            return None
        wait_s = min(self._wait_s, self.seen_s + RECORD_S + (self._longest_s or self._wait_s))
        return self._stopped_ns + round(wait_s * NS_PER_S)

    def tick(self) -> None:
        """Pass on a stop of this driver, or notice one by another process."""
        level = self._board.level
        try:
            if level > self._written:
                self._stop(level)
            elif self._written < ABORT and monotonic_ns() >= self._next_ns:
                self._next_ns = monotonic_ns() + round(self.look_s * NS_PER_S)
                self._look()
        except NotFound:
            pass
        except OperationError as exc:
            self._progress.note(f"the stop object {STOP} cannot be read or written: {exc}")

    def _stop(self, level: int) -> None:
        # A function that has to stop ends as at its deadline.
        level = ABORT if level >= RUN_OVER else level
        self._write(self._launch, level)
        self._written = level
        if level == ABORT:
            self._wait()

    def _look(self) -> None:
        found = read_stop(self._io)
        if self._stops(found) and found != self._earlier:
            # Another process has read the object and written it.
            self._io.requests.update(get=1, put=1)
            self._written = ABORT
            after_s = (monotonic_ns() - self._begin_ns) / NS_PER_S
            self._progress.stopped = Stopped(by=BY_COMMAND, after_s=after_s)
            self._progress.stop(ABORT)
            self._wait()

    def _stops(self, found: Mapping[str, Any]) -> bool:
        return bool(found) and found["launch"] >= self._launch and found["level"] >= RUN_OVER

    def _wait(self) -> None:
        self._stopped_ns = monotonic_ns()
        self._progress.note(
            f"stopping: functions look for it every {format_seconds(self.look_s)}, so it takes"
            f" {format_seconds(self.seen_s)} at most, and the time of their last operation"
        )

    def _write(self, launch: int, level: int) -> None:
        write_stop(self._io, self._run_id, launch, level, self.look_s, _WRITE_S)

    def begin(self) -> None:
        """Let the driver's stops reach the functions from now on."""
        self._progress.grace_s = self._wait_s + _LEAVING_S
        self._board = self._progress.begin(self._board)

    def close(self) -> None:
        """Close the connections, and count the requests."""
        self._io.close()
        self._progress.requests.update(self._io.requests)


@contextmanager
def signed(
    job: JobSpec, first: InvocationSpec, progress: RunProgress, *, launches: bool = True
) -> Iterator[StopSign | None]:
    """Yield the stop object of a run, which follows the driver's stops while the block runs.

    Parameters
    ----------
    job
        The job; without a control target, nothing is yielded.
    first
        An invocation of the launch.
    progress
        Progress of the run.
    launches
        Whether functions are launched, and not only followed.
    """
    if job.control is None:
        yield None
        return
    sign = StopSign(job, job.control, first.run_id, first.launch, progress)
    try:
        if launches:
            sign.open()
        else:
            sign.follow()
    except NotFound:
        pass
    except OperationError as exc:
        progress.note(f"the stop object {STOP} cannot be written, so no stop works: {exc}")
    sign.begin()
    try:
        with (
            repeated(sign.tick, _TICK_S, name="stop"),
            sign.sample.watched(progress) if sign.sample.indexes else nullcontext(),
        ):
            yield sign
    finally:
        sign.close()
