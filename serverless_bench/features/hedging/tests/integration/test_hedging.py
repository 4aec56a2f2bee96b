"""Hedged reads of a store that is slow for one key in a hundred, and of one that is saturated."""

import zlib
from collections import Counter
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

import pytest

from serverless_bench import JobSpec, Load, Target, Transfer, run_job, summarize
from serverless_bench.base.errors import UsageError
from serverless_bench.driver.checked_job import check_job
from serverless_bench.features.audit.audit import audit
from serverless_bench.features.audit.sources import read_reported_run, read_request_log
from serverless_bench.features.hedging.figures import HedgingSummary
from serverless_bench.features.hedging.part import PART
from serverless_bench.features.loopback.faults import FaultKind, FaultPlan
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.keys import object_key
from serverless_bench.report.base import rows
from serverless_bench.rundir.run import Run
from tests.reference.report import reference
from tests.stores.delaying import delaying
from tests.stores.servers import KEYS, credentials
from tests.twice import two_of_three

SIZE = 4096
AFTER_S: Final = 0.2


def is_late(key: str) -> bool:
    return zlib.crc32(key.encode()) % 100 == 0


def keys_of(late: int, others: int) -> list[str]:
    """Return keys of which so many are late."""
    wanted, keys = {True: late, False: others}, []
    for number in count():
        key = object_key(
            prefix="sbench/", run_id="hedged", index=0, launch=0, number=number, size=SIZE
        )
        if wanted[is_late(key)]:
            wanted[is_late(key)] -= 1
            keys.append(key)
        if not any(wanted.values()):
            return keys
    raise AssertionError


def hedged(run: Run) -> HedgingSummary:
    summary = summarize(run)
    figures = PART.results_in(summary)
    assert figures is not None
    assert summary.withheld == ()
    return figures


