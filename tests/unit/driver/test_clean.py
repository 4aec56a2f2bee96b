"""The time for which `sbench clean` keeps the claims of a run."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.driver import clean
from serverless_bench.rundir.run import load_run
from tests.data import runs

NOW = 2_000_000_000 * runs.S


@pytest.mark.parametrize(
    ("sent_s", "collected_s", "refusals", "died_s", "waits_s"),
    [
        # 60 s after an event was sent no function begins with it, and 5 s are left for clocks.
        (10, 1, 0, None, 55),
        (66, 1, 0, None, None),
        # An event that was refused at first was sent again at an unrecorded time.
        (66, 20, 2, None, 45),
        # A driver that died may have sent events until then.
        (3600, 3600, 0, 0, 65),
    ],
)
def test_claims_stay_until_no_delivery_can_come_late(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sent_s: int,
    collected_s: int,
    refusals: int,
    died_s: int | None,
    waits_s: int | None,
) -> None:
    outcome = replace(
        runs.outcome(runs.record(0, [runs.operation()])),
        submitted_ns=NOW - sent_s * runs.S,
        collected_ns=NOW - collected_s * runs.S,
        refusals=refusals,
    )
    remote = replace(runs.job(number=1), control=runs.TARGET)
    run = runs.saved(tmp_path / "run", [outcome], of=remote)
    slept: list[float] = []
    messages: list[str] = []
    monkeypatch.setattr(clean, "wall_ns", lambda: NOW)
    monkeypatch.setattr(clean, "sleep", slept.append)
    clean._outwait(run, None if died_s is None else NOW - died_s * runs.S, messages.append)
    assert slept == ([] if waits_s is None else [waits_s])
    assert messages == (
        [] if waits_s is None else [f"waiting {waits_s} s for deliveries that may come late"]
    )
    runs.long_ago(run.path)
    clean._outwait(load_run(run.path), None, messages.append)
    assert len(slept) == (waits_s is not None), "for a run of long ago nobody waits"
