"""Configurations of warp and sai3-bench become job files, and losses are reported."""

from pathlib import Path
from typing import Any

import hypothesis
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.cli.nested import steps_of
from serverless_bench.errors import SbenchError, UsageError
from serverless_bench.formats.converters import open_converter
from serverless_bench.formats.converters.base import Converted
from serverless_bench.job.sizes import parse_sizes
from serverless_bench.settings.job_file import Setting
from tests.house.members import uses
from tests.tables import each_row

KIB, MIB = 1 << 10, 1 << 20


def convert(folder: Path, tool: str, data: object, threads: int = 1) -> Converted:
    path = folder / "theirs.yaml"
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data))
    converted = open_converter(tool)(path, threads=threads)
    steps_of(converted.job, {})
    return converted


def warp(folder: Path, benchmark: str, *, threads: int = 1, **sections: Any) -> Converted:
    body = {"api": "v1", "benchmark": benchmark, **sections}
    return convert(folder, "warp", {"warp": body}, threads)


def settings(converted: Converted) -> dict[str, Setting]:
    return dict(converted.job.stages[0].settings)


@uses("workload mixed")
def test_a_mix_of_warp_has_its_defaults(tmp_path: Path) -> None:
    converted = warp(tmp_path, "mixed")
    assert settings(converted) == {
        "number": 20,
        "concurrency": 20,
        "gate": 1.0,
        "objects": 125,
        "size": "10MiB",
        "duration": 300.0,
        "mix": "get=45,head=30,put=15,delete=10",
        "layout": "sharded:20",
    }
    assert [stage.kind for stage in converted.job.stages] == ["execute", "cleanup"]
    assert converted.job.target == {}


@uses("workload mixed")
def test_settings_of_a_warp_file_are_kept(tmp_path: Path) -> None:
    converted = warp(
        tmp_path,
        "mixed",
        threads=4,
        remote={"host": ["10.0.0.{09...11}:9000", "h:1,k:2"], "tls": True, "region": "eu-west-1"},
        params={
            "duration": "1h30m",
            "concurrent": 8,
            "objects": 1001,
            "distribution": {"get": 50.0, "stat": 0, "put": 50, "delete": 0.0},
            "obj": {"size": "100KiB", "part-size": "5MiB", "rand-size": True},
            "keep-data": True,
        },
        io={"prefix": "mine", "no-prefix": True},
        advanced={"rps-limit": 100},
    )
    assert settings(converted) == {
        "number": 2,
        "concurrency": 2,
        "threads": 4,
        "gate": 1.0,
        "objects": 501,
        "sizes": "loguniform:400:100KiB",
        "part-size": "5MiB",
        "duration": 5400.0,
        "deadline": 11400.0,
        "mix": "get=50,put=50",
        "rate": 100.0,
    }
    hosts = ("10.0.0.09:9000", "10.0.0.10:9000", "10.0.0.11:9000", "h:1", "k:2")
    assert converted.job.target == {
        "bucket": "warp-benchmark-bucket",
        "endpoint-url": ",".join(f"https://{host}" for host in hosts),
        "region": "eu-west-1",
        "prefix": "mine/",
    }
    assert [stage.kind for stage in converted.job.stages] == ["execute"]


@uses("workload mixed")
@pytest.mark.parametrize(
    ("size", "sizes"),
    [
        ("10MB", "10MB"),
        ("1000", "1kB"),
        ("4KiB,64MiB", "64MiB"),
        ("4096:10,8192:30,16384:60", "buckets:2KiB=10,6KiB=30,12KiB=60"),
    ],
)
def test_sizes_of_warp(tmp_path: Path, size: str, sizes: str) -> None:
    found = settings(warp(tmp_path, "get", params={"obj": {"size": size}}))
    text = str(found.get("sizes", found.get("size")))
    assert parse_sizes(text) == parse_sizes(sizes)


@uses("workload mixed")
@each_row(
    ("benchmark", "params", "workload", "mix"),
    [
        ("get", {}, "mixed", "get=1"),
        ("get", {"range": True}, "mixed", "get_range=1"),
        ("get", {"range-size": "64KiB"}, "mixed", "get_range=1"),
        ("put", {}, "write", None),
        ("delete", {}, "mixed", "delete_many=1"),
        ("list", {}, "mixed", "list=1"),
        ("stat", {}, "mixed", "head=1"),
    ],
)
def test_benchmarks_of_warp(
    tmp_path: Path, benchmark: str, params: dict[str, Any], workload: str, mix: str | None
) -> None:
    converted = warp(tmp_path, benchmark, params=params)
    assert converted.job.stages[0].workload == workload
    assert settings(converted).get("mix") == mix


