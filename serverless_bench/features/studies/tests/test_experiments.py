"""The engine of studies: files, cells, figures, verdicts, tables. No job is run."""

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from serverless_bench.base.errors import ArchiveError, PluginError, SbenchError, UsageError
from serverless_bench.features.compare.ratio import MOST_ROUNDS, found_share, ratio_of_logs
from serverless_bench.features.compare.verdict import THRESHOLD
from serverless_bench.features.studies import DESIGNS, SCALES, names
from serverless_bench.features.studies.cells import Cell, make_cells, published_row
from serverless_bench.features.studies.comparisons import (
    MATTERS,
    CellComparison,
    Decision,
    Judged,
    power_for,
)
from serverless_bench.features.studies.definition import Settings, Study
from serverless_bench.features.studies.hypotheses import judge
from serverless_bench.features.studies.knee import Knee, knee_test
from serverless_bench.features.studies.loading import load_study, parse
from serverless_bench.features.studies.observations import (
    CellRun,
    CellRuns,
    failure_path,
    figures,
    median_of,
    observe,
    operation_rates,
    run_path,
)
from serverless_bench.features.studies.plan import FILE, Plan, load_plan, save_plan
from serverless_bench.features.studies.plot import save_plot
from serverless_bench.features.studies.report import (
    Report,
    make_report,
    show,
    show_reference,
    to_json,
)
from serverless_bench.features.studies.runner import on_cpus
from serverless_bench.features.studies.settings import check_cell, job_of, merged, prepared_by
from serverless_bench.features.studies.table import Writer, grid, left_over, table_rows
from serverless_bench.job.target import Target
from tests.data import runs
from tests.data.loads import array_in
from tests.data.runs import S
from tests.house.members import uses

TARGET = Target(bucket="b", endpoint_url="http://store")

HEAD = """
title = "Threads"
question = "Do threads help?"
null_hypothesis = "They do not."
{top}
[seed]
source = "a study"
date = 2026-04-25
[small]
min_bytes = "1kB"
settings = {{ objects = 3 }}
[paper]
min_bytes = "1GB"
settings = {{ objects = 3000 }}
[[axes]]
name = "threads"
small = [1, 2, 4]
paper = [8, 16, 32]
paired = true
[[axes]]
name = "client"
values = ["wire", "boto3"]
[[metrics]]
name = "rate"
header = "MB/s"
of = "throughput_bytes_per_s"
unit = "MB/s"
digits = 1
"""

THREADS = """
[[metrics]]
name = "speedup"
of = "throughput_bytes_per_s"
relative = "speedup"
to = "threads"
[[metrics]]
name = "efficiency"
of = "throughput_bytes_per_s"
relative = "efficiency"
to = "threads"
unit = "%"
[[hypotheses]]
id = "H0"
text = "Threads bring nothing."
test = "{test}"
metric = "rate"
along = "threads"
{more}
[[published]]
at = {{ threads = 8, client = "wire" }}
rate = 100
[[published]]
at = {{ threads = 16, client = "wire" }}
rate = [150, 160]
note = "by eye"
[[published]]
at = {{ threads = 99, client = "wire" }}
rate = "~200"
[plot]
x = "threads"
y = "rate"
series = "client"
"""


def made(text: str = "", *, top: str = "") -> Study:
    return parse(HEAD.format(top=top) + text, "made")


def threads(test: str = "no-gain", more: str = "") -> Study:
    return made(THREADS.format(test=test, more=more))


def observed(
    study: Study,
    rates: Mapping[Any, Sequence[float]],
    scale: str = "small",
) -> list[CellRuns]:
    """Return every cell with runs of these rates, by its values."""
    return [
        CellRuns(
            cell=cell,
            planned=6,
            results=tuple(
                CellRun(
                    path=Path("r"),
                    figures={"throughput_bytes_per_s": rate, "bytes": 5000, "elapsed_s": 5},
                )
                for rate in rates.get(tuple(cell.at.values()), ())
            ),
            min_bytes=1000,
        )
        for cell in make_cells(study, scale)
    ]


def plan_of(study: Study) -> Plan:
    return Plan(study=study, scale="small", repeats=6)


def about(rate: float, *, spread: float = 0.005) -> list[float]:
    return [rate * (1 + spread * n) for n in (-2, -1, 0, 0, 1, 2)]


def outcomes(judged: Judged) -> dict[tuple[object, ...], Decision]:
    return {
        (*found.group.values(), *(found.segment or ())): found.outcome
        for found in judged.judgements
    }


# Files.


@uses("workload read")
@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("scale", SCALES)
def test_every_study_has_cells_by_its_design_and_a_reference(name: str, scale: str) -> None:
    study = load_study(name)
    cells = make_cells(study, scale)
    assert len({cell.slug for cell in cells}) == len(cells)
    assert any(not cell.skipped or cell.not_here for cell in cells)
    out = io.StringIO()
    show_reference(study, out, "text")
    assert study.null_hypothesis in out.getvalue()


