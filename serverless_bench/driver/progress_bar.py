"""What is going on, on a terminal; nothing anywhere else."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from serverless_bench.clock import monotonic_ns
from serverless_bench.driver.link import mean_bytes
from serverless_bench.executors.base import RunProgress
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import InvocationRecord, Outcome
from serverless_bench.units import (
    NS_PER_S,
    bytes_per_second,
    format_per_s,
    format_rate,
)

_WINDOW_NS: Final = 2 * NS_PER_S
_BAR_WIDTH: Final = 20
_MANY_S: Final = 120
"""From here on minutes are told, not seconds."""


class RunView:
    """What is known of a run while it is under way.

    Parameters
    ----------
    job
        What runs.
    functions
        How many of its functions are waited for.
    live
        What the executor keeps up to date.
    keys
        Of the objects that are read.
    now_ns
        A clock.
    """

    def __init__(
        self,
        job: JobSpec,
        functions: int,
        live: RunProgress,
        keys: Sequence[str] = (),
        *,
        now_ns: Callable[[], int] = monotonic_ns,
    ) -> None:
        self._job = job
        self._functions = functions
        self._live = live
        self._now_ns = now_ns
        self._mean_bytes = mean_bytes(job, keys)
        self._prepared_bytes = 0
        if job.load.mix and not keys:
            self._prepared_bytes = job.invocations * job.objects * (job.object_bytes or 0)
        self._created_ns = now_ns()
        self._began_ns: int | None = None
        self._seen: deque[tuple[int, int]] = deque()
        self._done = self._failed = 0

    def add(self, outcome: Outcome) -> None:
        """Count a function that has come to its end."""
        result = outcome.result
        self._done += 1
        self._failed += not (isinstance(result, InvocationRecord) and result.ok)

    @property
    def phase(self) -> str:
        """What functions are at: they start, prepare objects, do their work, or are through."""
        if self._done >= self._functions:
            return "finishing"
        if not self._live.started:
            return "starting"
        if self._moved < self._prepared_bytes:
            return "preparing"
        if self._began_ns is None:
            self._began_ns = self._now_ns()
        return self._job.workload

    @property
    def share(self) -> float:
        """How much of the work is done, 0 to 1."""
        _ = self.phase
        by_functions = self._done / max(1, self._functions)
        if self._began_ns is None:
            return by_functions
        duration_s, total = self._job.duration_s, self._total_bytes
        if duration_s and self._functions <= self._job.concurrency:
            took_s = (self._now_ns() - self._began_ns) / NS_PER_S
            return max(by_functions, min(1.0, took_s / duration_s))
        return max(by_functions, min(1.0, self._moved / total) if total else 0.0)

    @property
    def left_s(self) -> float | None:
        """How many seconds are left, at the pace so far; None as long as nobody knows."""
        share = self.share
        took_s = 0.0 if self._began_ns is None else (self._now_ns() - self._began_ns) / NS_PER_S
        return took_s / share * (1 - share) if took_s and share else None

    def text(self) -> str:
        """Return the counts, the time that is left, the throughput and the operations."""
        parts = [f"{self._done}/{self._functions} done"]
        running = self._live.started - self._done
        if 0 < running < self._functions - self._done:
            parts.append(f"{running} running")
        if self._failed:
            parts.append(f"{self._failed} failed")
        # What a narrow terminal cuts off stands last.
        if (left_s := self.left_s) is not None:
            parts.append(f"{_roughly(left_s)} left")
        if self._moved_bytes is not None:
            parts += self._rates()
        return ", ".join(parts)

    def __rich__(self) -> Table:
        line = Table.grid(Column(no_wrap=True), "", "", Column(no_wrap=True), padding=(0, 1))
        # By bytes or time, where functions end all at once.
        bar = ProgressBar(total=1.0, completed=self.share, width=_BAR_WIDTH)
        took_s = (self._now_ns() - self._created_ns) // NS_PER_S
        elapsed = f"{took_s // 3600}:{took_s // 60 % 60:02}:{took_s % 60:02}"
        line.add_row(self.phase, bar, Text(elapsed, style="progress.elapsed"), self.text())
        return line

    @property
    def _moved(self) -> int:
        return self._moved_bytes or 0

    @property
    def _moved_bytes(self) -> int | None:
        """Bytes that functions have moved so far; None where they do not tell while they run."""
        totals = self._live.totals()
        return None if totals is None else totals.moved

    @property
    def _total_bytes(self) -> float:
        """What is to be moved; 0 if time decides."""
        job = self._job
        rounds = job.repeats + job.warmup
        if job.duration_s or job.load.mix or self._moved_bytes is None:
            return 0.0
        return self._functions * job.objects * rounds * self._mean_bytes

    def _rates(self) -> Iterator[str]:
        """Yield throughput and operations of the last two seconds."""
        now_ns = self._now_ns()
        self._seen.append((now_ns, self._moved))
        while now_ns - self._seen[0][0] > _WINDOW_NS:
            self._seen.popleft()
        then_ns, before = self._seen[0]
        rate = bytes_per_second(self._moved - before, now_ns - then_ns)
        yield format_rate(rate)
        if self._mean_bytes:
            # Nobody counts operations while they run; their bytes are counted.
            asked = self._job.load.rate_per_s
            wanted = "" if asked is None else f" of {format_per_s(asked)}"
            count = round(max(0, self._moved - self._prepared_bytes) / self._mean_bytes)
            yield f"{count:,} operations, {format_per_s(rate / self._mean_bytes)}{wanted}"


def _roughly(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > _MANY_S else f"{max(1, round(seconds))} s"


def progress_bar(view: RunView, console: Console | None = None) -> Live:
    """Return the bar, which stands as long as it is entered."""
    return Live(
        view, console=console or Console(stderr=True), refresh_per_second=10, transient=True
    )