@uses("workload mixed")
def test_dropped_settings_are_reported_without_secrets(tmp_path: Path) -> None:
    converted = warp(
        tmp_path,
        "get",
        quiet=False,
        remote={"access-key": "AKIAX", "secret-key": "hush", "insecure": True},
        params={"autoterm": {"enabled": True, "dur": "10s"}, "list-existing": True},
        io={"storage-class": "GLACIER", "md5": None},
        new={"thing": 7, "my-token": "hush"},
    )
    notes = "\n".join(converted.notes)
    for word in ("autoterm.enabled", "list-existing", "'GLACIER'", "new.thing: 7", "insecure"):
        assert word in notes
    for word in ("quiet", "md5", "autoterm.dur", "hush", "AKIAX"):
        assert word not in notes


SAI3 = {
    "target": "s3://bucket/some/prefix/",
    "duration": "90s",
    "concurrency": 6,
    "io_rate": {"iops": 200, "distribution": "exponential"},
    "range_engine": {
        "enabled": True,
        "chunk_size": 8 * MIB,
        "min_split_size": 16 * MIB,
        "max_concurrent_ranges": 4,
    },
    "prepare": {
        "cleanup": True,
        "key_prefix_shards": 16,
        "ensure_objects": [
            {
                "base_uri": "s3://bucket/some/prefix/data/",
                "count": "1,200",
                "size_distribution": {
                    "type": "lognormal",
                    "mean": 65536,
                    "std_dev": 32768,
                    "min": 1024,
                    "max": 1 << 20,
                },
                "compress_factor": 2,
                "dedup_factor": 3,
            }
        ],
    },
    "workload": [
        {"op": "get", "path": "data/*", "weight": 60},
        {"op": "stat", "path": "data/*", "weight": 5},
        {"op": "put", "path": "new/", "object_size": 65536, "weight": 25},
        {"op": "get", "path": "more/*", "weight": 10},
        {"op": "mkdir", "path": "d/", "weight": 2},
    ],
}


@uses("workload mixed")
def test_settings_of_a_sai3_bench_file_are_kept(tmp_path: Path) -> None:
    converted = convert(tmp_path, "sai3", SAI3)
    assert settings(converted) == {
        "number": 6,
        "concurrency": 6,
        "gate": 1.0,
        "objects": 200,
        "sizes": "lognormal:64KiB:32KiB:1KiB:1MiB",
        "compressibility": 2.0,
        "duplication": 3.0,
        "duration": 90.0,
        "mix": "get=70,head=5,put=25",
        "rate": 200.0,
        "arrivals": "poisson",
        "part-size": "8MiB",
        "connections": 4,
        "min-split-size": "16MiB",
        "stat": "each",
        "layout": "sharded:16",
    }
    assert converted.job.target == {"bucket": "bucket", "prefix": "some/prefix/"}
    assert [stage.kind for stage in converted.job.stages] == ["execute", "cleanup"]
    notes = "\n".join(converted.notes)
    assert "op 'mkdir' of weight 2" in notes
    assert "2 paths of get" in notes


@uses("workload mixed")
def test_sai3_bench_has_its_own_defaults(tmp_path: Path) -> None:
    workload = [{"op": "get", "path": "x/*", "weight": 1}]
    found = settings(convert(tmp_path, "sai3", {"workload": workload}))
    assert (found["number"], found["duration"], found["size"]) == (16, 60.0, "1MiB")


@uses("workload mixed")
def test_several_sets_of_objects_become_buckets(tmp_path: Path) -> None:
    sets = [
        {"base_uri": "s3://b/small/", "count": 90, "min_size": 4096, "max_size": 4096},
        {"base_uri": "s3://b/large/", "count": 10, "min_size": 65536, "max_size": 65536},
    ]
    workload = [{"op": "get", "path": "*", "weight": 1}]
    data = {"prepare": {"ensure_objects": sets}, "workload": workload, "target": "gs://b/"}
    converted = convert(tmp_path, "sai3", data)
    assert settings(converted)["sizes"] == "buckets:4KiB=90,64KiB=10"
    assert converted.job.target == {}
    assert any("gs://b/ is not on S3" in note for note in converted.notes)