@uses("workload read")
def test_small_studies_are_jobs() -> None:
    for name in names():
        study = load_study(name)
        Plan(study=study, scale="small", repeats=5).check()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bogus = 1", "contains unknown field 'bogus'"),
        ("[prepare]\nbogus = 1", "no setting 'bogus'"),
        ("[[axes]]\nname = 'threads'\nvalues = [1]", "'threads' is defined twice"),
        ("[[axes]]\nname = 'colour'\nvalues = ['red']", "'red' is not a level"),
        ("[[axes]]\nname = 'objects'", "has no values for small"),
        ("[[metrics]]\nname = 'x'", "missing required field 'of'"),
        ("[[metrics]]\nname = 'x'\nof = 'y'\nunit = 'furlong'", "unit: there is no 'furlong'"),
        ("[[metrics]]\nname = 'x'\nof = 'y'\nrelative = 'speedup'\nto = 'z'", "no 'z'"),
        (
            "[[published]]\nrate = true",
            "published 1: rate must be a number or text or a list of 2 numbers, got True",
        ),
        (
            "[[published]]\nrate = [1]",
            "rate must be a number or text or a list of 2 numbers, got [1]",
        ),
        ("[[published]]\nspeed = 3", "no 'speed'"),
        ("[[published]]\nat = {colour = 1}", "no 'colour'"),
        ("[[published]]\nat = {threads = [1]}", "published 1: threads must be"),
        ("[plot]\nkind = 'pie'", "plot: kind must be one of lines, bars"),
        ("[[cells]]\nname = 'a'\nat = {bogus = 1}", "no setting 'bogus'"),
        ("title", "is not TOML"),
        ("[prepare.mix]\nget = 2020-01-01", "prepare: mix: get must be"),
        ("[[controls]]\nname = 'c'\nat = 4", "controls 1: at must be a table, got 4"),
        ("[[metrics]]\nname = 'x'\nof = 'y'\nfor_bytes = 'much'", "metrics 2: for_bytes: 'much'"),
        (
            "[[metrics]]\nname = 'x'\nof = 'y'\ndigits = true",
            "digits must be a whole number, got True",
        ),
        (
            "[[metrics]]\nname = 'x'\nof = 'y'\ndigits = -1",
            "digits must be at least 0, got -1",
        ),
        ("[plot]\nlog = 1", "plot: log must be true or false, got 1"),
        (
            (
                "[[hypotheses]]\nid='h'\ntext='t'\ntest='same'\nmetric='rate'\nalong='threads'\n"
                "segments='some'"
            ),
            "segments must be one of neighbours, first or a list of values, got 'some'",
        ),
        (
            (
                "[[hypotheses]]\nid='h'\ntext='t'\ntest='same'\nmetric='rate'\nalong='threads'\n"
                "segments=[[1]]"
            ),
            "hypotheses 1: segments must be one of neighbours, first or a list",
        ),
    ],
)
def test_invalid_files_are_one_line(text: str, says: str) -> None:
    with pytest.raises(UsageError, match="study made") as caught:
        made(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_the_user_is_found_by_its_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(HEAD.format(top=""), encoding="utf-8")
    assert load_study(str(tmp_path / "mine.toml")).name == "mine"
    with pytest.raises(UsageError, match="cannot read"):
        load_study(str(tmp_path / "none.toml"))
    with pytest.raises(UsageError, match="no study 'none'") as caught:
        load_study("none")
    assert caught.value.hint == "sbench study ls shows the names"


# Cells.


def test_designs_make_all_cells_or_one_change_at_a_time() -> None:
    study = made("[[cells]]\nname = 'both'\nat = {threads = 4, client = 'boto3', retries = 0}")
    full, one, listed = (make_cells(study, "small", design=design) for design in DESIGNS)
    assert [tuple(cell.at.values()) for cell in full] == [
        (t, c) for t in (1, 2, 4) for c in ("wire", "boto3")
    ]
    assert [tuple(cell.at.values()) for cell in one] == [
        (1, "wire"),
        (2, "wire"),
        (4, "wire"),
        (1, "boto3"),
    ]
    (cell,) = listed
    assert cell.name == "both"
    assert cell.settings == {"objects": 3, "threads": 4, "client": "boto3", "retries": 0}


def test_a_level_stands_for_several_settings_and_may_differ_by_scale() -> None:
    study = made(
        "[[axes]]\nname = 'engine'\nvalues = ['off', 'on']\n[axes.levels.off]\n"
        "[axes.levels.on]\nconnections = 8\n[axes.levels.on.small]\npart_size = '5MiB'\n"
        "[axes.levels.on.paper]\npart_size = '8MiB'"
    )
    for scale, part in (("small", "5MiB"), ("paper", "8MiB")):
        off, on = make_cells(study, scale)[:2]
        assert "connections" not in off.settings
        assert (on.settings["connections"], on.settings["part_size"]) == (8, part)
    job = job_of(make_cells(study, "small")[1].settings, TARGET, name="n")
    assert job.transfer.part_size == 5 << 20


def test_only_some_cells_and_other_settings() -> None:
    study = made()
    (cell,) = make_cells(
        study, "small", only={"threads": ["2"], "client": ["wire"]}, changes={"objects": 9}
    )
    assert cell.settings["objects"] == 9
    # Its directory has the number that it has among all.
    assert cell.slug.startswith("03-")
    for only in ({"threads": ["3"]}, {"colour": ["red"]}):
        with pytest.raises(UsageError, match="--only"):
            make_cells(study, "small", only=only)
    with pytest.raises(UsageError, match="--set"):
        make_cells(study, "small", changes={"bogus": 1})


@uses("executor lambda", "workload read")
def test_impossible_cells_have_a_reason() -> None:
    study = made(
        "[[unsupported]]\nat = {client = 'boto3', threads = 4}\nreason = 'no such thing'\n"
        "[[controls]]\nname = 'many'\nat = {cpus = 4096}"
    )
    cells = {cell.label: cell for cell in make_cells(study, "small")}
    assert cells["threads=4 client=boto3"].skipped == "no such thing"
    assert not cells["threads=4 client=boto3"].not_here
    assert cells["many"].not_here
    assert "not identifiable here" in cells["many"].skipped
    order = list(Plan(study=study, scale="small", repeats=2).order())
    assert len(order) == 2 * 5
    far = make_cells(study, "small", changes={"executor": "lambda"})[-1]
    assert "which lambda does not have" in far.skipped


def test_each_round_has_every_cell_once_in_an_order_of_its_own() -> None:
    plan = Plan(study=made(), scale="small", repeats=6)
    order = list(plan.order())
    rounds = [[c.slug for c, r in order if r == repeat] for repeat in range(1, 7)]
    assert all(sorted(one) == sorted(rounds[0]) for one in rounds)
    assert len({tuple(one) for one in rounds}) > 1
    assert [r for _, r in order] == sorted(r for _, r in order)
    assert order == list(plan.order())
    assert order != list(replace(plan, seed=1).order())


def test_published_rows_stand_beside_the_cells_that_they_are_of() -> None:
    study = threads()
    small = {tuple(c.at.values()): published_row(study, c) for c in make_cells(study, "small")}
    row = small[1, "wire"]
    assert row is not None
    assert row.values == {"rate": 100.0}
    assert small[1, "boto3"] is None
    assert small[4, "wire"] is None


# Jobs.


@uses("workload array")
def test_settings_become_the_fields_of_a_job() -> None:
    settings: Settings = {
        "workload": "array",
        "operation": "write",
        "total_objects": 10,
        "number": 2,
        "part_size": "8MiB",
        "min_split_size": "none",
        "timeout": 5,
        "client_option.payload_signing": "sha256",
        "library": "zarr",
        "shape": (64, 64),
        "chunks": (32, 64),
        "codec": "none",
        "library_option.async_concurrency": 3,
        "cpus": 1,
        "store": "loopback",
        "serve.latency": "fixed:5ms",
    }
    job = job_of(settings, TARGET, name="n")
    assert (job.objects, job.concurrency, job.workload) == (5, 2, "array")
    assert job.transfer.part_size == 8 << 20
    assert (job.transfer.min_split_size, job.transfer.timeout) == (None, 5)
    assert job.target == replace(TARGET, client_option=(("payload_signing", "sha256"),))
    array = array_in(job.load)
    assert array is not None
    assert (array.codec, array.library_option) == (
        "none",
        (("async_concurrency", "3"),),
    )
    assert check_cell(settings).new_objects() == (10, 64 * 64 * 4)


@uses("workload mixed")
def test_a_mix_is_a_table_and_names_are_those_of_fields_or_settings() -> None:
    one: Settings = {"workload": "mixed", "mix.get": 3, "operations": 5, "size": "4KiB"}
    other: Settings = {"workload": "mixed", "mix": "get=3", "operations": 5, "size": "4KiB"}
    assert job_of(one, TARGET, name="n") == job_of(other, TARGET, name="n")
    assert job_of(one, TARGET, name="n").load.mix == (("get", 3.0),)
    changed = merged(one, {"size": "8KiB"})
    assert changed["size"] == "8KiB"


@uses("workload array")
@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"threads": "many"}, "threads"),
        ({"threads": 0}, "threads"),
        ({"duration": -1}, "duration"),
        ({"key": "x"}, "key"),
        ({"workload": "array", "operation": "write", "library": "x"}, ""),
    ],
)
def test_settings_that_make_no_job_are_refused(settings: Settings, field: str) -> None:
    with pytest.raises(SbenchError) as caught:
        job_of(settings, TARGET, name="n")
    assert getattr(caught.value, "field", "") == field


