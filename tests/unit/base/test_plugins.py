import re
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.errors import PluginError
from serverless_bench.base.plugins import Registry
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from serverless_bench.features import PLUGINS, PUBLIC
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import WORKLOADS
from serverless_bench.report import REPORTERS
from tests.commands.command import Call
from tests.house.features import features
from tests.house.members import RIGS, uses

ARRAYS: list[Registry[Any]] = (
    [import_module("serverless_bench.features.array.libraries").ARRAYS]
    if "array" in WORKLOADS
    else []
)
FORMATS: list[Registry[Any]] = [
    getattr(import_module(f"serverless_bench.features.formats.{family}"), family.upper())
    for family in ("converters", "exporters", "importers")
    if "formats" in features()
]
FAMILIES: list[Registry[Any]] = [
    *(*ARRAYS, CLIENTS, EXECUTORS, *FORMATS, REPORTERS, WORKLOADS),
]
PAGES = {
    "arrays": "serverless_bench/features/array/README.md",
    **dict.fromkeys(
        ("converters", "exporters", "importers"), "serverless_bench/features/formats/README.md"
    ),
}
FOLDERS = {
    "az": "azure",
    "parquet": "parquet",
    "conditional": "conditional",
    "custom": "custom",
    "gs": "google",
    "html": "page",
    "lambda": "aws_lambda",
    "list": "listing",
}
"""Folders of features that are not called like their plugins."""
EVERY = [(family, name) for family in FAMILIES for name in family]
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_every_name_loads_and_is_its_file(family: Registry[Any], name: str) -> None:
    found = family.builtin[name].partition(":")[0]
    if name in PLUGINS.get(family.family, {}):
        folder = FOLDERS.get(name, name)
        assert found.startswith(f"serverless_bench.features.{folder}.")
    else:
        # Both reports for a terminal are in a file.
        assert found.rpartition(".")[2] == name.replace("full", "text")
    assert family.load(name) is not None


@pytest.mark.parametrize(("family", "name"), EVERY)
def test_every_name_is_documented(family: Registry[Any], name: str) -> None:
    page = (ROOT / PAGES.get(family.family, f"docs/{family.family}.md")).read_text()
    assert f"`{name}`" in page


def test_tables_are_sorted() -> None:
    for family in FAMILIES:
        assert list(family) == sorted(family)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(PluginError, match="unknown client 'nope'") as caught:
        CLIENTS.load("nope")
    assert caught.value.hint == f"use one of {', '.join(CLIENTS)}"


def test_a_name_with_a_slip_is_answered_with_the_one_that_was_meant() -> None:
    family = Registry[object]("clients", {"boto3": "a:A", "obstore": "b:B"})
    with pytest.raises(PluginError, match="unknown client 'bto3'") as caught:
        family.load("bto3")
    assert caught.value.hint == "did you mean boto3?"


def test_a_missing_library_names_the_extra() -> None:
    family = Registry[object]("clients", {"exotic": "no_such_library.client:Client"})
    with pytest.raises(PluginError, match="client 'exotic' needs 'no_such_library'") as caught:
        family.load("exotic")
    assert caught.value.hint == "pip install 'serverless-bench[exotic]'"


@uses("feature azure", "feature google", "client obstore")
@pytest.mark.parametrize(
    ("bucket", "library"), [("az://b", "azure-storage-blob"), ("gs://b", "google-auth")]
)
def test_a_cloud_names_the_extra_that_has_all_it_needs(
    call: Call, monkeypatch: pytest.MonkeyPatch, bucket: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.delitem(sys.modules, "serverless_bench.features.obstore.client", raising=False)
    code, _, err = call("write", "--bucket", bucket)
    assert code == 3
    assert re.search(rf"hint: .*pip install .*{library}", err)


@uses(*RIGS)
def test_localstack_is_not_installed_without_its_extra(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "serverless_bench.features.lambda_host.server", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    code, out, err = call("localstack")
    assert (code, out) == (3, "")
    assert err.startswith("sbench: sbench localstack needs 'aiohttp', which is not installed\n")
    assert not (tmp_path / "cache").exists()


def package(tmp_path: Path, name: str, entry: str) -> None:
    """Install a package as far as entry points go: its metadata on the path."""
    info = tmp_path / f"{name}-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[serverless_bench.workloads]\n{entry}\n")


def test_another_package_adds_a_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "sbench_theirs", "theirs = math:pi")
    monkeypatch.syspath_prepend(tmp_path)
    assert WORKLOADS.load("theirs") == import_module("math").pi
    assert "theirs" in WORKLOADS.names()


def test_a_workload_without_operations_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a workload ran, and its functions did no work."""
    package(tmp_path, "sbench_hollow", "hollow = sbench_hollow:WORKLOAD")
    base = "from serverless_bench.job.workload import Workload\n"
    hollow = "class Hollow(Workload): pass\nWORKLOAD = Hollow()\n"
    (tmp_path / "sbench_hollow.py").write_text(base + hollow)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match="workload 'hollow' does not define `operations`"):
        JobSpec(workload="hollow", target=Target(bucket="b"), number=1)


@pytest.mark.parametrize("names", [("one", "two")])
def test_two_packages_may_not_claim_one_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    for name, value in zip(names, ("math:pi", "math:e"), strict=True):
        package(tmp_path, f"sbench_{name}", f"theirs = {value}")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PluginError, match="two packages provide workload 'theirs'"):
        WORKLOADS.load("theirs")


def test_no_package_may_replace_a_builtin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "sbench_usurper", "write = math:pi")
    monkeypatch.syspath_prepend(tmp_path)
    assert WORKLOADS.load("write") is not import_module("math").pi
    with pytest.raises(PluginError, match="two packages provide workload 'write'"):
        WORKLOADS.load("nope")


@uses(*RIGS, "executor dask", "executor lithops", "workload array", "workload custom")
def test_an_extra_serves_a_plugin() -> None:
    extras = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    # Names of extras cannot contain underscores.
    served = {name.replace("_", "-") for family in FAMILIES for name in family} | {
        *(
            "all",
            "arrays",
            "azure",
            "clients",
            "convert",
            "dask",
            "frames",
            "gcs",
            "jax",
            "lambda-host",
            "scipy",
        )
    }
    assert extras <= served


def test_tables_of_the_features_are_in_alphabetical_order() -> None:
    # Functions of workloads follow the other public names.
    own = [name for name in PUBLIC if name not in WORKLOADS]
    for table in (PLUGINS, *PLUGINS.values(), own):
        assert [*table] == sorted(table)
