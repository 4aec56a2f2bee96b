"""When a series deletes the objects of its runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from serverless_bench.base.errors import SbenchError, StoreError
from serverless_bench.driver import clean
from serverless_bench.driver.cleanup import Deleted
from serverless_bench.driver.task import Listener
from serverless_bench.features.compare.runs import JobSeries
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import Run
from tests.data import runs


def test_objects_of_remote_functions_are_deleted_once_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So a series waits for late deliveries once, and not after each run."""
    cleaned, complaints = list[str](), list[SbenchError]()

    def note(run: Run, **_: object) -> clean.Cleaned:
        cleaned.append(run.path.name)
        if run.path.name == "second":
            raise StoreError("it does not answer")
        return clean.Cleaned(deleted=Deleted(failed=[run.path.name]))

    monkeypatch.setattr(clean, "clean", note)
    here = runs.job(number=1)
    remote = replace(here, control=Target(bucket="b"))
    outcomes = [runs.outcome(runs.record(0, [runs.operation()]))]
    for name, job in {"local": here, "first": remote, "second": remote}.items():
        runs.saved(tmp_path / name, outcomes, of=job)
    series = JobSeries(root=tmp_path, listener=Listener(complain=complaints.append))
    with series.keep_store(needed=False):
        for name in ("first", "local", "second"):
            series.delete(tmp_path / name)
        assert cleaned == ["local"]
    assert cleaned == ["local", "second", "first"]
    (complaint,) = complaints
    assert complaint.exit_code == 6
    assert str(complaint).startswith("2 objects could not be deleted")
    assert "it does not answer" in str(complaint)
    series.finish()
    assert len(complaints) == 1