def test_objects_to_read_are_written_by_their_cells_settings() -> None:
    cell: Settings = {"workload": "read", "size": "1MiB", "threads": 8, "client": "boto3"}
    assert prepared_by({"objects": 5}, cell) == {
        "workload": "write",
        "size": "1MiB",
        "objects": 5,
    }


def test_cpus_are_taken_and_given_back() -> None:
    import os

    before = os.sched_getaffinity(0)
    with on_cpus(1):
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before
    with pytest.raises(UsageError, match="cpus is 4096"), on_cpus(4096):
        pass


# Figures.


def test_figures_exclude_the_first_iteration_on_request(tmp_path: Path) -> None:
    operations = [
        runs.operation(0, start_ns=0, end_ns=4 * S, size=1000),
        runs.operation(1, start_ns=4 * S, end_ns=5 * S, size=1000),
        runs.operation(2, start_ns=5 * S, end_ns=6 * S, size=1000),
    ]
    run = runs.saved(tmp_path / "r", [runs.outcome(runs.record(0, operations))])
    found = figures(run)
    assert found["first_bytes_per_s"] == 250
    assert found["later_bytes_per_s"] == 1000
    assert found["mean_op_bytes_per_s"] == pytest.approx(750)
    assert list(operation_rates(run)) == [250, 1000, 1000]
    assert found["ops_per_s"] == 0.5
    assert (found["elapsed_s"], found["user_cpu_s"], found["sys_cpu_s"]) == (6, 0.25, 0.25)
    assert found["cpu_share"] == pytest.approx(0.5 / 6)
    assert found["start_spread_s"] == 0
    assert found["bytes"] == 3000


