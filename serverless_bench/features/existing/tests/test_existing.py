"""Lines with sizes, what a plan says of them, and reports of runs with existing objects."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.plan import check
from serverless_bench.job.keys import is_key, listed, read_key_file
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from serverless_bench.metrics.summary import summarize
from serverless_bench.report.base import rows
from tests.data.runs import job, outcome, record, saved

OWN = f"{'ab' * 16}.300"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("a\t1000", ("a", 1000)),
        ("a", ("a", None)),
        (OWN, (OWN, 300)),
        # A size in the list is that of an object whose bytes are unknown.
        (f"{OWN}\t300", (OWN, 300)),
    ],
)
def test_a_line_has_a_key_and_maybe_a_size(line: str, expected: tuple[str, int | None]) -> None:
    assert listed(line) == expected
    assert is_key(line)


@pytest.mark.parametrize("line", ["a\t", "a\tb", "\t5", "a\t1\t2", "a\t-1", ""])
def test_other_lines_are_refused(tmp_path: Path, line: str) -> None:
    assert not is_key(line)
    (tmp_path / "keys").write_text(f"x\n{line}\ny\n" if line else "")
    with pytest.raises(UsageError, match="line 2" if line else "no keys"):
        read_key_file(tmp_path / "keys")


def far(workload: str, **more: object) -> JobSpec:
    target = Target(
        bucket="b", endpoint_url="https://s3.eu-west-1.amazonaws.com", region="eu-west-1"
    )
    options = {"existing": "data/", "function_region": "us-east-1"}
    return JobSpec(workload=workload, target=target, options=options, number=2, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("workload", ["write", "mixed", "parquet"])
def test_a_job_with_a_size_creates_objects(workload: str) -> None:
    mix = (("get", 1.0),) if workload == "mixed" else ()
    of = far(workload, size=1 << 20, objects=2, load=Load(mix=mix))
    with pytest.raises(UsageError, match=r"does not apply|only read"):
        check(of, ())


def test_a_mix_without_a_size_changes_nothing() -> None:
    for kind in ("put", "delete", "copy"):
        with pytest.raises(UsageError, match="`size` is missing"):
            far("mixed", load=Load(mix=(("get", 1), (kind, 1))))


def test_the_report_counts_what_is_left_out(tmp_path: Path) -> None:
    options = {"existing": "data/", "cold_objects": 1200, "unread_objects": 1}
    of = replace(job(workload="read", number=1), size=None, options=options)
    summary = summarize(saved(tmp_path / "r", [outcome(record(0, []))], of=of))
    row = dict(rows(summary))["existing"]
    assert row.endswith("left out: 1,200 in cold storage, 1 empty or with odd keys")
    plain = replace(of, options={"existing": "data/"})
    summary = summarize(saved(tmp_path / "p", [outcome(record(0, []))], of=plain))
    assert dict(rows(summary))["existing"].endswith("read unverified")