@uses("workload mixed")
def test_ratios_that_cannot_be_had_become_the_most_there_is(tmp_path: Path) -> None:
    put = {"op": "put", "object_size": 4096, "weight": 1, "compress_factor": 80, "dedup_factor": 0}
    converted = convert(tmp_path, "sai3", {"workload": [put]})
    assert settings(converted)["compressibility"] == 50
    assert "duplication" not in settings(converted)
    assert "compress_factor: 80 becomes 50, the most there is here" in converted.notes


@uses("workload mixed")
def test_endpoints_of_sai3_bench_take_turns(tmp_path: Path) -> None:
    endpoints = ["s3://10.0.0.1:9000/b/p/", "s3://10.0.0.2:9000/b/p/"]
    workload = [{"op": "put", "path": "", "object_size": 1024, "weight": 1}]
    data = {"multi_endpoint": {"endpoints": endpoints}, "workload": workload}
    target = convert(tmp_path, "sai3", data).job.target
    assert target["endpoint-url"] == "http://10.0.0.1:9000,http://10.0.0.2:9000"
    assert (target["bucket"], target["prefix"]) == ("b", "p/")


@each_row(
    ("tool", "text", "words"),
    [
        ("warp", "a: [", "is not YAML"),
        ("warp", "a: 1\n---\nb: 2\n", "holds 2 documents"),
        ("warp", "- 1\n", "holds no mapping"),
        ("warp", "x: 1\n", "no 'warp' at the top"),
        ("warp", "warp: {api: v2}\n", "warp.api must be v1"),
        ("warp", "warp: {api: v1, benchmark: snowball}\n", "'snowball' has no equivalent"),
        (
            "warp",
            "warp: {api: v1, benchmark: get, params: {obj: {size: big}}}",
            "obj.size is 'big'",
        ),
        ("warp", "warp:\n  api: {{.Api}}\n", "line 2 has a variable"),
        ("warp", "warp: {api: v1, benchmark: get, concurrent: 0}", "concurrent is '0'"),
        ("warp", "warp: {api: v1, benchmark: get, tls: 3}", "tls is 3, not true or false"),
        ("sai3", "duration: ${D}\n", "line 1 has a variable"),
        ("sai3", "duration: 5s\n", "no 'workload'"),
        ("sai3", "workload: [3]\n", "workload.0 is 3, not a mapping"),
        ("sai3", "workload: [{op: mkdir, weight: 1}]\n", "no operation of this workload"),
        ("sai3", "workload: [{op: get, weight: -1}]\n", "workload.0.weight is -1"),
        (
            "sai3",
            "workload: [{op: put, weight: 1, size_spec: {type: uniform, min: 9, max: 3}}]",
            "has a lowest size above the highest",
        ),
        (
            "sai3",
            "workload: [{op: get, weight: 1}]\nio_rate: {iops: 5, distribution: []}\n",
            "io_rate.distribution is [], not one of",
        ),
        ("sai3", "target: 's3://'\nworkload: [{op: get, weight: 1}]\n", "not a bucket"),
    ],
)
def test_unconvertible_files_are_refused_in_one_line(
    tmp_path: Path, tool: str, text: str, words: str
) -> None:
    with pytest.raises(UsageError) as raised:
        convert(tmp_path, tool, text)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)
KEYS_OF_WARP = ["host", "duration", "concurrent", "objects", "range-size", "rps-limit", "prefix"]
KEYS_OF_SAI3 = ["target", "duration", "concurrency", "io_rate", "range_engine", "prepare"]


@hypothesis.settings(max_examples=25)
@given(
    benchmark=st.sampled_from(["mixed", "get", "put", "delete", "list", "stat"]),
    params=st.dictionaries(st.sampled_from([*KEYS_OF_WARP, "obj", "distribution"]), ANY),
)
def test_any_file_of_warp_becomes_a_job_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, benchmark: str, params: dict[str, Any]
) -> None:
    said = ""
    try:
        warp(tmp_path_factory.getbasetemp(), benchmark, params=params)
    except SbenchError as exc:
        said = str(exc)
    assert "\n" not in said


@hypothesis.settings(max_examples=25)
@given(
    fields=st.dictionaries(st.sampled_from(KEYS_OF_SAI3), ANY),
    operation=st.dictionaries(st.sampled_from(["path", "object_size", "weight"]), ANY),
)
def test_any_file_of_sai3_bench_becomes_a_job_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, Any], operation: dict[str, Any]
) -> None:
    data = {**fields, "workload": [{"op": "put", "weight": 1, **operation}]}
    said = ""
    try:
        convert(tmp_path_factory.getbasetemp(), "sai3", data)
    except SbenchError as exc:
        said = str(exc)
    assert "\n" not in said