def test_the_first_operation_is_the_first_of_each_function(tmp_path: Path) -> None:
    records = [
        runs.record(
            index,
            [
                runs.operation(0, start_ns=index * S, end_ns=(index + 2) * S),
                runs.operation(1, start_ns=(index + 2) * S, end_ns=(index + 3) * S),
            ],
        )
        for index in range(2)
    ]
    found = figures(runs.saved(tmp_path / "r", [runs.outcome(one) for one in records]))
    assert found["first_bytes_per_s"] == pytest.approx(2000 / 3)
    assert found["later_bytes_per_s"] == pytest.approx(1000)
    assert found["start_spread_s"] == 1


def test_a_run_that_lost_functions_has_no_figures(tmp_path: Path) -> None:
    run = runs.saved(tmp_path / "r", [runs.outcome(runs.lost(0))])
    with pytest.raises(UsageError, match="1 function lost"):
        figures(run)


# Runs of cells.


@given(st.lists(st.floats(1, 1e9), min_size=1, max_size=30))
def test_a_median_is_in_its_interval(values: list[float]) -> None:
    found = median_of(values)
    assert found is not None
    assert found.low <= found.at <= found.high
    assert 0 <= found.confidence < 1


def test_intervals_of_medians_hold_them_as_often_as_they_say() -> None:
    assert median_of([]) is None
    five, twenty = (median_of(list(range(n))) for n in (5, 20))
    assert five is not None
    assert twenty is not None
    assert (five.low, five.high, five.confidence) == (0, 4, 1 - 2 / 32)
    # Hollander, Wolfe and Chicken 2014, table A.2: the 6th and the 15th of 20, 95.86 %.
    assert (twenty.low, twenty.high) == (5, 14)
    assert twenty.confidence == pytest.approx(0.9586, abs=1e-4)


def test_failed_and_missing_runs_are_never_left_out(tmp_path: Path) -> None:
    cell = make_cells(made(), "small")[0]
    good = [runs.outcome(runs.record(0, [runs.operation()]))]
    runs.saved(run_path(tmp_path, cell, 1), good)
    runs.saved(run_path(tmp_path, cell, 2), [runs.outcome(runs.lost(0, "killed"))])
    failure = failure_path(run_path(tmp_path, cell, 3))
    failure.write_text("StoreError: gone\n", encoding="utf-8")
    (found,) = observe(tmp_path, [cell], repeats=4, min_bytes=1001)
    assert (found.counted, found.planned) == (1, 4)
    problems = "; ".join(found.problems())
    for part in ("1 function lost", "killed", "StoreError: gone", "not run", "fewer bytes"):
        assert part in problems


def test_a_skipped_cell_has_a_reason_and_no_runs(tmp_path: Path) -> None:
    cell = replace(make_cells(made(), "small")[0], skipped="no such thing")
    (found,) = observe(tmp_path, [cell], repeats=4, min_bytes=1)
    assert found.results == ()
    assert "no such thing" in found.why_empty("bytes")


# Verdicts.


@pytest.mark.parametrize(
    ("test", "second", "outcome"),
    [
        ("no-gain", 150, Decision.REJECTED),
        ("no-gain", 100.1, Decision.CONFIRMED),
        ("no-gain", 80, Decision.CONFIRMED),
        ("same", 150, Decision.REJECTED),
        ("same", 80, Decision.REJECTED),
        ("same", 100.1, Decision.CONFIRMED),
        ("faster", 150, Decision.CONFIRMED),
        ("faster", 100.1, Decision.REJECTED),
        ("slower", 80, Decision.CONFIRMED),
        ("slower", 150, Decision.REJECTED),
        ("linear", 200, Decision.CONFIRMED),
        ("linear", 230, Decision.CONFIRMED),
        ("linear", 150, Decision.REJECTED),
    ],
)
def test_each_test_of_a_segment(test: str, second: float, outcome: Decision) -> None:
    study = threads(test)
    rates = {(1, "wire"): about(100), (2, "wire"): about(second), (4, "wire"): about(1000)}
    (found,) = judge(study, "small", observed(study, rates)).judged
    assert outcomes(found)["wire", 1, 2] is outcome
    # The other client was not measured.
    assert outcomes(found)["boto3", 1, 2] is Decision.NOT_IDENTIFIABLE


@pytest.mark.parametrize(
    ("at_two", "at_four", "outcome", "why"),
    [
        (100.1, 99.9, Decision.CONFIRMED, "flat"),
        (200.1, 399.9, Decision.REJECTED, "in proportion"),
        (150, 200, Decision.REJECTED, "neither"),
        (100, 400, Decision.REJECTED, "neither"),
    ],
)
def test_a_line_follows_a_law(at_two: float, at_four: float, outcome: Decision, why: str) -> None:
    study = threads("law", "expect = 'flat'")
    rates = {(value, "wire"): about(rate) for value, rate in ((1, 100), (2, at_two), (4, at_four))}
    (judged,) = judge(study, "small", observed(study, rates)).judged
    wire, boto3 = judged.judgements
    assert (wire.outcome, wire.why) == (outcome, f"the law: {why}")
    # Its cells have no runs.
    assert boto3.outcome is Decision.NOT_IDENTIFIABLE


