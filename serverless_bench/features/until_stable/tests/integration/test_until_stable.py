"""``--until-stable`` as a user runs it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from serverless_bench.base.units import format_seconds
from serverless_bench.features.compare import stability
from tests.commands.command import Call, Sbench
from tests.stores.servers import loopback


def test_a_stable_run_ends_before_its_duration_and_says_so(
    sbench: Sbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # features/compare/tests/test_stability.py measures how often the criterion is right; this one
    # is relaxed, so that runs on a busy machine are stable, too.
    monkeypatch.setattr(stability, "MIN_BLOCKS", 3)
    monkeypatch.setattr(stability, "MIN_S", 0.0)
    monkeypatch.setattr(stability, "BLOCK_AUTOCORRELATION_TIMES", 0.0)
    monkeypatch.setattr(stability, "MOST_TREND", 1e6)
    monkeypatch.setattr(
        stability.RateEstimate, "holds", lambda rate, _: rate.half_width < float("inf")
    )
    with loopback("--queue", "2:fixed:4ms", log=tmp_path / "log") as store:
        done = sbench(
            *("write", "--endpoint-url", store.endpoint_url, "--bucket", store.bucket),
            *("--number", 2, "--size", "1KiB", "--duration", 600, "--until-stable", "45%"),
            *("--name", "run", "--format", "json"),
        )
    found = done.json["stability"]
    assert done.code == 0
    assert found["reached"]
    assert found["asked"] == 0.45
    assert found["of"] == "operations"
    assert found["blocks"] >= 3
    assert found["low_per_s"] <= found["mean_per_s"] <= found["high_per_s"]
    # The times of samples, which a run may end in the middle of.
    assert found["after_s"] == found["looked_s"] < done.json["elapsed_s"] + stability.SAMPLE_S
    assert done.json["elapsed_s"] < 600
    text = sbench("report", "sbench-runs/run", "--full")
    assert "stable within 45.0% after" in text.out
    assert f"blocks of these {format_seconds(found['looked_s'])}" in text.out


def test_a_run_that_is_too_short_says_that_it_was(sbench: Sbench, tmp_path: Path) -> None:
    with loopback(log=tmp_path / "log") as store:
        done = sbench(
            *("write", "--endpoint-url", store.endpoint_url, "--bucket", store.bucket),
            *("--number", 1, "--executor", "inline", "--size", "1KiB", "--duration", "0.5"),
            *("--until-stable", "2%"),
        )
    assert done.code == 0
    assert "not stable within 2.0%" in done.out


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("--until-stable needs --duration", ()),
        ("--until-stable does not work with --executor workers", ("workers", "--duration", "1")),
        ("must be above 0 and below 0.5, got 0.8", ("local", "--until-stable", "80%")),
    ],
)
def test_unsupported_jobs_are_refused_in_one_line(
    call: Call, words: str, arguments: Sequence[str]
) -> None:
    flags = ("--until-stable", "2%", *(("--executor", *arguments) if arguments else ()))
    if "workers" in arguments:
        flags = (
            *flags,
            "--no-progress-objects",
            "--bucket",
            "b",
            "--endpoint-url",
            "http://127.0.0.1:1",
        )
    code, out, err = call("write", *flags)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 2
