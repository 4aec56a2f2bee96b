"""What a progress bar shows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.text import Text

from serverless_bench.clock import monotonic_ns
from serverless_bench.executors.base import Live
from serverless_bench.rundir.record import InvocationRecord, Outcome
from serverless_bench.units import NS_PER_S, bytes_per_second

_WINDOW_NS = 2 * NS_PER_S


class _Rate(ProgressColumn):
    """Throughput over the last two seconds."""

    def __init__(self, live: Live) -> None:
        super().__init__()
        self._live = live
        self._seen: list[tuple[int, int]] = []

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        del task
        moved = self._live.moved_bytes
        if moved is None:
            return Text("")
        now_ns = monotonic_ns()
        self._seen.append((now_ns, moved))
        while now_ns - self._seen[0][0] > _WINDOW_NS:
            self._seen.pop(0)
        then_ns, before = self._seen[0]
        return Text(f"{bytes_per_second(moved - before, now_ns - then_ns) / 1e9:.2f} GB/s")


@contextmanager
def progress_bar(phase: str, functions: int, live: Live) -> Iterator[Callable[[Outcome], None]]:
    """Yield what to call with each outcome while the bar stands."""
    bar = Progress(
        TextColumn(phase),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("done, {task.fields[started]} started, {task.fields[failed]} failed"),
        _Rate(live),
        Elapsed(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(phase, total=functions, started=0, failed=0)
    failed = 0

    def on_outcome(outcome: Outcome) -> None:
        nonlocal failed
        result = outcome.result
        if not (isinstance(result, InvocationRecord) and result.ok):
            failed += 1
        bar.update(task, advance=1, started=live.started, failed=failed)

    with bar:
        yield on_outcome