def test_a_law_needs_runs_that_tell() -> None:
    study = threads("law", "expect = 'flat'")
    rates = {(value, "wire"): about(100, spread=value / 9) for value in (1, 2, 4)}
    (judged,) = judge(study, "small", observed(study, rates)).judged
    assert judged.judgements[0].outcome is Decision.NOT_IDENTIFIABLE
    assert "too much spread" in judged.judgements[0].why


def test_too_much_spread_and_too_few_runs_do_not_decide() -> None:
    study = threads("same")
    rates = {
        (1, "wire"): about(100, spread=0.2),
        # The reverse case: differences within rounds remain in the ratio.
        (2, "wire"): about(150, spread=-0.2),
        (4, "wire"): [1000.0, 1001.0],
    }
    (found,) = judge(study, "small", observed(study, rates)).judged
    wire = [one for one in found.judgements if one.group == {"client": "wire"}]
    assert [one.outcome for one in wire] == [Decision.NOT_IDENTIFIABLE] * 2
    assert "too much spread" in wire[0].why
    assert "6 rounds with both" in wire[1].why
    # The published x1.55, the effect that such a study could find, and the number of runs
    # needed.
    power = wire[0].power
    assert power is not None
    assert power.published == pytest.approx(1.55)
    assert power.found[0] <= power.found[1] < 0.2
    assert power.rounds[0] is None or power.rounds[0] > 50
    assert power.run_s == 5


def test_the_runs_that_are_advised_find_it_as_often_as_said() -> None:
    """Six rounds know a spread of 0.2 badly; the larger number is for its upper 80 % limit."""
    study, rng, finding = threads("same"), np.random.default_rng(11), []
    first, _, second, *_ = observed(study, {})
    about = {"ratio": MATTERS, "threshold": THRESHOLD}
    for _ in range(60):
        paired = ratio_of_logs(rng.normal(0, 0.2, 6))
        compared = CellComparison(
            metric=study.metric("rate"), first=first, second=second, paired=paired
        )
        power = power_for(study, compared, 8)
        assert power is not None
        few, many = (MOST_ROUNDS if n is None else n for n in power.rounds)
        assert few <= many
        finding.append(found_share(0.2 / many**0.5, many - 1, 8, **about))
    # It is 80 % of pages; with the spread as estimated it was 40 %.
    assert sum(share >= 0.89 for share in finding) >= 42


def test_a_slow_round_cancels_out_of_a_ratio() -> None:
    study = threads("same")
    slow = [1.0, 0.4, 1.1, 0.7, 0.9, 1.2]
    rates = {
        (1, "wire"): [100 * n * e for n, e in zip(slow, (1, 1.01, 1, 0.99, 1, 1), strict=True)],
        (2, "wire"): [130 * n for n in slow],
    }
    (found,) = judge(study, "small", observed(study, rates)).judged
    assert outcomes(found)["wire", 1, 2] is Decision.REJECTED
    judgement = next(one for one in found.judgements if one.segment == (1, 2))
    assert judgement.ratio == pytest.approx(1.3, rel=0.01)


def test_too_few_rounds_have_no_p() -> None:
    study = threads("same")
    rates = {(1, "wire"): [100.0, 101, 99, 100, 102], (2, "wire"): [380.0, 384, 386, 388, 385]}
    (found,) = judge(study, "small", observed(study, rates)).judged
    judgement = next(one for one in found.judgements if one.segment == (1, 2))
    assert judgement.interval is not None
    assert (judgement.outcome, judgement.p) == (Decision.NOT_IDENTIFIABLE, None)
    assert "not enough runs" in judgement.why


def test_questions_are_judged_together_and_each_once() -> None:
    text = THREADS.format(test="same", more="where = {client = 'wire'}")
    again = text[text.index("[[hypotheses]]") : text.index("[[published]]")]
    once, twice = made(text), made(text + again.replace('"H0"', '"H1"'))
    # Differs with a p of about 0.01: significant alone, but not among many comparisons.
    rates = {
        (1, "wire"): [100.0, 101, 99, 100, 102, 100],
        (2, "wire"): [108.0, 118, 103, 119, 108, 102],
        (4, "wire"): [108.0, 118, 103, 119, 108, 102],
    }
    few, same = (judge(one, "small", observed(one, rates)) for one in (once, twice))
    assert (few.among, same.among) == (2, 2)
    first, second = few.judged[0].judgements
    assert first.alone is not None
    assert first.p == pytest.approx(2 * first.alone)
    assert second.outcome is Decision.CONFIRMED
    assert first.outcome is Decision.REJECTED
    many = made(text.replace("where = {client = 'wire'}", "segments = 'first'"))
    alone = {(1, "wire"): rates[1, "wire"], (2, "wire"): rates[2, "wire"]}
    more = {(n, "boto3"): rates[1, "wire"] for n in (1, 2, 4)}
    found = judge(many, "small", observed(many, {**alone, **more})).judged[0].judgements[0]
    assert found.among == 3


