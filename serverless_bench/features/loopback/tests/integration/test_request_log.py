"""The loopback store's log of each request, and its parser."""

import json
from collections import Counter
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from serverless_bench import JobSpec, Run, Target, Transfer, run_job
from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.driver.cleanup import delete
from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.loopback.faults import FaultKind
from serverless_bench.features.loopback.request_log import StoreRequest
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from tests.stores import servers
from tests.stores.servers import KEYS, credentials

SIZE = 300_000


def target(server: LoopbackServer, client: str = "wire", prefix: str = "sbench/") -> Target:
    return Target(client=client, bucket="any", endpoint_url=server.endpoint_url, prefix=prefix)


def written(where: Target, path: Path, **more: object) -> Run:
    job = JobSpec(
        workload="write",
        target=where,
        executor="inline",
        **{"number": 2, "objects": 3, "size": SIZE, **more},  # type: ignore[arg-type]
    )
    with credentials(KEYS):
        return run_job(job, path)


def read(where: Target, path: Path, keys: list[str], **more: object) -> Run:
    job = JobSpec(
        workload="read",
        target=where,
        executor="inline",
        **{"number": 1, "objects": len(keys), **more},  # type: ignore[arg-type]
    )
    with credentials(KEYS):
        return run_job(job, path, keys=keys)


def requests_of(seen: list[StoreRequest], operation: str) -> list[StoreRequest]:
    return [one for one in seen if one.operation == operation]


def test_every_request_is_written_down(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=path)) as server:
        run = written(target(server), tmp_path / "w")
        keys = run.keys()
        again = read(target(server), tmp_path / "r", keys)
        with credentials(KEYS):
            delete(target(server), run.ledger())
        server.state.request_log.settle()
        document, seen = server.state.statistics(), read_request_log(path)
    assert Counter(one.operation for one in seen) == document["requests"]
    assert sum(one.in_bytes for one in seen) == document["in_bytes"] == 6 * SIZE
    assert sum(one.out_bytes for one in seen) == document["out_bytes"]
    assert len({one.request for one in seen}) == len(seen)
    assert {one.key for one in requests_of(seen, "put")} == {
        one.key for one in requests_of(seen, "delete")
    }
    for one in requests_of(seen, "put"):
        assert (one.bucket, one.offset, one.in_bytes, one.status) == ("any", 0, SIZE, 200)
    whole = [one for one in requests_of(seen, "get") if one.status == 200]
    assert {(one.size, one.offset, one.length, one.out_bytes) for one in whole} == {
        (SIZE, 0, SIZE, SIZE)
    }
    # A client identifies a request by this.
    ids = {one.request_id: one for one in seen}
    for run_of, operation in ((run, "put"), (again, "get")):
        for request_id in run_of.attempts["request_id"]:
            assert ids[request_id].operation == operation
    worker = str(run.functions["worker_id"][0]).replace("/", ".")
    assert {one.worker for one in requests_of(seen, "put")} == {worker}
    assert {one.worker for one in requests_of(seen, "head_bucket")} == {None}


def test_instants_are_in_their_order_and_on_the_wall_clock(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=path)) as server:
        run = written(target(server), tmp_path / "w")
        again = read(target(server), tmp_path / "r", run.keys())
        server.state.request_log.settle()
        ids = {one.request_id: one for one in read_request_log(path)}
    for run_of in (run, again):
        tries = run_of.attempts
        for request_id, begin_ns, end_ns in zip(
            tries["request_id"], tries["start_ns"], tries["end_ns"], strict=True
        ):
            one = ids[request_id]
            inside = (one.head_ns, one.first_in_ns, one.last_in_ns, one.answered_ns)
            instants = [ns for ns in (*inside, one.first_out_ns, one.last_out_ns) if ns is not None]
            assert len(instants) == 4
            assert all(first <= second for first, second in pairwise(instants))
            # Two clocks that were read at different times: a busy machine, no stepped clock.
            minute_ns = 60 * 10**9
            assert begin_ns - minute_ns < instants[0] <= instants[-1] < end_ns + minute_ns


