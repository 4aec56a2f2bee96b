"""A study's verdicts claim no more than its store and machine allow."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.features.plot.picture import Picture
from serverless_bench.features.studies import SCALES, names
from serverless_bench.features.studies.cells import Cell
from serverless_bench.features.studies.loading import load_study
from serverless_bench.features.studies.observations import CellRun, CellRuns
from serverless_bench.features.studies.page import page
from serverless_bench.features.studies.plan import Plan
from serverless_bench.features.studies.plot import picture
from serverless_bench.features.studies.report import Report, make_report, show
from serverless_bench.features.studies.settings import SERVE
from serverless_bench.features.studies.tests.test_pictures import drawn_up
from serverless_bench.job.target import Target
from tests.data.pictures import panels, rows
from tests.house.members import skipped_without

ROUNDS = 8
OF_SHAPED_STORES = {
    "the method distinguishes them (shaped store)",
    "the method finds no difference (shaped store)",
    "not identifiable",
}


def measured(plan: Plan, *, causes: Mapping[str, float], spread: float = 0.01) -> Report:
    """Report runs in which each cell is a fifth faster than the one before it."""
    observed = [
        CellRuns(cell=cell, planned=ROUNDS, results=tuple(_results(plan, number, causes, spread)))
        for number, cell in enumerate(plan.cells())
    ]
    return make_report(plan, observed)


def _results(
    plan: Plan, number: int, causes: Mapping[str, float], spread: float
) -> Iterator[CellRun]:
    own = {metric.of for metric in plan.study.metrics}
    for repeat in range(ROUNDS):
        rate = 1e6 * 1.2**number * (1 + spread * ((repeat * (number + 3)) % 5))
        figures = dict.fromkeys({*own, "bytes", "elapsed_s"}, rate)
        found = {f"bottleneck.functions.{cause}": count for cause, count in causes.items()}
        yield CellRun(path=Path(), figures={**figures, **found})


def as_json(report: Report) -> dict[str, Any]:
    out = StringIO()
    show(report, out, "json")
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def as_text(report: Report) -> str:
    out = StringIO()
    show(report, out, "text")
    return out.getvalue()


def judgements(report: Report) -> list[dict[str, Any]]:
    return [one for claim in as_json(report)["hypotheses"] for one in claim["judgements"]]


def words_of(drawn: Picture) -> str:
    return json.dumps([{**panel, "data": None} for panel in panels(drawn.spec)])


# Shaped stores.


def is_told(cell: Cell) -> bool:
    """Tell by its flags whether the store's behaviour is set; ``check`` does not shape it."""
    flags = [f"serve.{name}" for name in SERVE if name != "check"]
    return any(flag in cell.settings for flag in flags)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("scale", SCALES)
@skipped_without()
def test_no_store_that_was_shaped_is_forgotten(name: str, scale: str) -> None:
    plan = Plan(study=load_study(name), scale=scale, repeats=5)
    for cell in plan.cells():
        assert cell.shaped_store is is_told(cell), cell.label


def names_of_shaped() -> list[str]:
    plans = [Plan(study=load_study(name), scale="small", repeats=5) for name in names()]
    return [plan.study.name for plan in plans if any(map(is_told, plan.cells()))]


@pytest.mark.parametrize("name", names_of_shaped())
def test_a_shaped_store_neither_confirms_nor_rejects(name: str) -> None:
    plan = Plan(study=load_study(name), scale="small", repeats=ROUNDS, processors=64)
    report = measured(plan, causes={"answers": 1})
    found = as_json(report)
    assert found["shaped_store"] is True
    marks = {cell["slug"]: cell["shaped_store"] for cell in found["cells"]}
    assert marks == {cell.slug: is_told(cell) for cell in plan.cells()}
    shaped = [one for one in judgements(report) if one["shaped_store"]]
    assert {one["outcome"] for one in shaped} <= OF_SHAPED_STORES
    assert shaped or not all(marks.values())
    assert "shaped store" in as_text(report)
    assert "shaped store" in page(report)


def test_a_claim_about_express_is_one_about_the_method() -> None:
    plan = Plan(study=load_study("skyrise-latency"), scale="small", repeats=ROUNDS, processors=64)
    text = as_text(measured(plan, causes={"answers": 1}))
    says = "Express is as fast as Standard. the method distinguishes them (shaped store) 4x"
    assert says in text