def pairs(run: Run) -> list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Return operation, first and second request of each hedged read, from the file."""
    found = []
    for function in read_reported_run(run.path).functions:
        for op in function.operations:
            attempts = sorted(function.attempts[op["index"]], key=lambda row: row["start_ns"])
            numbers = Counter((row["part"], row["number"]) for row in attempts)
            assert max(numbers.values()) <= 2
            if len(attempts) > len(numbers):
                found.append((dict(op), dict(attempts[0]), dict(attempts[1])))
    return found


@pytest.mark.parametrize("split", [None, 2])
def test_the_late_ones_are_requested_twice_and_the_request_log_saw_all(
    tmp_path: Path, split: int | None
) -> None:
    # Of 399, the 99th percentile is the fastest of the four that are late.
    keys = keys_of(late=4, others=395) if split is None else keys_of(late=1, others=19)
    request_log = tmp_path / "requests.jsonl"
    with (
        serving(LoopbackSettings(request_log=request_log)) as server,
        delaying(server.endpoint_url, is_late) as proxy,
        credentials(KEYS),
    ):
        job = JobSpec(
            workload="read",
            target=Target(bucket="any", endpoint_url=proxy.endpoint_url),
            executor="inline",
            number=split or 1,
            objects=len(keys),
            load=Load(split=split),
            transfer=Transfer(retries=0),
            options={"hedge": AFTER_S},
        )
        run = run_job(job, tmp_path / "run", keys=keys)
        server.state.request_log.settle()
        seen = read_request_log(request_log)
    found, summary = hedged(run), summarize(run)
    assert (summary.ok, summary.verified_bytes) == (job.number, len(keys) * SIZE)
    twice = pairs(run)
    # Those held back, which nothing but a second request ends, and others that really took long.
    held = [pair for pair in twice if pair[0]["key"] in proxy.held and pair[2]["error"] is None]
    assert {op["key"] for op, *_ in held} == set(filter(is_late, keys))
    for _, first, second in twice:
        assert second["start_ns"] - first["start_ns"] >= AFTER_S * 1e9
        assert {first["error"], second["error"]} == {None, "hedged"}
    assert (found.hedges, found.failed) == (len(twice), 0)
    assert found.won == sum(second["error"] is None for *_, second in twice) >= len(held)
    assert found.requests == len(keys) * (split or 1)
    # Reckoned: it falls to the time until the second request, and what this one took.
    assert found.p99_s is not None
    p99 = sorted(op["end_ns"] - op["start_ns"] for op in read_reported_run(run.path).operations)
    assert found.p99_s == p99[-(len(p99) // 100) - 1] / 1e9
    if split is None:
        # Four were late, so the first of them is the percentile, or one that really took longer.
        assert found.p99_s >= AFTER_S
    checked = audit(run.path, seen)
    assert checked.differences == ()
    assert checked.requests["data"] == checked.matched == summary.attempt_stats.attempts
    assert summary.attempt_stats.failed_attempts == 0


def read_from(
    shape: Shape,
    keys: list[str],
    path: Path,
    *,
    hedge: float,
    threads: int,
    read_times: int = 1,
    refused: float = 0.0,
) -> Run:
    """Read objects from a store of this shape, with second requests, in one function."""
    with serving(LoopbackSettings(shape=shape)) as server, credentials(KEYS):
        server.state.fault_plan = FaultPlan(7, {FaultKind.SLOWDOWN: refused})
        job = JobSpec(
            workload="read",
            target=Target(bucket="any", endpoint_url=server.endpoint_url),
            executor="inline",
            number=1,
            objects=len(keys),
            read_times=read_times,
            load=Load(threads=threads),
            options={"hedge": hedge},
        )
        return run_job(job, path, keys=keys)


@pytest.mark.timing
@pytest.mark.full
def test_a_store_that_admits_so_many_a_second_is_made_slower(tmp_path: Path) -> None:
    two_of_three(lambda: check_admitting(Path(mkdtemp(dir=tmp_path))))


def check_admitting(tmp_path: Path) -> None:
    keys = keys_of(late=1, others=39)
    shape = Shape(get_per_s=100, latency="fixed:20ms")
    run = read_from(shape, keys, tmp_path / "run", hedge=0.001, threads=4, read_times=8)
    found = hedged(run)
    # The time is below any that the store needs: each read is requested twice, mostly in vain.
    assert found.share is not None
    assert found.share > 0.9
    assert found.displaced > found.won
    assert found.made_worse is True
    assert reference(run.path)["hedging"]["displaced"] == found.displaced


def test_second_requests_are_not_blamed_for_503s_at_random(tmp_path: Path) -> None:
    keys = keys_of(late=1, others=39)
    # No machine is so busy that a client has an answer before it looks at its clock.
    shape = Shape(latency="fixed:200ms")
    path = tmp_path / "run"
    run = read_from(shape, keys, path, hedge=0.001, threads=8, read_times=5, refused=0.2)
    found, gets = hedged(run), run.attempts["error"].tolist()
    # By numbers alone, more requests were throttled beside losers than second requests won.
    assert gets.count("throttled") > max(found.won, 20)
    assert found.share is not None
    assert found.share > 0.9
    assert (found.displaced, found.made_worse) == (0, None)


@pytest.mark.timing
@pytest.mark.parametrize(
    ("shape", "made_worse"),
    [
        (Shape(queue="1:fixed:30ms"), True),
        # Each read is requested twice and none is answered sooner, but the store has no queue.
        pytest.param(Shape(latency="fixed:150ms"), None, marks=pytest.mark.full),
    ],
)
def test_a_queue_that_serves_losers_is_made_slower(
    tmp_path: Path, shape: Shape, made_worse: object
) -> None:
    two_of_three(lambda: check_queue(Path(mkdtemp(dir=tmp_path)), shape, made_worse))


def check_queue(tmp_path: Path, shape: Shape, made_worse: object) -> None:
    keys = keys_of(late=1, others=39)
    run = read_from(shape, keys, tmp_path / "run", hedge=0.1, threads=8)
    found = hedged(run)
    assert (found.displaced, found.made_worse) == (0, made_worse)
    assert found.hedges > 5 * found.won
    row = dict(rows(summarize(run)))["hedging"]
    assert row is not None
    assert ("made things WORSE: reads slowed down with them" in row) is bool(made_worse)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"workload": "read", "key": "k", "client": "boto3"}, "does not work with `client` boto3"),
        ({"workload": "mixed", "mix": "put=1"}, "needs reads"),
        ({"workload": "write"}, "has no setting 'hedge'"),
        ({"workload": "read", "key": "k", "hedge": "p0"}, "neither a time nor a percentile"),
        ({"workload": "read", "key": "k", "hedge": "p100"}, "neither a time nor a percentile"),
        ({"workload": "read", "key": "k", "hedge": "2m"}, "below the timeout"),
        ({"workload": "read", "key": "k", "hedge": 0.0}, "above 0 s"),
        ({"workload": "read", "key": "k", "hedge": "soon"}, "neither a time nor a percentile"),
    ],
)
def test_what_cannot_be_hedged_is_refused_in_a_line(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        check_job({"hedge": "50ms", **given})
    assert caught.value.exit_code == 2
    assert caught.value.field == "hedge"
