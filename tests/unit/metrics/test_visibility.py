"""A figure that the client does not expose is null, and the report gives the reason."""

import io
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.attempt_stats import SEEN, shown
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.report.text import full as report
from serverless_bench.rundir.record import Shown, Step
from serverless_bench.rundir.run import Run
from tests.data.runs import S, job, operation, outcome, record, saved
from tests.house.members import uses

PUT, GET = OperationKind.PUT, OperationKind.GET


def run_of(
    path: Path, kind: OperationKind, provenance: Mapping[str, Any], client: str = "wire"
) -> Run:
    workload = "write" if kind is PUT else "read"
    of = job(number=1, workload=workload, size=None if kind is GET else 1000)
    run = saved(path, [outcome(record(0, [operation(kind=kind)]))], of=of)
    of = replace(of, target=replace(of.target, client=client))
    return replace(run, job=of, provenance=provenance)


def says(*signs: str) -> dict[str, Any]:
    return {"client": {"shows": list(signs)}}


def text_of(summary: Summary) -> str:
    out = io.StringIO()
    report(summary, out)
    return out.getvalue()


PEAKS = ("peak_1s_bytes_per_s", "peak_5s_bytes_per_s")


@uses("feature compare")
@pytest.mark.parametrize(
    ("kind", "sign", "names"),
    [
        (GET, Shown.FIRST_BYTE, ("ttfb_s",)),
        (PUT, Shown.ACKNOWLEDGED, (*PEAKS, "ack_s")),
    ],
)
def test_unexposed_figures_are_null_and_named(
    tmp_path: Path, kind: OperationKind, sign: Shown, names: tuple[str, ...]
) -> None:
    from serverless_bench.features.compare.samples import measured_run

    others = [other.value for other in Shown if other is not sign]
    run = run_of(tmp_path / "run", kind, says(*others), "theirs")
    summary = summarize(run)
    assert summary.not_shown == names
    for name in names:
        assert summary.to_json()[name] is None
        assert f"theirs does not show {SEEN[name]}" in text_of(summary)
        metric = name if name in PEAKS else f"{name}.p50"
        with pytest.raises(UsageError, match=rf"has no {metric}: theirs does not show") as caught:
            measured_run(run).metric(metric)
        assert '"Clients" in the documentation' in caught.value.hint


@pytest.mark.parametrize(
    ("kind", "client", "status", "known"),
    [
        (PUT, {"shows": ["acknowledged"]}, 503, True),
        (PUT, {"shows": ["first_byte", "last_byte_sent"]}, 503, False),
        (GET, {"shows": []}, 200, True),
        (GET, {"shows": [], "progress": "wire"}, 200, True),
        (GET, {"shows": [], "progress": "none"}, 503, False),
        # A library of its own discards the bytes received before the connection was lost.
        (GET, {"shows": [], "progress": "body"}, 200, False),
        (GET, {"shows": [], "progress": "body"}, 503, True),
    ],
)
def test_bytes_of_failed_requests_that_nobody_saw_are_unknown_and_not_zero(
    tmp_path: Path, kind: OperationKind, client: Mapping[str, Any], status: int, *, known: bool
) -> None:
    run = run_of(tmp_path / "run", kind, {"client": client})
    changed = {"error": ["lost"], "request": [kind.value], "status": [status]}
    columns = {name: np.array(values, dtype=object) for name, values in changed.items()}
    run = replace(run, attempts={**run.attempts, **columns})
    summary = summarize(run)
    stats = summary.attempt_stats
    assert (stats.retried_bytes, stats.offered_bytes) == ((1000, 1000) if known else (None, None))
    assert ("retried_bytes" in summary.not_shown) == (not known)
    assert (stats.read_amplification is None) == (kind is PUT or not known)


@pytest.mark.parametrize("seen", [True, False])
def test_writes_without_arrival_times_have_no_false_peak(tmp_path: Path, *, seen: bool) -> None:
    # Half of it in its first second, and the rest in nine.
    op = operation(end_ns=10 * S)
    steps = [Step(operation=0, step_ns=n * S, step_bytes=500) for n in (1, 9)]
    of = replace(job(number=1, size=1000), network_rate=300)
    run = saved(tmp_path / "run", [outcome(record(0, [op], steps=steps))], of=of)
    summary = summarize(replace(run, provenance=says(*(["acknowledged"] if seen else []))))
    assert bool(summary.withheld) == seen
    assert summary.peak_1s_bytes_per_s is None


def test_exposed_figures_are_present(tmp_path: Path) -> None:
    for kind in (PUT, GET):
        run = run_of(tmp_path / kind, kind, says(*Shown), "theirs")
        summary = summarize(run)
        assert summary.not_shown == ()
        assert (summary.ttfb_s is None, summary.ack_s is None) == (kind is PUT, kind is GET)
        assert summary.attempt_stats.new_connections == 1
        assert "does not show" not in text_of(summary)


def test_connections_that_are_not_shown_are_not_counted(tmp_path: Path) -> None:
    summary = summarize(run_of(tmp_path / "run", PUT, says("acknowledged"), "boto3"))
    assert summary.not_shown == ("new_connections",)
    assert summary.attempt_stats.new_connections is None


@pytest.mark.parametrize(
    ("provenance", "client", "everything"),
    [
        ({"client": {"attempts": "exact"}}, "wire", False),
        ({"client": {"attempts": "exact"}}, "boto3", False),
        ({"client": {"attempts": "hidden"}}, "awscrt", False),
        ({"client": {"attempts": "hidden"}, "source": {"format": "warp"}}, "warp", True),
    ],
)
def test_only_logs_of_other_tools_show_everything_unsaid(
    tmp_path: Path, provenance: Mapping[str, Any], client: str, *, everything: bool
) -> None:
    run = run_of(tmp_path / "run", GET, provenance, client)
    everything_said = frozenset(Shown) - {Shown.ACKNOWLEDGED}
    assert shown(run) == (everything_said if everything else frozenset())


@uses("feature remote")
def test_a_cold_start_without_its_first_byte_is_not_made_up(tmp_path: Path) -> None:
    from serverless_bench.features.remote.deliveries import deliveries

    for kind, needed in ((GET, Shown.FIRST_BYTE), (PUT, Shown.CONNECTION)):
        for seen in (True, False):
            signs = [sign.value for sign in Shown if seen or sign is not needed]
            run = run_of(tmp_path / f"{kind}{seen}", kind, says(*signs))
            run.functions["delivery"][:] = "push"
            run.functions["born_ns"][:] = 1
            run.operations["start_ns"][:] = S
            found = deliveries(run)
            assert found is not None
            assert (found.cold_start_s is not None) == seen
