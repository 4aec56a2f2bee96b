"""Functions of workloads: their settings, their help and their errors."""

import inspect
import pydoc
from collections.abc import Callable
from math import isnan
from pathlib import Path
from typing import Any, cast

import pytest

import serverless_bench as sbench
from serverless_bench.features.python.jobs import job_function
from serverless_bench.job.settings import setting_names
from serverless_bench.job.workload import WORKLOADS
from tests.data import runs
from tests.house.members import uses
from tests.tables import each_row

WRONG: dict[str, tuple[Callable[[], object], str, str]] = {
    "name": (
        lambda: sbench.write(sizee="1MiB"),
        "the workload write has no setting 'sizee'",
        "did you mean size?",
    ),
    "no name": (
        lambda: sbench.write(8),
        "sbench.write takes its settings by name",
        "sbench.write(number=8)",
    ),
    "size": (
        lambda: sbench.write(size="16 miles"),
        "`size`: '16 miles' is not a size",
        "write whole bytes, at least 1, or a number and a unit: 1000, 64MiB or 2GB",
    ),
    "client": (
        lambda: sbench.write(client="bto3"),
        "unknown client 'bto3'",
        "did you mean boto3?",
    ),
    "no objects": (
        sbench.read,
        "no objects to read",
        "sbench.read(..., source=written), with the run that wrote them, or `key_file`",
    ),
    "no run": (
        lambda: sbench.read("nowhere"),
        "there is no run 'nowhere': neither a directory nor a name in sbench-runs",
        "sbench ls lists the runs; sbench write creates a run",
    ),
    "twice": (
        lambda: sbench.read("here", source="there"),
        "`source` is given twice",
        "once is enough",
    ),
    "no plot": (sbench.plot, "no run to plot", "sbench.plot(write, read)"),
    "field": (
        lambda: sbench.Load(thread=4),  # type: ignore[call-arg]
        "`thread` is no field of Load",
        "did you mean threads?",
    ),
    "missing field": (
        cast("Any", sbench.Target),
        "`bucket` is missing: Target needs it",
        "",
    ),
    "text": (
        lambda: sbench.JobSpec(
            workload="write",
            target=sbench.Target(bucket="b"),
            number=1,
            size="4MiB",  # type: ignore[arg-type]
        ),
        "`size` must be a whole number, got '4MiB'",
        "give a number; sbench.write and the like take texts such as 16MiB",
    ),
}


@each_row("name", WRONG)
def test_a_mistake_is_one_error_with_a_hint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make, message, hint = WRONG[name]
    with pytest.raises(sbench.SbenchError) as caught:
        make()
    assert (str(caught.value), caught.value.hint) == (message, hint)
    assert [*tmp_path.iterdir()] == []


@uses("workload array", "workload custom")
def test_an_argument_that_is_missing_is_named_with_an_example() -> None:
    with pytest.raises(sbench.SbenchError, match="`code` is missing") as caught:
        sbench.custom(number=2)
    assert caught.value.hint == "sbench.custom(lambda context: None, number=2)"
    with pytest.raises(sbench.SbenchError, match="no objects to read"):
        sbench.array("read")


def test_an_unknown_workload_is_no_name() -> None:
    with pytest.raises(AttributeError) as caught:
        sbench.wirte  # noqa: B018
    # With these two, Python suggests a similar name.
    assert (caught.value.name, caught.value.obj) == ("wirte", sbench)


@each_row("workload", sorted(WORKLOADS))
def test_a_function_has_every_setting_of_its_workload(workload: str) -> None:
    function = getattr(sbench, workload)
    assert function is job_function(workload)
    found = inspect.signature(function)
    assert {*setting_names(workload)} <= found.parameters.keys()
    assert found.parameters["progress"].default is True
    assert found.return_annotation is sbench.Result
    text = pydoc.plain(pydoc.render_doc(function))
    assert f"\n{workload}(" in text
    assert "\n    number\n        Number of functions." in text


def test_settings_have_their_usual_values() -> None:
    usual = {n: p.default for n, p in inspect.signature(sbench.write).parameters.items()}
    assert (usual["block_size"], usual["verify"], usual["mb"]) == ("1MiB", "full", None)
    assert "    Number of functions. Default: 16." in str(sbench.write.__doc__)


def test_figures_that_a_run_lacks_are_no_numbers(tmp_path: Path) -> None:
    failed = runs.outcome(runs.lost(0, "gone"))
    result = sbench.Result(runs.saved(tmp_path / "run", [failed]))
    assert isnan(result.throughput)
    assert {str(value) for value in result.latency} == {"nan"}
    assert result.bottleneck is None
    assert len(result.operations) == 0
    assert "<table>" in result._repr_html_()


def test_a_notebook_shows_table_and_plot_of_figures_that_are_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = sbench.Result(
        runs.saved(tmp_path / "run", [runs.outcome(runs.record(0, [runs.operation()]))])
    )
    assert result.summary.ok == 1
    monkeypatch.setattr("serverless_bench.features.plot.picture.summarize", None)
    assert "<table>" in result._repr_html_()
    assert "data:image/png" in result._repr_html_()
