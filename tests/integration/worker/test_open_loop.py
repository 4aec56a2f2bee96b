"""An open loop against a store that stalls, for real: counts and identities, no times."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.rundir.record import Outcome
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.data.runs import saved
from tests.stores.servers import KEYS, credentials

KEY = "sbench/" + "0" * 32 + ".1000"
RATE, DURATION_S = 50, 3.0
DUE = 150
STALL_S = 3.0


def measured(path: Path, *, stall_at_s: float, **of: int) -> Summary:
    """Return the latencies of one function that reads 50 times per second, for three seconds."""
    with serving(LoopbackSettings(shape=Shape(stall=f"{stall_at_s}:{STALL_S}"))) as server:
        job = JobSpec(
            workload="read",
            target=Target(bucket="b", endpoint_url=server.endpoint_url),
            transfer=Transfer(retries=0),
            number=1,
            duration=DURATION_S,
            warm_up=of.get("warm_up", 0),
            load=Load(rate=RATE, threads=of.get("threads", 1)),
        )
        with credentials(KEYS):
            (spec,) = invocation_specs(job, run_id="r", created_ns=sys.maxsize // 2, keys=[KEY])
            record = run_invocation(spec)
            forget_clients()
    assert record.ok
    outcome = Outcome(submitted_ns=record.start_ns, collected_ns=record.end_ns, result=record)
    return summarize(saved(path, [outcome], of=replace(job, deadline=60)))


@pytest.mark.parametrize(
    "of", [{}, {"warm_up": 3, "threads": 4}], ids=["plain", "warm-up and idle threads"]
)
def test_a_stall_at_the_end_is_seen_like_one_at_the_beginning(
    tmp_path: Path, of: dict[str, int]
) -> None:
    # A warm-up may take a second, or a function come a second late, and it begins in the schedule.
    for name, at_s in (("early", 1.0), ("late", 2.0)):
        found = measured(tmp_path / name, stall_at_s=at_s, **of).latencies
        (row, *_) = found.by_kind
        assert found.due == found.begun + found.dropped == DUE  # type: ignore[operator]
        assert row.dropped is not None
        assert row.ok + row.dropped == DUE
        # The stall outlasts the schedule, so most operations due in it did not start.
        assert row.dropped > 10
        assert row.response is not None
        assert row.response.histogram.count == DUE
        # Whoever was in flight, or due, when it began has waited for nearly all of it.
        assert row.response.percentiles_s["p99"] > 0.9 * STALL_S
