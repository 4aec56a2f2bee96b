from dataclasses import fields, replace
from typing import Any

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.job.load import ArraySpec, Load
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.workload import WORKLOADS, open_workload
from tests.data.access_logs import NO_REQUEST
from tests.data.runs import LIKE, TARGET
from tests.house.members import EVERY_WORKLOAD, uses
from tests.tables import each_row

ARRAY = ArraySpec(library="zarr", shape=(8,), chunks=(2,))
NEEDED: dict[str, dict[str, Any]] = {
    "mixed": {"mix": (("get", 1.0),)},
    "contend": {"pattern": "increment"},
    "array": {"array": ARRAY},
    "replay": {"log": NO_REQUEST},
    "shuffle": {"mappers": 1, "reducers": 1, "total": 8},
}
GIVEN: dict[str, Any] = {
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
    "pattern": "claim",
    "backoff": 0.5,
    "row_groups": 3,
    "columns": 5,
    "like": LIKE,
    "share": 0.5,
    "gap": 0,
    "footer_guess": 100,
    "array": ARRAY,
    "code": "x",
    "log": NO_REQUEST,
    "speed": 2.0,
    "mappers": 2,
    "reducers": 2,
    "total": 9,
    "partitions": "ranges",
    "reduce": "eager",
    "patience": 1.0,
    "poll": 1.0,
}


def job(workload: str, **load: Any) -> JobSpec:
    load = {**NEEDED.get(workload, {}), **load}
    return JobSpec(
        workload=workload,
        target=TARGET,
        number=open_workload(workload).functions(Load(**load)) or 1,
        # These have objects of their own.
        objects=1 if workload in {"replay", "shuffle"} else 2,
        size=1 << 20,
        load=Load(**load),
    )


@uses(*EVERY_WORKLOAD)
def test_each_field_and_each_workload_is_described() -> None:
    declared = {field for name in WORKLOADS for field in open_workload(name).load}
    assert declared == set(GIVEN) == {one.name for one in fields(Load)}


@each_row("workload", WORKLOADS)
@each_row("name", GIVEN)
def test_a_job_has_no_settings_of_other_workloads(workload: str, name: str) -> None:
    given = {name: GIVEN[name]}
    if name in open_workload(workload).load:
        assert getattr(job(workload, **given).load, name) == GIVEN[name]
        return
    with pytest.raises(UsageError, match=f"`{name}` does not apply to the workload {workload}"):
        job(workload, **given)


@uses("workload array", "workload contend", "workload mixed")
@pytest.mark.parametrize(
    ("workload", "name"), [("mixed", "mix"), ("contend", "pattern"), ("array", "array")]
)
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
    assert replace(job("mixed"), objects=3, load=Load(threads=3, mix=GIVEN["mix"])).objects == 3
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