def test_a_picture_of_a_shaped_store_says_so_in_title_and_legend() -> None:
    drawn = picture(drawn_up("skyrise-latency", "small"))
    panel = next(panels(drawn.spec))
    assert "shaped store" in panel["title"]["text"]
    legend = panel["layer"][0]["encoding"]["color"]["legend"]
    assert legend["title"][-1] == "measured, on a shaped store"
    # If other cells are not shaped, only these cells are marked.
    drawn = picture(drawn_up("sai3-range-engine", "small"))
    marked = [
        row["label"] for row in rows(next(panels(drawn.spec))) if "shaped store" in row["label"]
    ]
    assert len(marked) == 4
    assert all("50 ms" in label or "throttled" in label for label in marked)
    assert "shaped" not in words_of(picture(drawn_up("s3-client-libraries", "small")))


# Machines that are too small.


@pytest.mark.parametrize(
    "name", ["pywren-scaling", "lithops-object-storage", "s3-client-processes"]
)
def test_more_functions_than_cpus_say_nothing_of_scaling(name: str) -> None:
    study = load_study(name)
    along = {"pywren-scaling": "workers", "lithops-object-storage": "functions"}
    for processors, decided in ((2, False), (64, True)):
        plan = Plan(study=study, scale="small", repeats=ROUNDS, processors=processors)
        claims = [
            one
            for claim in as_json(measured(plan, causes={"client": 1}))["hypotheses"]
            for one in claim["judgements"]
            if claim["along"] == along.get(name, "processes")
        ]
        assert claims
        outcomes = sorted({one["outcome"] for one in claims})
        assert (outcomes == ["not identifiable"]) is not decided, outcomes
        for one in claims:
            assert ("and the store another, there are 2" in one["why"]) is not decided, one


def test_a_remote_store_uses_no_local_cpu() -> None:
    plan = Plan(study=load_study("pywren-scaling"), scale="small", repeats=5)
    plan = replace(plan, processors=2)

    def crowded(target: Target | None) -> list[int]:
        cells = replace(plan, target=target).cells()
        return sorted({int(str(cell.at["workers"])) for cell in cells if cell.crowded})

    assert crowded(None) == [2, 4]
    assert crowded(Target(bucket="b", endpoint_url="http://127.0.0.1:9000")) == [2, 4]
    assert crowded(Target(bucket="b", endpoint_url="https://store.example")) == [4]


def test_one_change_that_the_machine_cannot_show_has_no_verdict() -> None:
    study = load_study("tensorstore-s3-tuning")
    plan = Plan(study=study, scale="small", repeats=ROUNDS, processors=2)
    effects = {
        (one["axis"], one["value"]): one
        for one in as_json(measured(plan, causes={"unknown": 1}))["effects"]
    }
    if ("cpu", 2) in effects:
        assert effects["cpu", 2]["verdict"] == "undecided"
        assert "functions take 2 CPUs" in effects["cpu", 2]["why"]


# Bottlenecks of cells.


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("scale", SCALES)
@skipped_without()
def test_every_table_says_what_bounded_its_cells(name: str, scale: str) -> None:
    plan = Plan(study=load_study(name), scale=scale, repeats=ROUNDS, processors=64)
    report = measured(plan, causes={"client": 1, "interpreter_lock": 3, "answers": 3})
    text = as_text(report)
    assert "bottleneck" in text
    assert "GIL" in text or not any(one.counted for one in report.observed)
    assert as_json(report)["cells"][0]["bottlenecks"] == ["answers", "interpreter_lock"]


def causes_of(runs: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    (cell, *_) = Plan(study=load_study("pywren-2016"), scale="small", repeats=len(runs)).cells()
    results = tuple(CellRun(path=Path(), figures=figures) for figures in runs)
    return CellRuns(cell=cell, planned=len(runs), results=results).bottlenecks


def test_a_cells_bottleneck_is_the_most_frequent_one_of_its_runs() -> None:
    client, store = {"bottleneck.functions.client": 4.0}, {"bottleneck.functions.answers": 4.0}
    assert causes_of([client, client, store]) == ("client",)
    assert causes_of([client, store]) == ("answers", "client")
    assert causes_of([{"bytes": 1.0}]) == ()
    slots = {f"bottleneck.slots.{name}": 0.2 for name in ("launch", "cold_start", "delivery")}
    assert causes_of([{**client, **slots, "bottleneck.slots.unfilled": 0.0}]) == ("idle",)


def test_cells_that_all_waited_for_the_store_are_not_called_too_noisy() -> None:
    plan = Plan(
        study=load_study("s3-client-threads"),
        scale="small",
        repeats=ROUNDS,
        processors=64,
    )
    for causes, says, not_said in (
        ({"answers": 1}, "the store is the bottleneck of all cells", "too much spread"),
        ({"client": 1}, "too much spread", "the store is the bottleneck of all cells"),
    ):
        text = as_text(measured(plan, causes=causes, spread=3.0))
        assert says in text
        assert not_said not in text
