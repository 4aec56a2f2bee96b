"""The Python API: its public names, their help, and its errors."""

import inspect
import pydoc
import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import pytest

import serverless_bench as sbench
from docs.make_reference import documented, entries
from serverless_bench.base.errors import SbenchError
from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.rundir.run import load_run
from tests.data import runs
from tests.house.members import uses
from tests.tables import each_row

NAMES = [name for name in sbench.__all__ if name != "__version__"]
LOADS = [name for name in NAMES if name.endswith("Load") and name != "Load"]
SPECIFICATIONS = [*LOADS, "JobSpec", "Load", "Target", "Transfer"]
HERE = Target(bucket="b", endpoint_url="http://127.0.0.1:1")


def test_completion_only_shows_the_public_names() -> None:
    assert dir(sbench) == sorted(sbench.__all__)


@each_row("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>> " in documented(name).sections["Examples"]


@each_row("name", NAMES)
def test_help_shows_every_public_name(name: str) -> None:
    assert name in pydoc.plain(pydoc.render_doc(getattr(sbench, name)))


def test_a_read_without_keys_is_refused(tmp_path: Path) -> None:
    reading = JobSpec(workload="read", target=HERE, number=4)
    with pytest.raises(SbenchError, match="a read without keys reads nothing"):
        sbench.run_job(reading, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@each_row("name", SPECIFICATIONS)
def test_help_describes_every_field(name: str) -> None:
    text = dict(entries(documented(name).sections["Parameters"]))
    common = {field.name for field in fields(Load)} if name in LOADS else ()
    named = [field.name for field in fields(getattr(sbench, name)) if field.name not in common]
    assert list(text) == named
    assert all(text.values())


@each_row("name", [name for name in NAMES if name.islower()])
def test_help_describes_every_parameter(name: str) -> None:
    sections = documented(name).sections
    text = ", ".join(names for names, _ in entries(sections.get("Parameters", "")))
    found = {word.lstrip("*") for word in re.split(r", ", text) if word}
    assert found == set(inspect.signature(getattr(sbench, name)).parameters)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "workload": (lambda: sbench.plan(job(workload="wirte")), "unknown workload 'wirte'"),
    "client": (
        lambda: sbench.plan(job(target=Target(bucket="b", client="bto3"))),
        "unknown client 'bto3'",
    ),
    "executor": (lambda: sbench.plan(job(executor="lcoal")), "unknown executor 'lcoal'"),
    "target": (lambda: job(target="b"), "`target` must be a Target, got 'b'"),
    "size": (
        lambda: job(size=1.5e6),
        "`size` must be a whole number, got 1500000.0",
    ),
    "no size": (lambda: job(size=None), "`size` is missing: a write creates objects"),
    "number": (
        lambda: job(number="4"),
        "`number` must be a whole number, got '4'",
    ),
    "true": (lambda: job(number=True), "`number` must be a whole number, got True"),
    "verify": (
        lambda: Transfer(verify="ful"),  # type: ignore[arg-type]
        "`verify` must be one of full, sample, none, got 'ful'",
    ),
    "mix": (
        lambda: Load(mix="get"),  # type: ignore[arg-type]
        "`mix` must be a list of values, got 'get'",
    ),
}


def job(**changed: object) -> JobSpec:
    settings = {"workload": "write", "target": HERE, "number": 1, "size": 1000}
    return JobSpec(**{**settings, **changed})  # type: ignore[arg-type]


@uses("feature cost")
@each_row("name", WRONG)
def test_mistakes_are_reported_when_a_job_is_made_or_planned(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(SbenchError, match=f"^{re.escape(message)}$"):
        make()


def test_texts_and_lists_are_converted_to_the_fields_types() -> None:
    transfer = Transfer(verify="sample")  # type: ignore[arg-type]
    assert transfer.verify.name == "SAMPLE"
    load = Load(mix=[["get", 1]])  # type: ignore[arg-type]
    assert load.mix == (("get", 1.0),)


def test_a_saved_run_is_read_with_any_plugins(tmp_path: Path) -> None:
    of = DescribedJob(
        workload="gone", executor="gone", target=Target(bucket="b", client="gone"), number=1
    )
    run = runs.saved(tmp_path / "run", [runs.outcome(runs.record(0, [runs.operation()]))], of=of)
    assert load_run(run.path).job == of
    assert replace(load_run(run.path).job, seed=1).workload == "gone"
    with pytest.raises(SbenchError, match="unknown workload 'gone'"):
        sbench.run_job(of, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_summary_prints_as_the_command_and_shows_as_a_table(tmp_path: Path) -> None:
    run = runs.saved(tmp_path / "run", [runs.outcome(runs.record(0, [runs.operation()]))])
    summary = sbench.summarize(run)
    assert str(summary).startswith("write: 1 of 1 functions ok")
    assert "throughput" in str(summary)
    shown = summary._repr_html_()
    assert shown.count("<table>") == shown.count("</table>") >= 1
    assert "<td" in shown
    assert sbench.render(summary, "json").startswith('{"report_schema"')
    with pytest.raises(SbenchError, match="unknown reporter 'nope'"):
        sbench.render(summary, "nope")
    assert repr(run) == f"<Run {run.path}: write, 1 functions, 1 operations>"
    assert repr(sbench.timeline(run)).startswith("<Timeline: ")