def test_less_may_be_better() -> None:
    text = THREADS.format(test="faster", more="").replace('"~200"', "200")
    study = parse((HEAD.format(top="") + text).replace("digits = 1", 'better = "less"'), "made")
    rates = {(1, "wire"): about(100), (2, "wire"): about(50), (4, "wire"): about(100)}
    (found,) = judge(study, "small", observed(study, rates)).judged
    assert outcomes(found)["wire", 1, 2] is Decision.CONFIRMED
    assert outcomes(found)["wire", 2, 4] is Decision.REJECTED


def test_segments_are_given_in_the_values_of_the_paper() -> None:
    study = threads("same", "segments = [[8, 32], [32, 64]]\nwhere = {client = 'wire'}")
    rates = {(1, "wire"): about(100), (4, "wire"): about(100)}
    (found,) = judge(study, "small", observed(study, rates)).judged
    assert outcomes(found) == {
        ("wire", 1, 4): Decision.CONFIRMED,
        ("wire", 4, 64): Decision.NOT_IDENTIFIABLE,
    }
    first = judge(threads("same", "segments = 'first'"), "small", observed(study, rates)).judged
    assert ("wire", 1, 4) in outcomes(first[0])


def test_named_cells_are_compared_by_name_and_controls_are_on_no_line() -> None:
    study = made(
        "[[controls]]\nname = 'a'\nat = {threads = 1, client = 'wire'}\n"
        "[[controls]]\nname = 'b'\nat = {threads = 2, client = 'wire', retries = 0}\n"
        "[[controls]]\nname = 'c'\nat = {threads = 2, client = 'wire', retries = 1}\n"
        "[[hypotheses]]\nid='h'\ntext='t'\ntest='faster'\nmetric='rate'\nalong='cell'\n"
        "segments=[['b', 'c']]\n"
        "[[hypotheses]]\nid='i'\ntext='t'\ntest='faster'\nmetric='rate'\nalong='threads'"
    )
    found = observed(study, {(1, "wire"): about(1), (2, "wire"): about(2)})
    # The control a is the same as a cell of the design, and is not run twice.
    assert [one.cell.name for one in found] == [""] * 6 + ["b", "c"]
    by_name, along = judge(study, "small", found).judged
    assert outcomes(by_name) == {("b", "c"): Decision.REJECTED}
    assert outcomes(along)["wire", 1, 2] is Decision.CONFIRMED
    assert len(along.judgements) == 4


# Knees.


def knee(runs: Sequence[tuple[int, Sequence[float]]], *, more: bool = True) -> Knee:
    rounds = [(value, dict(enumerate(rates, 1))) for value, rates in runs]
    line = knee_test(rounds, more_is_better=more)
    assert line is not None
    return line.knee()


def test_the_knee_is_the_first_value_close_to_the_best() -> None:
    found = knee([(1, about(100)), (2, about(197)), (4, about(200)), (8, about(198))])
    assert (found.at, found.low, found.high) == (2, 2, 2)


def test_an_unsure_knee_has_an_interval() -> None:
    found = knee([(1, about(100)), (2, about(190, spread=-0.05)), (4, about(200))])
    assert (found.low, found.high) == (2, 4)


def test_a_knee_of_a_metric_to_minimize() -> None:
    assert knee([(1, about(2)), (2, about(1))], more=False).at == 2
    assert knee_test([(1, {1: 2.0}), (2, {})]) is None
    assert knee_test([(1, {1: 2.0})]) is None
    assert knee_test([(1, {1: 2.0}), (2, {2: 2.0})]) is None


def test_a_knee_comes_with_the_law_of_its_medians() -> None:
    def rate(n: int) -> float:
        return 100 * n / (1 + 0.02 * (n - 1) + 0.0005 * n * (n - 1))

    for more in (True, False):
        lines = [(n, about(rate(n) if more else 1 / rate(n))) for n in (1, 8, 16, 32, 64)]
        law = knee(lines, more=more).law()
        assert law is not None
        assert (law.contention, law.coherency) == pytest.approx((0.02, 0.0005), rel=0.2)
        assert law.knee == pytest.approx((0.98 / 0.0005) ** 0.5, rel=0.1)
    assert knee(lines[:3]).law() is None


@pytest.mark.parametrize(
    ("expect", "outcome"),
    [(2, Decision.CONFIRMED), (1, Decision.REJECTED), (3, Decision.REJECTED)],
)
def test_a_knee_is_at_the_stated_value(expect: int, outcome: Decision) -> None:
    study = threads("knee", f"expect = {expect}\nwhere = {{client = 'wire'}}")
    rates = {(1, "wire"): about(100), (2, "wire"): about(200), (4, "wire"): about(201)}
    (found,) = judge(study, "small", observed(study, rates)).judged
    assert [one.outcome for one in found.judgements] == [outcome]


@pytest.mark.parametrize(
    ("at_four", "outcome"),
    [(201, Decision.CONFIRMED), (400, Decision.REJECTED)],
)
def test_knees_are_compared_across_an_axis(at_four: float, outcome: Decision) -> None:
    study = threads("knee", "across = 'client'")
    rates = {
        (1, "wire"): about(100),
        (2, "wire"): about(200),
        (4, "wire"): about(201),
        (1, "boto3"): about(10),
        (2, "boto3"): about(200),
        (4, "boto3"): about(at_four),
    }
    (found,) = judge(study, "small", observed(study, rates)).judged
    assert found.judgements[-1].outcome is outcome


