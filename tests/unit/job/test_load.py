from dataclasses import fields, replace
from typing import Any

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import WORKLOADS, Load, fitted, load_fields, open_workload
from tests.data.runs import TARGET
from tests.house.examples import examples
from tests.house.members import EVERY_WORKLOAD, uses
from tests.tables import each_row

NEEDED: dict[str, dict[str, Any]] = {
    "mixed": {"mix": (("get", 1.0),)},
    **examples("NEEDED"),
}
COMMON: dict[str, Any] = {
    "threads": 2,
    "sizes": "uniform:1:9",
    "layout": "sequential",
    "compressibility": 2.0,
    "duplication": 2.0,
    "mix": (("put", 1.0),),
    "operations": 3,
    "rate": 5.0,
    "arrivals": "poisson",
    "split": 2,
    "range_size": 7,
}
OWN: dict[str, dict[str, Any]] = examples("LOADS")
FIELDS = [
    *(("write", name, value) for name, value in COMMON.items()),
    *((workload, name, value) for workload, given in OWN.items() for name, value in given.items()),
]
"""A workload whose loads have a field, its name, and a value that is not the default."""


def job(workload: str, of: str | None = None, **load: Any) -> JobSpec:
    """Return a job of a workload, with a load of another one if ``of`` names it."""
    kind, needed = load_type(of or workload), NEEDED.get(workload, {})
    names = {field.name for field in fields(kind)}
    load = {**{name: value for name, value in needed.items() if name in names}, **load}
    return JobSpec(
        workload=workload,
        target=TARGET,
        number=load.get("mappers", 1) + load.get("reducers", 0),
        # These have objects of their own.
        objects=1 if workload in {"replay", "shuffle"} else 2,
        size=1 << 20,
        load=kind(**load),
    )


def load_type(workload: str) -> type[Load]:
    return open_workload(workload).load_type


@uses(*EVERY_WORKLOAD)
def test_each_field_and_each_workload_is_described() -> None:
    declared = {field for name in WORKLOADS for field in load_fields(open_workload(name))}
    assert declared == {name for _, name, _ in FIELDS}
    common = {field.name for field in fields(Load)}
    assert common == set(COMMON)
    for name in WORKLOADS:
        own = {field.name for field in fields(load_type(name))} - common
        assert own == set(OWN.get(name, ()))


@each_row("workload", WORKLOADS)
@each_row("of, name, value", FIELDS)
def test_a_job_has_no_settings_of_other_workloads(
    workload: str, of: str, name: str, value: object
) -> None:
    if name in load_fields(open_workload(workload)):
        assert getattr(job(workload, workload, **{name: value}).load, name) == value
        return
    with pytest.raises(UsageError, match=f"`{name}` does not apply to the workload {workload}"):
        job(workload, of, **{name: value})


@each_row("workload", WORKLOADS)
@each_row("of", WORKLOADS)
def test_a_load_without_foreign_values_is_that_of_any_workload(workload: str, of: str) -> None:
    kind = load_type(workload)
    assert fitted(load_type(of)(threads=3), kind) == kind(threads=3)


@uses("workload array", "workload mixed")
@pytest.mark.parametrize(("workload", "name"), [("mixed", "mix"), ("array", "array")])
def test_a_job_has_the_required_settings_of_its_workload(workload: str, name: str) -> None:
    with pytest.raises(UsageError, match=f"`{name}` is missing") as caught:
        replace(job(workload), load=Load())
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ({"layout": "folders"}, "'folders' is not a layout of keys"),
        ({"duplication": 0.5}, "`duplication` must be between 1 and 100, got 0.5"),
    ],
)
def test_settings_without_possible_keys_are_refused_at_once(
    load: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        Load(**load)


@uses("workload mixed")
def test_each_thread_of_a_mix_has_an_object() -> None:
    assert replace(job("mixed"), objects=3, load=Load(threads=3, **NEEDED["mixed"])).objects == 3
    with pytest.raises(UsageError, match="`threads` 3 need as many objects, but there are 2"):
        job("mixed", threads=3)


def test_a_saved_job_is_read_with_any_settings() -> None:
    saved = {
        "workload": "write",
        "target": {"bucket": "b"},
        "transfer": {},
        "number": 1,
        "load": {"split": 2, "mix": [["get", 1]]},
    }
    assert JobSpec.from_json(saved).load == Load(split=2, mix=(("get", 1.0),))


def test_a_job_of_an_earlier_version_has_the_fields_of_all_workloads() -> None:
    saved = job("write", threads=2).to_json()
    earlier = {**saved, "load": {**saved["load"], "mappers": 4, "pattern": None}}
    assert JobSpec.from_json(earlier) == JobSpec.from_json(saved)
