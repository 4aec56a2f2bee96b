"""The figures of a study's runs, small enough to be stored beside its page.

With them a page and its picture can be made again without a run, tests can compare all of
them, and simulations know the noise of the machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import ArchiveError
from serverless_bench.features.studies.definition import Study
from serverless_bench.features.studies.observations import CellRun, CellRuns
from serverless_bench.features.studies.plan import Plan

SCHEMA: Final = 1
_ALWAYS: Final = ("bytes", "elapsed_s")
_BOTTLENECK: Final = ("bottleneck.functions.", "bottleneck.slots.")


def to_data(plan: Plan, observed: Sequence[CellRuns]) -> dict[str, Any]:
    """Return the results of each run of a study, as values for JSON."""
    names = sorted({*_ALWAYS, *(metric.of for metric in plan.study.metrics)})
    return {
        "schema": SCHEMA,
        "scale": plan.scale,
        "repeats": plan.repeats,
        "seed": plan.seed,
        "design": plan.design,
        "processors": plan.processors,
        "cells": {
            one.cell.slug: {
                "skipped": one.cell.skipped,
                "runs": [_run(result, names) for result in one.results],
            }
            for one in observed
        },
    }


def from_data(study: Study, data: Mapping[str, Any]) -> tuple[Plan, tuple[CellRuns, ...]]:
    """Return the plan and the cells with their runs.

    Raises
    ------
    ArchiveError
        If the data are of other cells than the study has.
    """
    plan = Plan(
        study=study,
        scale=str(data["scale"]),
        repeats=int(data["repeats"]),
        seed=int(data["seed"]),
        design=str(data["design"]),
        processors=int(data["processors"]),
    )
    cells, known = plan.cells(), data["cells"]
    if {cell.slug for cell in cells} != set(known):
        raise ArchiveError(
            f"the runs kept of {study.name} are of other cells than its file has",
            hint=f"docs/make_experiments.py {study.name}",
        )
    scale = study.scales[plan.scale]
    return plan, tuple(
        CellRuns(
            # Cells are impossible on the machine that ran them, not on the one that reads them.
            cell=replace(cell, skipped=known[cell.slug]["skipped"]),
            planned=plan.repeats,
            results=tuple(_result(run) for run in known[cell.slug]["runs"]),
            min_bytes=scale.min_bytes,
        )
        for cell in cells
    )


def _run(result: CellRun, names: Sequence[str]) -> dict[str, float | str]:
    if result.figures is None:
        return {"problem": result.problem}
    found = result.figures
    names = [*names, *(name for name in found if name.startswith(_BOTTLENECK))]
    return {name: float(f"{found[name]:.6g}") for name in names if name in found}


def _result(run: Mapping[str, Any]) -> CellRun:
    if "problem" in run:
        return CellRun(path=Path(), figures=None, problem=str(run["problem"]))
    return CellRun(path=Path(), figures={name: float(value) for name, value in run.items()})
