"""The settings of the published samples of warp and sai3-bench become jobs.

The values are those of the files named here, without their comments and empty entries, and with a
bucket on S3 where sai3-bench has a folder:

- ``yml-samples/`` of github.com/minio/warp at 24320445
- ``tests/configs/`` of github.com/russfellows/sai3-bench at febd1232, 1111b512 and 38ed3ac1
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from serverless_bench.cli.nested import steps_of
from serverless_bench.errors import UsageError
from serverless_bench.formats.converters import open_converter
from serverless_bench.formats.converters.base import Converted
from tests.house.members import uses
from tests.tables import each_row

pytestmark = uses("workload mixed")

BOTH = {"duration": "1m", "concurrent": 8}
VERSIONS = {"versions": 2, "rand-size": False}
WARP: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "list": (
        {**BOTH, "objects": 10000, "metadata": False, "obj": {"size": "1B", **VERSIONS}},
        {"size": "1", "objects": 1250, "mix": "list=1"},
    ),
    "stat": (
        {**BOTH, "concurrent": 16, "objects": 5000, "obj": {"size": "1B", **VERSIONS}},
        {"size": "1", "objects": 313, "mix": "head=1"},
    ),
    "get": (
        {**BOTH, "objects": 1000, "range": False, "obj": {"size": "100KiB", **VERSIONS}},
        {"size": "100KiB", "objects": 125, "mix": "get=1"},
    ),
    "put": ({**BOTH, "post": False, "obj": {"size": "100KiB"}}, {"size": "100KiB"}),
    "delete": (
        {**BOTH, "duration": "5m", "objects": 32000, "batch": 100, "obj": {"size": "1KiB"}},
        {"size": "1KiB", "objects": 4000, "duration": 300.0},
    ),
    "mixed": (
        {
            **BOTH,
            "objects": 1000,
            "distribution": {"get": 45.0, "stat": 30.0, "put": 15.0, "delete": 10.0},
            "obj": {"size": "100KiB"},
        },
        {"size": "100KiB", "mix": "get=45,head=30,put=15,delete=10"},
    ),
}
ALL_OF_WARP = {
    "remote": {"region": "us-east-1", "host": ["play.min.io"], "tls": True, "insecure": False},
    "io": {"no-prefix": False, "md5": False},
    "analyze": {"verbose": False, "host": ""},
    "advanced": {"host-select": "weighed", "sndbuf": 32768, "rcvbuf": 32768},
}
BUCKET = "s3://bucket/"
WORKLOAD = [
    {"op": "get", "path": "/", "weight": 50},
    {"op": "put", "path": "/", "object_size": 2048, "weight": 30},
    {"op": "stat", "path": "/", "weight": 20},
]
UNIFORM = {"type": "uniform", "min": 1024, "max": 4096}
LOGNORMAL = {
    "type": "lognormal",
    "mean": 1048576,
    "std_dev": 524288,
    "min": 1024,
    "max": 10485760,
}


def convert(folder: Path, tool: str, document: object) -> Converted:
    path = folder / "theirs.yaml"
    path.write_text(yaml.safe_dump(document))
    converted = open_converter(tool)(path, threads=1)
    steps_of(converted.job, {})
    return converted


def prepared(
    structure: Mapping[str, Any], objects: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """Return a file of sai3-bench with a directory tree."""
    listed = [{"base_uri": BUCKET, "count": 0, **objects}]
    return {
        "duration": "5s",
        "concurrency": 4,
        "target": BUCKET,
        "prepare": {"directory_structure": structure, "ensure_objects": listed, **more},
        "workload": WORKLOAD,
    }


@each_row("benchmark", WARP)
def test_a_sample_of_warp_becomes_a_job(tmp_path: Path, benchmark: str) -> None:
    params, wanted = WARP[benchmark]
    body = {"api": "v1", "benchmark": benchmark, "params": params, **ALL_OF_WARP}
    stage = convert(tmp_path, "warp", {"warp": body}).job.stages[0]
    assert dict(stage.settings) == {**stage.settings, **wanted}


def test_a_file_of_sai3_bench_that_only_prepares_becomes_a_write(tmp_path: Path) -> None:
    """``multi_endpoint_prepare_only.yaml``."""
    size = {"count": 100, "min_size": 524288, "max_size": 524288}
    document = {
        "target": BUCKET,
        "prepare": {"ensure_objects": [{"base_uri": "testdata/", **size}], "cleanup": False},
        "workload": [{"op": "put", "path": "dummy-{}.dat", "object_size": 1024, "weight": 100}],
        "duration": "0s",
    }
    converted = convert(tmp_path, "sai3", document)
    (stage,) = converted.job.stages
    assert (stage.workload, stage.settings["size"], stage.settings["objects"]) == (
        *("write", "512KiB"),
        7,  # 16 functions
    )
    assert "duration" not in stage.settings
    assert "duration: 0 means prepare alone, so the workload is left out" in converted.notes


def test_a_sample_without_work_is_no_job(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="duration is 0, and prepare has no objects"):
        convert(tmp_path, "sai3", {"target": BUCKET, "workload": WORKLOAD, "duration": 0})


@pytest.mark.parametrize(
    ("structure", "objects", "more", "files", "sizes"),
    [
        # tree_test_basic.yaml: 45 files in 9 folders without folders
        (
            {"width": 3, "depth": 2, "files_per_dir": 5, "distribution": "bottom"},
            *({"size_spec": UNIFORM}, {}, 45, "uniform:1KiB:4KiB"),
        ),
        # tree_test_all_levels.yaml: 1,950 files in 39 folders
        (
            {"width": 3, "depth": 3, "files_per_dir": 50, "distribution": "all"},
            *({}, {"file_size": {"dist": "uniform", "min": 1024, "max": 4096}}),
            *(1950, "uniform:1KiB:4KiB"),
        ),
        # tree_test_lognormal.yaml: 840 files in 84 folders
        (
            {"width": 4, "depth": 3, "files_per_dir": 10, "distribution": "all"},
            *({"size_spec": LOGNORMAL}, {}, 840, "lognormal:1MiB:512KiB:1KiB:10MiB"),
        ),
    ],
)
def test_files_of_a_directory_tree_become_objects(
    tmp_path: Path,
    structure: dict[str, Any],
    objects: dict[str, Any],
    more: dict[str, Any],
    files: int,
    sizes: str,
) -> None:
    converted = convert(tmp_path, "sai3", prepared(structure, objects, **more))
    (stage,) = converted.job.stages
    assert stage.settings["objects"] == -(-files // 4)
    assert stage.settings["sizes"] == sizes
    said = f"prepare.directory_structure: its {files} files are objects of the functions"
    assert said in converted.notes


@pytest.mark.parametrize("depth", [16, 10**9])
def test_a_tree_without_end_is_refused(tmp_path: Path, depth: int) -> None:
    structure = {"width": 3, "depth": depth, "files_per_dir": 1}
    with pytest.raises(UsageError, match="objects"):
        convert(tmp_path, "sai3", prepared(structure, {}))