@pytest.mark.parametrize("prefix", ["sbench/", "ä" * 200 + "/", "x" * 900, ""])
def test_a_request_takes_less_than_300_bytes(tmp_path: Path, prefix: str) -> None:
    path = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=path)) as server:
        run = written(target(server, prefix=prefix), tmp_path / "w", objects=20, size=1)
        server.state.request_log.settle()
        keys = {one.key for one in requests_of(read_request_log(path), "put")}
    assert keys == set(run.ledger())
    names = [line for line in path.read_text().splitlines() if line.startswith('{"name"')]
    rows = [line for line in path.read_text().splitlines() if line.startswith("[")]
    assert max(map(len, rows)) < 300
    # Names are stored once, for any number of requests.
    assert len(names) < 8


def test_faults_and_cut_answers_are_logged(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    rates = {FaultKind.TRUNCATE: 1.0}
    with serving(LoopbackSettings(request_log=path, rates=rates)) as server:
        run = written(target(server), tmp_path / "w", number=1, objects=1)
        again = read(target(server), tmp_path / "r", run.keys(), transfer=Transfer(retries=1))
        server.state.request_log.settle()
        seen = requests_of(read_request_log(path), "get")
    assert [one.fault for one in seen] == ["truncate"] * 2
    assert [one.out_bytes for one in seen] == again.attempts["bytes"].tolist()
    assert all(one.out_bytes < SIZE for one in seen)


def test_parts_say_where_they_belong(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    parts = Transfer(part_size=5 * MIB, connections=2)
    with serving(LoopbackSettings(request_log=path)) as server:
        written(
            target(server), tmp_path / "w", number=1, objects=1, size=6 * MIB,
            transfer=parts,
        )  # fmt: skip
        server.state.request_log.settle()
        seen = read_request_log(path)
    found = {(one.part, one.offset, one.in_bytes) for one in requests_of(seen, "upload_part")}
    assert found == {(1, 0, 5 * MIB), (2, 5 * MIB, MIB)}
    assert [one.status for one in requests_of(seen, "complete_multipart")] == [200]


def test_another_store_appends_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    keys = []
    for name in ("a", "b"):
        with serving(LoopbackSettings(request_log=path)) as server:
            run = written(target(server, prefix=f"{name}/"), tmp_path / name)
            keys += run.ledger()
    assert {one.key for one in requests_of(read_request_log(path), "put")} == set(keys)


def test_half_a_line_is_no_request_yet(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=path)) as server:
        written(target(server), tmp_path / "w")
    count = len(read_request_log(path))
    path.write_text(path.read_text()[:-10])
    assert len(read_request_log(path)) == count - 1


@pytest.mark.parametrize(
    "text", ["", "no JSON\n", '{"request_log": 2, "columns": []}\n', "[1]\n", "3\n"]
)
def test_an_invalid_request_log_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "request_log"
    path.write_text(text)
    with pytest.raises(UsageError, match="not the request log"):
        read_request_log(path)
    with pytest.raises(UsageError, match="cannot read --request-log"):
        read_request_log(tmp_path / "absent")


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="cannot write --request-log"),
        serving(LoopbackSettings(request_log=tmp_path / "no" / "such")),
    ):
        pass


def test_no_line_is_lost_when_the_store_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    with servers.loopback("--request-log", str(path), log=tmp_path / "log") as server:
        address = urlsplit(server.endpoint_url)
        connection = HTTPConnection(address.hostname or "", address.port)
        for _ in range(3):
            connection.request("GET", f"/any/{'0' * 32}.17")
            connection.getresponse().read()
        # The connection stays open while SIGTERM ends the store.
    connection.close()
    assert [one.out_bytes for one in read_request_log(path)] == [17] * 3


def test_columns_are_named_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "request_log"
    with serving(LoopbackSettings(request_log=path)):
        pass
    assert "head_ns" in json.loads(path.read_text().splitlines()[0])["columns"]
