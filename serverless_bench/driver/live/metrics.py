"""Counters of a run for Prometheus, in the format of its client library."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from serverless_bench.clock import repeated
from serverless_bench.driver.live.bound_now import UNKNOWN
from serverless_bench.driver.live.display import Display
from serverless_bench.driver.live.view import Look, RunView
from serverless_bench.errors import ArchiveError, PluginError
from serverless_bench.job.spec import JobSpec
from serverless_bench.process.callers import from_a_page, is_loopback
from serverless_bench.process.threaded_server import FIRST_REQUEST_S, ThreadedServer
from serverless_bench.units import NS_PER_S
from serverless_bench.worker.live_layout import BUCKETS, KINDS, bucket_bounds_ns

try:
    from prometheus_client import CollectorRegistry, MetricsHandler, write_to_textfile
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector
except ImportError as exc:
    raise PluginError(
        "`metrics` needs the library prometheus-client",
        hint="install serverless-bench[metrics]",
    ) from exc


_EVERY_S: Final = 5.0
"""Interval for writing the file."""
_CONNECTIONS: Final = 8
_REST_S: Final = 0.1
"""Pause after connections of other users: it limits a flood of them to a tenth of a processor."""


def measured(
    view: RunView, job: JobSpec, display: Display, notes: list[str]
) -> AbstractContextManager[None]:
    """Expose metrics for Prometheus while the block runs.

    Raises
    ------
    ArchiveError
        If the metrics file cannot be written at the start; later errors are noted.
    """
    registry, address = CollectorRegistry(), display.address
    registry.register(RunCollector(view, job))
    if address is None:
        return _file(registry, display.metrics, notes)
    return _port(registry, address, notes)


@contextmanager
def _port(
    registry: CollectorRegistry, address: tuple[str, int], notes: list[str]
) -> Iterator[None]:
    """Serve metrics to Prometheus; an error to listen is noted."""
    handler = _Handler.factory(registry)
    try:
        server = ThreadedServer(address, handler, connections=_CONNECTIONS, rest_s=_REST_S)
    except OSError as exc:
        host, port = address
        notes.append(f"no metrics: cannot listen on {host}:{port}: {exc.strerror}")
        yield
        return
    with server.running():
        yield


@contextmanager
def _file(registry: CollectorRegistry, path: str, notes: list[str]) -> Iterator[None]:
    """Write metrics to a file, which is replaced atomically."""

    def write() -> None:
        try:
            write_to_textfile(path, registry)
        except OSError as exc:
            raise ArchiveError(
                f"cannot write {path}: {exc.strerror}",
                hint="name a file in a directory of yours",
            ) from exc

    def again() -> None:
        # A run continues without metrics.
        try:
            write()
        except ArchiveError as exc:
            if str(exc) not in notes:
                notes.append(str(exc))

    write()
    try:
        with repeated(again, _EVERY_S, name="metrics"):
            yield
    finally:
        again()


class _Handler(MetricsHandler):
    """Handles one request."""

    timeout = FIRST_REQUEST_S

    def do_GET(self) -> None:  # noqa: N802 - stdlib's name
        """Send the metrics, except to web pages."""
        is_local = is_loopback(self.connection.getsockname())
        if is_local and from_a_page(self.headers.get("Host", ""), self.headers.get("Origin")):
            self.send_error(403, "metrics are not for web pages; use the host name 127.0.0.1")
        else:
            super().do_GET()


class RunCollector(Collector):
    """Collects metrics of the run on request."""

    def __init__(self, view: RunView, job: JobSpec) -> None:
        self._view = view
        self._job = job

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        look, job = self._view.look(), self._job
        info = {"workload": job.workload, "client": job.target.client, "executor": job.executor}
        about = [(list(info.values()), 1)]
        yield _family("sbench_run_info", "Properties of the run; always 1.", list(info), about)
        yield from _functions(look)
        # Zeros would be wrong before the first progress is known.
        if look.is_known:
            yield from _operations(look)
            yield from _attempts(look)
            yield _latencies(look)


def _family(
    name: str,
    text: str,
    labels: Sequence[str],
    samples: Iterable[tuple[Sequence[str], float]],
    kind: type[CounterMetricFamily | GaugeMetricFamily] = GaugeMetricFamily,
) -> Metric:
    """Return a metric with one value for each combination of labels."""
    family = kind(name, text, labels=labels)
    for values, value in samples:
        family.add_metric(values, value)
    return family


def _functions(look: Look) -> Iterator[Metric]:
    states = (([state], count) for state, count in look.functions.items())
    yield _family("sbench_functions", "Functions by state.", ["state"], states)
    yield GaugeMetricFamily(
        "sbench_run_duration_seconds", "Time since the start of the run.", value=look.elapsed_s
    )
    yield GaugeMetricFamily(
        "sbench_progress_ratio", "Completed fraction of the work.", value=look.share
    )
    if look.asked_per_s is not None:
        yield GaugeMetricFamily(
            "sbench_requested_operations_per_second",
            "Requested rate of an open loop.",
            value=look.asked_per_s,
        )
    if look.cost is not None:
        spent = [([look.cost.currency], look.cost.amount)]
        yield _family("sbench_cost", "Spent so far.", ["currency"], spent, CounterMetricFamily)
    cause = "unknown" if look.bound == UNKNOWN else look.bound.partition(":")[0].replace(" ", "_")
    yield _family("sbench_bound_info", "Current bottleneck.", ["cause"], [([cause], 1)])


def _operations(look: Look) -> Iterator[Metric]:
    moved, ended, failed = look.totals.bytes, look.totals.operations, look.totals.failed
    seen = [kind for kind in KINDS if ended[kind] or moved[kind]]
    samples = (([kind], moved[kind]) for kind in seen)
    yield _family("sbench_bytes", "Bytes in bodies.", ["kind"], samples, CounterMetricFamily)
    results = (
        ([kind, result], count)
        for kind in seen
        for result, count in (("ok", ended[kind] - failed[kind]), ("failed", failed[kind]))
    )
    labels = ["kind", "result"]
    yield _family(
        "sbench_operations", "Completed operations.", labels, results, CounterMetricFamily
    )


def _attempts(look: Look) -> Iterator[Metric]:
    totals = look.totals
    yield CounterMetricFamily("sbench_attempts", "Requests, retries included.", totals.attempts)
    yield CounterMetricFamily("sbench_retries", "Attempts after a failed one.", totals.retries)
    failed = (([name], count) for name, count in totals.failures.items())
    yield _family("sbench_failures", "Failed attempts.", ["class"], failed, CounterMetricFamily)


def _latencies(look: Look) -> HistogramMetricFamily:
    """Return the histogram with a bucket for each power of two; the sum is within 6 %."""
    counts, buckets, below, sum_ns = look.totals.histogram, list[tuple[str, float]](), 0, 0
    for bucket in range(BUCKETS):
        low, high = bucket_bounds_ns(bucket)
        below += counts[bucket]
        sum_ns += counts[bucket] * (low + high) // 2
        if high.bit_count() == 1 and bucket < BUCKETS - 1:
            buckets.append((f"{high / NS_PER_S:g}", below))
    buckets.append(("+Inf", below))
    return HistogramMetricFamily(
        "sbench_operation_latency_seconds",
        "Latency of successful measured operations; in an open loop from their due time.",
        buckets=buckets,
        sum_value=sum_ns / NS_PER_S,
    )
