"""``sbench replay``: a run's own log, replayed, is that log again."""

import hashlib
import hmac
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from serverless_bench.driver.boto import open_s3
from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.loopback.request_log import StoreRequest
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import load_run
from serverless_bench.rundir.tables import ABSENT
from tests.commands.command import COMMAND, Sbench
from tests.data.access_logs import access_log, line, table
from tests.house.members import uses
from tests.stores.servers import KEYS, Server, credentials

MIX = "get=40,get_range=10,head=20,put=15,delete=5,list=3"
SECRET = "a secret of the user"
CLIMBING = "../../etc/patient-42"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LoopbackServer]:
    settings = LoopbackSettings(request_log=tmp_path / "requests.jsonl", strict=True)
    with serving(settings) as server:
        yield server


@pytest.fixture
def sbench(tmp_path: Path) -> Sbench:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    return Sbench(tmp_path, KEYS)


def requests_of(store: LoopbackServer, path: Path, below: str) -> list[StoreRequest]:
    """Return what the store saw of a run, but for requests around it."""
    store.state.request_log.settle()
    seen = read_request_log(path)
    return [
        request
        for request in seen
        if request.worker is not None and (request.key.startswith(below) or not request.key)
    ]


def by_object(
    requests: Iterable[StoreRequest], *, offsets: bool, replayed: bool
) -> dict[str, list[tuple[Any, ...]]]:
    """Return method, range and bytes of the requests for each object, in their order."""
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for request in requests:
        name = request.key.rpartition("/")[2].partition(".")[0]
        if not replayed:
            digest = hmac.digest(SECRET.encode(), request.key.encode(), hashlib.sha256)
            name = digest[:16].hex()
        if request.operation == "list_objects":
            found["list"].append((request.operation, request.status))
            continue
        part = (request.offset if offsets else None, request.length)
        moved = (request.in_bytes, request.out_bytes, request.size)
        found[name].append((request.operation, *part, *moved, request.status))
    return found


@uses("feature barrier")
@pytest.mark.parametrize("form", ["access log", "table"])
def test_the_second_log_is_the_first(
    sbench: Sbench, store: LoopbackServer, tmp_path: Path, form: str
) -> None:
    at = ("--endpoint-url", store.endpoint_url, "--bucket", "b", "--number", 2, "--threads", 2)
    flags = ("--mix", MIX, "--operations", 80, "--size", "4KiB", "--prefix", "first/")
    made = sbench("mixed", *at, *flags, "--name", "first")
    assert made.code == 0, made.err
    request_log = tmp_path / "requests.jsonl"
    first = requests_of(store, request_log, "first/")
    lines = access_log(first) if form == "access log" else table(first)
    (tmp_path / "log").write_text("\n".join(lines))
    # Functions of a replay start at the instants of the log, so one second of it is enough.
    done = sbench(
        *("replay", "log", *at, "--name", "again", "--prefix", "again/", "--format", "json"),
        *("--secret-file", "secret", "--speed", 2, "--barrier", 1),
    )
    assert done.code == 0, done.err
    assert "not replayed" not in done.err
    run = load_run(tmp_path / "sbench-runs/again")
    second = requests_of(store, request_log, f"again/{run.run_id}/replay/")
    offsets = form == "table"
    wanted = by_object(first, offsets=offsets, replayed=False)
    again = by_object(second, offsets=offsets, replayed=True)
    assert again.keys() == wanted.keys()
    for name, requests in wanted.items():
        assert again[name] == requests
    assert len(wanted) > 16
    assert done.json["operations"] == len(first)
    assert done.json["latencies"]["due"] == len(first)
    checked = sbench("check", "again", "--request-log", request_log, "--format", "json")
    assert checked.json["request_log"]["differences"] == [], checked.out
    # Nothing of the log is in the run's directory, and nothing but its own objects is deleted.
    for file in (tmp_path / "sbench-runs/again").iterdir():
        assert b"first/" not in file.read_bytes(), file
    before = len(read_request_log(request_log))
    assert sbench("clean", "again").code == 0
    store.state.request_log.settle()
    deleted = [r for r in read_request_log(request_log)[before:] if r.operation == "delete"]
    assert deleted
    assert all(request.key.startswith(f"again/{run.run_id}/") for request in deleted)


def test_the_plan_is_the_bill(sbench: Sbench, store: LoopbackServer, tmp_path: Path) -> None:
    log = ["time,op,key,size"]
    log += [f"{n / 100},{op},{n % 5},1000" for n, op in enumerate(("get", "put", "head") * 20)]
    (tmp_path / "log").write_text("\n".join(log))
    planned = sbench("plan", "--format", "json", "replay", "log", "--number", 1)
    usage = planned.json["expected"]["usage"]
    done = sbench(
        *("replay", "log", "--number", 1, "--endpoint-url", store.endpoint_url, "--bucket", "b"),
        *("--format", "json", "--name", "r"),
    )
    assert done.code == 0, done.err
    attempts = load_run(tmp_path / "sbench-runs/r").attempts["request"].astype(str)
    assert usage["puts"] == (attempts == "put").sum() == 23
    # The driver reads the clock of the store with up to 20 more.
    assert usage["gets"] - 20 == (attempts != "put").sum() == 40
    assert usage["uploaded_bytes"] == 23_000


