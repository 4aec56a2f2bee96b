"""The function body: the code that runs on the worker.

The body stays light: neither it nor its imports load NumPy, pandas, vl_convert, Lithops or
cloudpickle, because a cold start is billed time.
"""

import os
import platform
from collections.abc import Mapping
from typing import Any, Final

from serverless_bench.base.clock import EpochClock, monotonic_ns, wall_ns
from serverless_bench.base.process import birth, cpus, memory_mib, peak_rss_bytes, worker_id
from serverless_bench.base.units import MIB, NS_PER_S
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.payload.keystream import Keystream
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.version import __version__
from serverless_bench.worker.board import BoardSlot
from serverless_bench.worker.cpu_time import CpuTimer
from serverless_bench.worker.operation import describe, to_tables
from serverless_bench.worker.runner import InvocationRunner, seldom_collected
from serverless_bench.worker.runner import forget_clients as forget_clients

_generators: dict[int, int] = {}
"""Speed at which a process generates bytes, by process id; a forked process starts cold."""
_SPEED_BYTES: Final = 4 * MIB


def handle(event: Mapping[str, Any]) -> dict[str, Any]:
    """Run an invocation, JSON in and JSON out: the call that remote executors make.

    Parameters
    ----------
    event
        ``asdict`` of an ``InvocationSpec``.

    Returns
    -------
    dict
        ``InvocationRecord.to_json()``. Failures inside the invocation are part of the record.
    """
    return run_invocation(InvocationSpec.from_json(event)).to_json()


def run_invocation(
    invocation: InvocationSpec,
    *,
    board: BoardSlot | None = None,
    refused: str | None = None,
) -> InvocationRecord:
    """Perform all operations of an invocation and return the measurements.

    Parameters
    ----------
    invocation
        The operations to perform.
    board
        A worker's end of a board, if the driver shares memory.
    refused
        Reason for not running the operations; None to run them.
    """
    clock = EpochClock()
    wall_start_ns, start_ns = wall_ns(), clock.now_ns()
    cold_start = take_for_warm()
    runner = InvocationRunner(invocation=invocation, clock=clock, board=board or BoardSlot())
    error, used = _measure(runner, wall_start_ns, refused)
    runner.board.count(clock.now_ns())
    measured = _measurements(runner)
    return InvocationRecord(
        run_id=invocation.run_id,
        index=invocation.index,
        launch=invocation.launch,
        start_ns=start_ns,
        end_ns=clock.now_ns(),
        wall_start_ns=wall_start_ns,
        wall_end_ns=wall_ns(),
        error=error,
        **used,
        **measured,
        **_environment(cold_start=cold_start),
    )


def take_for_warm() -> bool:
    """Return whether this environment is new, and mark it as used."""
    pid = os.getpid()
    is_new = pid not in _generators
    if is_new:
        _generators[pid] = generator_bytes_per_s()
    return is_new


def _measure(
    runner: InvocationRunner, wall_start_ns: int, refused: str | None
) -> tuple[str | None, dict[str, Any]]:
    """Perform the operations; return why they stopped early, and CPU times for the record."""
    timer = CpuTimer()
    if refused:
        return refused, timer.stop()
    if wall_start_ns > runner.invocation.not_after_ns:
        return "expired: delivered after the run had ended", timer.stop()
    try:
        runner.client()
        # Loading a client's library is not work on an object.
        timer = CpuTimer()
        error = runner.measure_all()
    except Exception as exc:  # noqa: BLE001 - existing records must reach the driver
        error = describe(exc)
    return error, timer.stop()


def _measurements(runner: InvocationRunner) -> dict[str, Any]:
    """Return the fields of a record that the runner knows."""
    measured_cpu_ns = runner.measured_cpu_ns()
    probe = runner.probe
    with seldom_collected():
        tables = to_tables(runner.results())
    return {
        **tables,
        "dropped": runner.dropped(),
        "measured_cpu_ns": measured_cpu_ns,
        "lock_probes": None if probe is None else probe.probes,
        "lock_delayed": None if probe is None else probe.delayed,
        **runner.begun,
        **({} if runner.changes is None else runner.changes.doses),
    }


def _environment(*, cold_start: bool) -> dict[str, Any]:
    """Return the fields of a record that describe the execution environment."""
    born_ns, import_ns = birth() if cold_start else (None, None)
    return {
        "worker_id": worker_id(),
        "cold_start": cold_start,
        "version": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": cpus(),
        "memory_mib": memory_mib(),
        "max_rss_bytes": peak_rss_bytes(),
        "generator_bytes_per_s": _generators[os.getpid()],
        "born_ns": born_ns,
        "import_ns": import_ns,
    }


def generator_bytes_per_s() -> int:
    """Return the speed at which this worker generates bytes of an object: no client is faster."""
    buffer = bytearray(MIB)
    start_ns = monotonic_ns()
    for offset in range(0, _SPEED_BYTES, len(buffer)):
        Keystream("speed").readinto_at(offset, buffer)
    return _SPEED_BYTES * NS_PER_S // max(monotonic_ns() - start_ns, 1)
