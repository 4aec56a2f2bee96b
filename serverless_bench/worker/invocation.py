"""The function body: the code that runs on the worker.

The body stays light: it and what it imports never load NumPy, pandas, matplotlib,
Lithops or cloudpickle, because a cold start is billed time.
"""

import os
import platform
from collections.abc import Mapping
from typing import Any, Final

from serverless_bench import __version__
from serverless_bench.clock import EpochClock, monotonic_ns, wall_ns
from serverless_bench.job.spec import InvocationSpec
from serverless_bench.payload.keystream import Keystream
from serverless_bench.process import (
    birth,
    cpus,
    memory_mib,
    peak_rss_bytes,
    worker_id,
)
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.units import MIB, NS_PER_S
from serverless_bench.worker.cpu_time import CpuTimer
from serverless_bench.worker.operation import describe
from serverless_bench.worker.runner import InvocationRunner, OnMoved, forget_clients

__all__ = ["forget_clients", "generator_bytes_per_s", "handle", "run_invocation"]

_generators: dict[int, int] = {}
"""How fast this process, by its id, makes bytes; a fork begins cold."""
_SPEED_BYTES: Final = 4 * MIB


def handle(event: Mapping[str, Any]) -> dict[str, Any]:
    """Run one invocation, JSON in and JSON out: what executors call far away.

    Parameters
    ----------
    event
        ``asdict`` of an ``InvocationSpec``.

    Returns
    -------
    dict
        ``InvocationRecord.to_json()``. Whatever fails inside is in the record.
    """
    return run_invocation(InvocationSpec.from_json(event)).to_json()


def run_invocation(
    invocation: InvocationSpec,
    *,
    on_moved: OnMoved = lambda _: None,
    refused: str | None = None,
) -> InvocationRecord:
    """Perform every operation of one invocation and return what was measured.

    Parameters
    ----------
    invocation
        What to do.
    on_moved
        Live progress, where the executor can show it.
    refused
        Why nothing is to be done; None to do it.
    """
    clock = EpochClock()
    wall_start_ns, start_ns = wall_ns(), clock.now_ns()
    pid = os.getpid()
    cold_start = pid not in _generators
    if cold_start:
        _generators[pid] = generator_bytes_per_s()
    runner = InvocationRunner(invocation=invocation, clock=clock, on_moved=on_moved)
    usage = CpuTimer()
    error: str | None = refused
    try:
        if refused:
            pass
        elif wall_start_ns > invocation.not_after_ns:
            error = "expired: this invocation was delivered after the run had ended"
        else:
            runner.client()
            # What a library takes to be loaded is no work on an object.
            usage = CpuTimer()
            error = runner.measure_all()
    except Exception as exc:  # noqa: BLE001 - the records made so far must reach the driver
        error = describe(exc)
    used = usage.stop()
    measured_cpu_ns = runner.measured_cpu_ns()
    measured, barrier, overdue = runner.results(), runner.barrier, runner.overdue()
    born_ns, import_ns = birth() if cold_start else (None, None)
    return InvocationRecord(
        run_id=invocation.run_id,
        index=invocation.index,
        launch=invocation.launch,
        worker_id=worker_id(),
        cold_start=cold_start,
        version=__version__,
        python=platform.python_version(),
        start_ns=start_ns,
        end_ns=clock.now_ns(),
        wall_start_ns=wall_start_ns,
        wall_end_ns=wall_ns(),
        cpu_user_s=round(used.user_s, 6),
        cpu_sys_s=round(used.sys_s, 6),
        max_rss_bytes=peak_rss_bytes(),
        operations=tuple(m.operation for m in measured),
        attempts=tuple(row for m in measured for row in m.attempts),
        steps=tuple(row for m in measured for row in m.steps),
        bad_ranges=tuple(row for m in measured for row in m.bad_ranges),
        usages=tuple(row for m in measured for row in m.usages),
        error=error,
        run_wait_ns=used.wait_ns,
        interpreter_ns=used.interpreter_ns,
        lock_probes=None if runner.probe is None else runner.probe.probes,
        lock_delayed=None if runner.probe is None else runner.probe.delayed,
        cpus=cpus(),
        memory_mib=memory_mib(),
        generator_bytes_per_s=_generators[pid],
        gate_wait_ns=None if barrier is None else barrier.wait_ns,
        gate_late=barrier is not None and barrier.late,
        gate_puts=None if barrier is None else barrier.puts,
        gate_gets=None if barrier is None else barrier.gets,
        born_ns=born_ns,
        import_ns=import_ns,
        machine=platform.machine(),
        overdue=overdue,
        measured_cpu_ns=measured_cpu_ns,
    )


def generator_bytes_per_s() -> int:
    """Return how fast this worker makes the bytes of an object: no client can be faster."""
    room = bytearray(MIB)
    start_ns = monotonic_ns()
    for offset in range(0, _SPEED_BYTES, len(room)):
        Keystream("speed").readinto_at(offset, room)
    return _SPEED_BYTES * NS_PER_S // max(monotonic_ns() - start_ns, 1)