def test_instants_count_from_one_of_the_run(
    sbench: Sbench, store: LoopbackServer, tmp_path: Path
) -> None:
    """Three functions begin one after another; the log has a request every 20 ms."""
    log = ["time,op,key,size", *(f"{n / 50},put,{n},1000" for n in range(60))]
    (tmp_path / "log").write_text("\n".join(log))
    at = ("--endpoint-url", store.endpoint_url, "--bucket", "b", "--number", 3)
    waves = sbench("replay", "log", *at, "--concurrency", 2)
    assert (waves.code, waves.out) == (2, "")
    assert "run at the same time" in waves.err
    done = sbench("replay", "log", *at, "--concurrency", 3, "--name", "r")
    assert done.code == 0, done.err
    due = np.sort(load_run(tmp_path / "sbench-runs/r").operations["intended_ns"])
    due = due[due != ABSENT]
    # The clocks of two processes are some microseconds apart.
    assert np.abs(np.diff(due) - 20_000_000).max() < 2_000_000
    assert sbench("clean", "r").code == 0
    store.state.request_log.settle()
    # The start object has an instant as content, and is deleted as well.
    seen = [
        request
        for request in read_request_log(tmp_path / "requests.jsonl")
        if "/barrier/" in request.key
    ]
    deleted = {request.key for request in seen if (request.operation or "").startswith("delete")}
    assert {request.key for request in seen if request.operation == "put"} == deleted


def test_on_a_real_store(sbench: Sbench, embedded: Server, tmp_path: Path) -> None:
    at = "06/Feb/2019:00:00:38 +0000"
    lines = [
        line(at, "REST.GET.OBJECT", CLIMBING, sent=9, size=9, query="?X-Amz-Signature=5ec2e7"),
        line(at, "REST.POST.UPLOADS", "big"),
        line(at, "REST.PUT.PART", "big", size=5 << 20),
        line(at, "REST.PUT.PART", "big", size=3),
        line(at, "REST.POST.UPLOAD", "big"),
        line(at, "REST.GET.OBJECT", "big", status=206, sent=100, size=(5 << 20) + 3),
        line(at, "REST.COPY.OBJECT", "copy", size=9),
        line(at, "REST.GET.OBJECT", "copy", sent=9, size=9),
        line(at, "REST.PUT.OBJECT", "copy", size=9),
        line(at, "REST.GET.OBJECT", "copy", sent=9, size=9),
        line(at, "BATCH.DELETE.OBJECT", "copy", status=204),
        line(at, "REST.GET.OBJECT", "copy", status=404),
        line(at, "REST.GET.BUCKET", "-"),
        line(at, "REST.GET.TAGGING", "copy"),
    ]
    (tmp_path / "log").write_text("\n".join(lines))
    where = Sbench(tmp_path, embedded.environment)
    place = ("--endpoint-url", embedded.endpoint_url, "--bucket", embedded.bucket)
    done = where(
        *("replay", "log", *place, "--number", 2, "--threads", 2, "--part-size", "5MiB"),
        *("--prefix", "replayed/", "--format", "json", "--name", "r"),
    )
    assert done.code == 0, done.err
    assert "note: not replayed: 1 REST.GET.TAGGING 200" in done.err
    assert done.json["operations"] == 10
    assert done.json["verified_bytes"] == 9 + 100 + 9 + 9
    saved = b"".join(file.read_bytes() for file in (tmp_path / "sbench-runs/r").iterdir())
    for word in (b"patient", b"5ec2e7", b"alice", b"192.0.2.3"):
        assert word not in saved
    assert where("clean", "r").code == 0
    target = Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url)
    with credentials(embedded.environment):
        client = open_s3(target)
        listed = client.list_objects_v2(Bucket=embedded.bucket, Prefix="replayed/")
    assert listed["KeyCount"] == 0


def test_no_log_is_one_line(sbench: Sbench, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("no log\n")
    done = sbench("replay", "log")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("sbench: the log has no request to replay: 1 lines that cannot")
    assert sbench("replay", "nothing").code == 2
    (tmp_path / "short").write_text("secret\n")
    done = sbench("replay", "log", "--secret-file", "short")
    assert (done.code, "the secret has 6 bytes" in done.err) == (2, True)


LINES = """
import sys
begin, count = 1_700_000_000, int(sys.argv[1])
print("time,op,key,size")
for n in range(count):
    print(f"{begin + n * 0.02:.2f},{'get' if n % 3 else 'put'},{n * 7919 % count // 2},{n % 9 + 1}")
"""


def peak_of_plan(lines: int, folder: Path) -> tuple[int, dict[str, Any]]:
    """Return the most memory that a plan of so many lines from a pipe takes."""
    writer = subprocess.Popen(
        [sys.executable, "-c", LINES, str(lines)], stdout=subprocess.PIPE, cwd=folder
    )
    with (folder / "plan.json").open("wb") as out:
        command: Sequence[str] = (*COMMAND, "plan", "--format", "json", "replay", "-")
        reader = subprocess.Popen(command, stdin=writer.stdout, stdout=out, cwd=folder)
        _, status, usage = os.wait4(reader.pid, 0)
        reader.returncode = os.waitstatus_to_exitcode(status)
    writer.communicate()
    assert reader.returncode == 0
    return usage.ru_maxrss, json.loads((folder / "plan.json").read_text())


@pytest.mark.parametrize(
    ("few", "many"),
    [(100_000, 1_000_000), pytest.param(1_000_000, 10_000_000, marks=pytest.mark.full)],
)
def test_the_memory_of_a_plan_does_not_grow(tmp_path: Path, few: int, many: int) -> None:
    peaks = []
    for lines in (few, many):
        peak, plan = peak_of_plan(lines, tmp_path)
        peaks.append(peak)
        assert plan["expected"]["bytes"] > 5 * lines
    assert peaks[1] <= 1.1 * peaks[0]
