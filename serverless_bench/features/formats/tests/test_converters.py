"""Configurations of sai3-bench become job files; what has no equivalent is refused by name."""

from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import SbenchError, UsageError
from serverless_bench.features.formats.converters import open_converter
from serverless_bench.features.formats.converters.base import Converted
from serverless_bench.features.stages.prepared import steps_of
from serverless_bench.job.setting_schema import Setting
from tests.commands.command import Call
from tests.house.members import uses
from tests.tables import each_row

GET = {"op": "get", "path": "*", "weight": 100}
PLAIN: dict[str, Any] = {
    "target": "gs://my-bucket/data/",
    "duration": "60s",
    "concurrency": 64,
    "range_engine": {"enabled": False},
    "workload": [GET],
}
"""Configuration of seed 001 for reads in the region of the bucket."""
RANGES: dict[str, Any] = {
    "target": "s3://cross-region-bucket/data/",
    "duration": "60s",
    "concurrency": 64,
    "range_engine": {
        "enabled": True,
        "min_split_size": 33554432,
        "chunk_size": 8388608,
        "max_concurrent_ranges": 8,
        "range_timeout_secs": 30,
    },
    "workload": [GET],
}
"""Configuration of seed 001 for reads across regions."""


def convert(folder: Path, data: object, threads: int = 1) -> Converted:
    path = folder / "theirs.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    converted = open_converter("sai3")(path, threads=threads)
    steps_of(converted.job, {})
    return converted


def settings(converted: Converted) -> dict[str, Setting]:
    return dict(converted.job.stages[0].settings)


@uses("workload mixed")
def test_a_published_configuration_becomes_a_job(tmp_path: Path) -> None:
    converted = convert(tmp_path, RANGES, threads=4)
    assert settings(converted) == {
        "number": 16,
        "concurrency": 16,
        "threads": 4,
        "barrier": 1.0,
        "objects": 4,
        "size": "1MiB",
        "duration": 60.0,
        "deadline": 900.0,
        "mix": "get=100",
        "part-size": "8MiB",
        "connections": 8,
        "min-split-size": "32MiB",
        "stat": "each",
        "timeout": 30.0,
    }
    assert converted.job.target == {"bucket": "cross-region-bucket", "prefix": "data/"}
    assert [stage.kind for stage in converted.job.stages] == ["execute"]


@uses("workload mixed", "client obstore")
def test_without_its_range_engine_objects_are_read_whole(tmp_path: Path) -> None:
    converted = convert(tmp_path, PLAIN)
    assert converted.job.target == {"bucket": "gs://my-bucket", "prefix": "data/"}
    assert settings(converted).keys().isdisjoint({"part-size", "connections", "stat"})


@uses("workload mixed")
def test_operations_of_one_folder_become_a_mix(tmp_path: Path) -> None:
    operations = [
        {"op": "get", "path": "d/*", "weight": 60},
        {"op": "get", "path": "d/", "weight": 10},
        {"op": "stat", "path": "d/*", "weight": 5},
        {"op": "list", "path": "d/", "weight": 0},
    ]
    converted = convert(tmp_path, {"target": "s3://h:9000/b/p/", "workload": operations})
    assert settings(converted)["mix"] == "get=70,head=5"
    assert converted.job.target == {
        "endpoint-url": "http://h:9000",
        "bucket": "b",
        "prefix": "p/d/",
    }
    assert any("h:9000 is taken to speak http" in note for note in converted.notes)


def with_field(place: str, name: str, value: object) -> dict[str, Any]:
    """Return a configuration with a further field, or with another value of one."""
    if place == "workload.0":
        return {**RANGES, "workload": [{**GET, name: value}]}
    if place:
        return {**RANGES, place: {**RANGES[place], name: value}}
    return {**RANGES, name: value}


@each_row(
    ("place", "name", "value"),
    [
        ("", "multi_endpoint", {"endpoints": ["s3://10.9.0.17:80/b/"]}),
        ("", "distributed", {"agents": [{"address": "h:1"}]}),
        ("", "prepare", {"ensure_objects": []}),
        ("", "io_rate", {"iops": 5}),
        ("", "secret_key", "MARKED"),
        ("", "duration", "soon"),
        ("", "duration", 0),
        ("", "concurrency", 0),
        ("", "concurrency", True),
        ("", "target", "file:///data/"),
        ("", "target", "s3://10.9.0.21/benchmark/"),
        ("", "target", "s3://minio/benchmark/"),
        ("", "workload", "get"),
        ("workload.0", "op", "put"),
        ("workload.0", "object_size", 1024),
        ("workload.0", "weight", -1),
        ("workload.0", "weight", 0),
        ("workload.0", "path", "a*b/"),
        ("range_engine", "chunk_size", 1024),
        ("range_engine", "chunk_size", "big"),
        ("range_engine", "pre_stat_and_cache", True),
    ],
)
def test_a_field_without_equivalent_is_refused_by_name(
    tmp_path: Path, place: str, name: str, value: object
) -> None:
    with pytest.raises(UsageError) as raised:
        convert(tmp_path, with_field(place, name, value))
    assert name in f"{raised.value}"
    assert "\n" not in f"{raised.value}{raised.value.hint}"
    assert "MARKED" not in f"{raised.value}{raised.value.hint}"


@each_row("missing", ["target", "workload"])
def test_an_essential_field_is_missed_by_name(tmp_path: Path, missing: str) -> None:
    data = {name: value for name, value in RANGES.items() if name != missing}
    with pytest.raises(UsageError, match=missing):
        convert(tmp_path, data)


@pytest.mark.parametrize("words", [("theirs.yaml",), ("warp", "theirs.yaml"), ("warp", "none")])
def test_a_configuration_of_warp_is_refused_by_name(
    call: Call, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "theirs.yaml").write_text("warp: {api: v1, benchmark: get}\n")
    code, out, err = call("convert", *words, "-o", "ours.toml")
    assert (code, out, "configurations of warp are not converted" in err) == (2, "", True), err
    assert not (tmp_path / "ours.toml").exists()


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@hypothesis.settings(max_examples=25)
@given(
    given_fields=st.dictionaries(st.sampled_from([*RANGES, "prepare"]), ANY),
    operation=st.dictionaries(st.sampled_from(["path", "op", "weight"]), ANY),
)
def test_any_file_becomes_a_job_or_an_error(
    tmp_path_factory: pytest.TempPathFactory,
    given_fields: dict[str, Any],
    operation: dict[str, Any],
) -> None:
    data = {"workload": [{**GET, **operation}], "target": "s3://b/", **given_fields}
    output = ""
    try:
        convert(tmp_path_factory.getbasetemp(), data)
    except SbenchError as exc:
        output = str(exc)
    assert "\n" not in output