# Tables and reports.


def measured_report() -> Report:
    study = threads("linear")
    rates = {
        (1, "wire"): about(100e6, spread=-0.005),
        (2, "wire"): about(150e6),
        (4, "wire"): about(200e6),
        (1, "boto3"): about(50e6),
        (2, "boto3"): [],
    }
    return make_report(plan_of(study), observed(study, rates))


def test_measured_values_are_next_to_published_ones() -> None:
    report = measured_report()
    found = grid(report.study, report.rows)
    assert found.header == (
        "threads", "client", "MB/s", "published MB/s", "speedup", "efficiency (%)", "bottleneck",
        "runs",
    )  # fmt: skip
    rows = {row[:2]: row[2:] for row in found.rows}
    assert rows["1", "wire"] == ("100.0 (99.0 to 101.0)", "100.0", "1", "100", "-", "6")
    assert rows["2", "wire"][1] == "150.0 to 160.0"
    assert rows["2", "wire"][2].startswith("1.5 (")
    assert rows["4", "wire"][3].startswith("50 (")
    assert rows["2", "boto3"] == ("-", "-", "-", "-", "-", "0 of 6")
    rest = left_over(report.study, report.rows)
    assert [row[:3] for row in rest.rows] == [("99", "wire", "~200")]


def test_a_pivot_makes_columns_of_an_axis() -> None:
    study = made(
        "[[metrics]]\nname = 'change'\nof = 'throughput_bytes_per_s'\nrelative = 'change'\n"
        "to = 'client'\nunit = '%'\ndigits = 0\n"
        "[[published]]\nat = {threads = 8, client = 'boto3'}\nrate = 70\nchange = -30",
        top="pivot = 'client'",
    )
    rates = {(1, "wire"): about(100e6), (1, "boto3"): about(50e6, spread=-0.005)}
    found = grid(study, table_rows(study, observed(study, rates)))
    assert found.header == (
        "threads", "wire MB/s", "boto3 MB/s", "published boto3 MB/s", "change (%)",
        "published change (%)", "bottleneck", "runs",
    )  # fmt: skip
    first = found.rows[0]
    assert (first[0], first[3], first[5]) == ("1", "70.0", "-30")
    assert first[4].startswith("-50 (")
    assert found.rows[1][-1] == "0 of 6"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_wide_table_is_parted_between_columns_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    found = grid((report := measured_report()).study, report.rows)
    narrow, wide = Terminal(), io.StringIO()
    for out in (narrow, wide):
        Writer(out, markdown=False).table(found)
    parts = narrow.getvalue().split("\n\n")
    assert len(parts) > 1
    assert max(map(len, narrow.getvalue().splitlines())) <= 60
    bodies = []
    for part in parts:
        assert part.split()[:2] == ["threads", "client"]
        # A long head has several lines.
        bodies.append([line for line in part.splitlines() if line.split()[0].isdigit()])
        assert len(bodies[-1]) == len(found.rows)
    words = sorted(word for row in found.rows for text in row[2:] for word in text.split())
    shown = sorted(word for body in bodies for line in body for word in line.split()[2:])
    assert shown == words
    assert "\n\n" not in wide.getvalue()


def test_prose_is_wrapped_on_a_terminal_and_whole_in_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    narrow, whole = Terminal(), io.StringIO()
    for out in (narrow, whole):
        show(measured_report(), out, "text")
    assert (
        max(map(len, narrow.getvalue().splitlines()))
        <= 72
        < max(map(len, whole.getvalue().splitlines()))
    )
    heads = [text.getvalue().partition("\nthreads")[0].split() for text in (narrow, whole)]
    assert heads[0] == heads[1]


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_a_report_names_confirmed_claims_and_missing_runs(style: str) -> None:
    out = io.StringIO()
    show(measured_report(), out, style)
    text = out.getvalue()
    for part in (
        "null hypothesis: They do not.",
        "a study, 2026-04-25",
        "client=wire: 1 to 2: rejected, x0.75 (",
        "client=wire: knee of rate by threads: 4 (4 to 4)",
        "family-wise error rate 5% (Holm, 2 comparisons)",
        "6 rounds that hold each cell once, runs of 5.0 s",
        "threads=2 client=boto3: no run counts",
        "97% by order statistics",
        "threads=16 client=wire: by eye",
        "at values that were not run",
    ):
        assert part in text
    assert ("| threads | client |" in text) == (style == "markdown")


def test_the_last_lines_are_the_verdicts_and_what_would_decide_them() -> None:
    out = io.StringIO()
    report = measured_report()
    show(report, out, "text")
    *_, last = out.getvalue().splitlines()
    assert last.startswith("verdict: H0: ")
    assert "rejected 2x, not identifiable 2x" in last
    spread = [100.0, 140, 90, 130, 80, 120]
    turned = spread[2:] + spread[:2]
    rates = {(1, "wire"): spread, (2, "wire"): spread[::-1], (4, "wire"): turned}
    noisy = threads("same", "where = {client = 'wire'}\nsegments = 'first'")
    noisy_report = make_report(plan_of(noisy), observed(noisy, rates))
    judgements = noisy_report.verdicts.judged[0].judgements
    needed = max(one.power.rounds[1] or 0 for one in judgements if one.power is not None)
    show(noisy_report, out, "text")
    assert f"; --repeats {needed} would decide" in out.getvalue().splitlines()[-1]


