"""``sbench mixed``, threads, open loops, pre-stat and shared objects, as a user runs them."""

import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest

from serverless_bench.base.units import MIB
from serverless_bench.driver.boto import open_s3
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import load_run
from tests.commands.command import Sbench
from tests.stores.servers import KEYS, Server, credentials, loopback
from tests.twice import two_of_three

MIX = "get=40,get_range=10,head=20,put=15,delete=5,delete_many=2,copy=5,list=3"
SMALL = ("--size", "64KiB", "--number", 2, "--format", "json")


@pytest.mark.parametrize("client", ["wire", pytest.param("boto3", marks=pytest.mark.full)])
def test_a_mix_of_everything_is_verified_and_cleaned(
    sbench: Sbench, embedded: Server, client: str
) -> None:
    flags = ("--mix", MIX, "--operations", 150, "--threads", 2, "--client", client)
    done = sbench("mixed", *SMALL, *flags, "--name", "m", "--prefix", f"{client}-mix/")
    assert done.code == 0, done.err
    assert done.json["ok"] == 2
    run = load_run(sbench.directory / "sbench-runs" / "m")
    measured = run.operations["warmup"] == 0
    kinds = run.operations["kind"][measured].astype(str)
    assert len(kinds) == 300
    assert set(kinds) == {part.split("=")[0] for part in MIX.split(",")}
    reads = measured & np.isin(run.operations["kind"].astype(str), ["get", "get_range"])
    assert (run.operations["verified_bytes"][reads] == run.operations["bytes"][reads]).all()
    check_percentiles(done.json, run.operations, measured)
    assert sbench("clean", "sbench-runs/m").code == 0
    target = Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url)
    with credentials(embedded.environment):
        listed = open_s3(target).list_objects_v2(Bucket=embedded.bucket, Prefix=f"{client}-mix/")
    assert listed["KeyCount"] == 0


def check_percentiles(report: dict[str, Any], operations: Any, measured: Any) -> None:
    """Check the percentiles of each kind against the raw records."""
    rows = report["latencies"]["by_kind"]
    parts = {row["kind"]: row for row in rows if row["size_class"] is None}
    for kind in ("get", "put", "head"):
        mine = measured & (operations["kind"].astype(str) == kind)
        took_s = (operations["end_ns"][mine] - operations["start_ns"][mine]) / 1e9
        text = parts[kind]["latency"]["percentiles_s"]
        assert text.pop("max") == pytest.approx(took_s.max())
        for name, value in text.items():
            rank = np.percentile(took_s, float(name[1:]), method="inverted_cdf")
            assert value == pytest.approx(rank)


@pytest.mark.timing
def test_a_stall_shows_in_an_open_loop_and_hides_in_a_closed_one(tmp_path: Path) -> None:
    two_of_three(lambda: check_loops(Path(mkdtemp(dir=tmp_path))))


def check_loops(tmp_path: Path) -> None:
    sbench = Sbench(tmp_path, KEYS)
    with loopback("--stall", "0.5:1.5", log=tmp_path / "log") as server:
        at = ("--endpoint-url", server.endpoint_url, "--bucket", "b", "--format", "json")
        key = "sbench/" + "0" * 32 + ".1000"
        flags = ("--key", key, "--number", 1, "--duration", 3, *at)
        opened = sbench("read", *flags, "--rate", 100, "--name", "open")
    with loopback("--stall", "0.5:1.5", log=tmp_path / "log") as server:
        at = ("--endpoint-url", server.endpoint_url, "--bucket", "b", "--format", "json")
        closed = sbench("read", "--key", key, "--number", 1, "--duration", 3, *at, "--name", "shut")
    assert (opened.code, closed.code) == (0, 0), opened.err + closed.err
    run = load_run(tmp_path / "sbench-runs" / "open")
    operations = run.operations
    response_s = (operations["end_ns"] - operations["intended_ns"]) / 1e9
    service_s = (operations["end_ns"] - operations["start_ns"]) / 1e9
    # Half of the three seconds had no answer: a third of the operations due waited for it.
    assert np.percentile(response_s, 75) > 0.3
    assert np.percentile(service_s, 95) < 0.3
    assert len(operations["end_ns"]) + run.dropped["count"].sum() == 300
    assert opened.json["latencies"]["due"] == 300
    part = next(p for p in opened.json["latencies"]["by_kind"] if p["size_class"] is None)
    p90 = {name: part[name]["percentiles_s"]["p90"] for name in ("response", "latency")}
    assert p90["response"] > 3 * p90["latency"]
    assert closed.json["latency_s"]["p95"] < 0.3


def test_ways_to_read(sbench: Sbench) -> None:
    wrote = sbench("write", "--number", 2, "--mb", 12, "--key-file", "k")
    assert wrote.code == 0, wrote.err

    def read(*flags: str | int) -> dict[str, Any]:
        done = sbench("read", "--key-file", "k", "--format", "json", *flags)
        assert done.code == 0, done.err
        assert done.json["verified_bytes"] == done.json["bytes"]
        return done.json

    # A pre-stat sends one HEAD per object at first; a HEAD for each read sends one every time.
    for stat, heads, warmups in (("before", 2, 2), ("each", 4, 0)):
        name = f"stat-{stat}"
        read("--read-times", 2, "--stat", stat, "--name", name)
        run = load_run(sbench.directory / "sbench-runs" / name)
        assert (run.attempts["request"] == "head").sum() == heads
        assert run.operations["warmup"].sum() == warmups
    # Small objects are not split.
    ranges = ("--part-size", "5MiB", "--connections", 2)
    assert read(*ranges)["attempts"] == 2 * 3
    assert read(*ranges, "--min-split-size", "16MiB")["attempts"] == 2
    # Many functions share one object.
    shared = read("--split", 3)
    assert (shared["requested"], shared["verified_bytes"]) == (6, 24 * MIB)


def test_drawn_sizes_ratios_and_layouts_are_read_back(sbench: Sbench) -> None:
    what = ("--sizes", "loguniform:4KiB:1MiB", "--layout", "sharded:16")
    ratios = ("--compressibility", 2, "--duplication", 4, "--number", 4, "--objects", 8)
    wrote = sbench("write", *what, *ratios, "--key-file", "k", "--format", "json", "--name", "w")
    assert wrote.code == 0, wrote.err
    assert len(set(load_run(sbench.directory / "sbench-runs" / "w").operations["size"])) > 16
    read = sbench("read", "--key-file", "k", "--objects", 8, "--format", "json")
    assert read.json["verified_bytes"] == read.json["bytes"] == wrote.json["bytes"]
    header = json.loads((sbench.directory / "sbench-runs/w/run.json").read_bytes())
    assert header["job"]["load"]["compressibility"] == 2.0