def test_the_json_report_has_everything(tmp_path: Path) -> None:
    report = measured_report()
    out = io.StringIO()
    show(report, out, "json")
    found = json.loads(out.getvalue())
    assert found == json.loads(json.dumps(to_json(report), default=str))
    assert len(found["cells"]) == 6
    assert found["cells"][0]["metrics"]["rate"]["measured"]["at"] == pytest.approx(100)
    assert found["cells"][0]["metrics"]["rate"]["published"] == 100
    assert {one["outcome"] for one in found["hypotheses"][0]["judgements"]} == {
        "rejected",
        "not identifiable",
    }
    assert not found["complete"]
    with pytest.raises(UsageError, match="no format"):
        show(report, out, "html")


def test_one_change_at_a_time_says_which_mattered() -> None:
    study = made(top="design = 'one-factor'")
    rates = {
        (1, "wire"): about(100),
        (2, "wire"): about(101),
        (4, "wire"): about(150),
        (1, "boto3"): about(20),
    }
    report = make_report(plan_of(study), observed(study, rates))
    assert [(one.axis, one.value, one.verdict) for one in report.verdicts.effects] == [
        ("client", "boto3", "slower"),
        ("threads", 4, "faster"),
        ("threads", 2, "same"),
    ]
    out = io.StringIO()
    show(report, out, "text")
    assert "client wire to boto3: slower, x0.2 (" in out.getvalue()
    full = make_report(replace(plan_of(study), design="full"), report.observed)
    assert full.verdicts.effects == ()


@pytest.mark.parametrize("kind", ["lines", "bars"])
def test_a_plot_has_measured_and_published_panels(tmp_path: Path, kind: str) -> None:
    report = measured_report()
    assert report.study.plot is not None
    plot = structs.replace(report.study.plot, kind=kind)
    changed = structs.replace(report.study, plot=plot)
    save_plot(replace(report, study=changed), tmp_path / "p.png")
    assert (tmp_path / "p.png").stat().st_size > 5000
    with pytest.raises(UsageError, match="has no"):
        save_plot(replace(report, study=structs.replace(changed, plot=None)), tmp_path / "p.png")
    with pytest.raises(ArchiveError, match="cannot write"):
        save_plot(replace(report, study=changed), tmp_path / "none" / "p.png")


# Plans.


def test_a_plan_is_kept_and_found_again(tmp_path: Path) -> None:
    plan = Plan(
        study=made(),
        scale="small",
        repeats=7,
        seed=3,
        seconds=2.5,
        only={"client": ["wire"]},
        changes={"objects": 4, "array.shape": (2, 3)},
        target=TARGET,
        functions=("f",),
    )
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / FILE).write_text("mine")
    with pytest.raises(ArchiveError, match=r"theirs exists$"):
        save_plan(plan, tmp_path / "theirs")
    assert (tmp_path / "theirs" / FILE).read_text() == "mine"
    save_plan(plan, tmp_path / "e")
    assert load_plan(tmp_path / "e") == plan
    with pytest.raises(ArchiveError, match=r"/e exists$"):
        save_plan(plan, tmp_path / "e")
    with pytest.raises(ArchiveError, match="not the directory of a study"):
        load_plan(tmp_path)
    state = tmp_path / "e" / "study.json"
    state.write_text(re.sub(r'("repeats": ?)7', r"\g<1>2147483648", state.read_text()))
    with pytest.raises(ArchiveError, match="must be at most 1,000"):
        load_plan(tmp_path / "e")


@uses("workload read")
def test_a_plan_has_the_bytes_of_its_largest_cell_and_preparation() -> None:
    assert plan_of(made("[settings]\nsize = '4KiB'")).check() == 3 * 4096
    assert plan_of(made("[settings]\nstore = 'loopback'")).check() == 0
    reads = made("[settings]\nworkload='read'\nsize='8KiB'\n[prepare]\nobjects=5")
    assert plan_of(reads).check() == 5 * 8192
    # A missing client is a row of the table, a missing executor is not.
    lacking = "[[axes]]\nname = 'c'\nsetting = 'client'\nvalues = ['nope']"
    assert plan_of(made(lacking)).check() == 0
    with pytest.raises(PluginError, match="nope"):
        plan_of(made("[settings]\nexecutor = 'nope'")).check()


def test_cells_are_distinguished() -> None:
    cells: Sequence[Cell] = make_cells(made(), "small")
    assert [cell.slug for cell in cells][:2] == [
        "01-threads-1-client-wire",
        "02-threads-1-client-boto3",
    ]
    assert np.unique([cell.slug for cell in cells]).size == len(cells)


def test_an_oversized_design_is_not_enumerated() -> None:
    study = load_study("s3-client-threads")
    (axis,) = study.axes
    values = {scale: tuple(range(10)) for scale in SCALES}
    axes = tuple(structs.replace(axis, name=f"a{n}", values=values) for n in range(400))
    with pytest.raises(UsageError, match="more than 1000 cells"):
        make_cells(structs.replace(study, axes=axes), "small")
