"""A run against its request log: true runs agree, and every change is reported."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from serverless_bench import JobSpec, Load, Run, Target, Transfer, run_job
from serverless_bench.driver.cleanup import delete
from serverless_bench.features.audit.audit import audit
from serverless_bench.features.audit.bytes_check import coverage, describe, segments
from serverless_bench.features.audit.sources import read_request_log
from serverless_bench.features.check.audited import Audit, Billed
from serverless_bench.features.loopback.request_log import StoreRequest
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from tests.commands.command import Sbench
from tests.data.runs import forge
from tests.stores.servers import KEYS, credentials

SIZE = 10_000
MS = 10**6
Change = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Saved:
    """Runs of one store, and all requests that it received."""

    directory: Path
    seen: list[StoreRequest]
    request_log: Path

    def audit(self, name: str, **more: Any) -> Audit:
        return audit(self.directory / name, self.seen, **more)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Saved]:
    """A write, a read of it, a shared read, an open loop and a mix; the write is cleaned."""
    path = tmp_path_factory.mktemp("audit")
    request_log = path / "requests.jsonl"
    settings = LoopbackSettings(request_log=request_log, shape=Shape(latency="fixed:10ms"))
    with serving(settings) as server, credentials(KEYS):
        target = Target(bucket="any", endpoint_url=server.endpoint_url)

        def run(name: str, workload: str, keys: Sequence[str] = (), **more: Any) -> Run:
            job = JobSpec(
                workload=workload, target=target, executor="inline", concurrency=1, **more
            )
            return run_job(job, path / name, keys=keys)

        new: dict[str, Any] = {"number": 2, "objects": 2, "size": SIZE}
        write = run("write", "write", **new, warm_up=1)
        keys = tuple(write.keys())
        run("read", "read", keys, number=2, objects=2, read_times=2)
        ranged = Transfer(part_size=4096)
        run("ranges", "read", keys, number=1, objects=4, transfer=ranged)
        share = Load(split=2)
        run("shared", "read", keys[:1], number=2, objects=1, load=share)
        load = Load(rate=50)
        run("open", "read", keys, number=1, objects=4, duration=0.3, load=load)
        mix = Load(operations=15, mix=(("get", 3), ("put", 3), ("delete", 1), ("list", 1)))
        run("mixed", "mixed", **new, load=mix)
        delete(target, write.ledger())
        server.state.request_log.settle()
        yield Saved(path, read_request_log(request_log), request_log)


@pytest.mark.parametrize("name", ["write", "read", "ranges", "shared", "open", "mixed"])
def test_true_runs_agree(saved: Saved, name: str) -> None:
    found = saved.audit(name)
    assert found.differences == ()
    assert found.matched == found.requests["data"] > 1
    assert found.requests["probes"] > 0


def test_remaining_objects_are_reported(saved: Saved) -> None:
    assert saved.audit("write", cleaned=True).left == ()
    kept = saved.audit("mixed", cleaned=True)
    assert len(kept.left) >= 2
    assert {one.key for one in kept.differences} == set(kept.left)
    assert {one.about for one in kept.differences} == {"left"}


def changed(saved: Saved, name: str, path: Path, change: Change) -> Audit:
    """Audit a run with changed records."""
    shutil.copytree(saved.directory / name, path)
    lines = (path / "records.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    change(first["record"])
    if change is acknowledge:
        # One write shows little, so all of them are changed.
        rest = [json.loads(line) for line in lines[1:]]
        for row in rest:
            if row.get("record"):
                change(row["record"])
        lines[1:] = [json.dumps(row) for row in rest]
    (path / "records.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    return audit(path, saved.seen)


def shift(table: str, column: str, by: int) -> Change:
    def change(record: dict[str, Any]) -> None:
        record[table][column][0] += by

    return change


def put(table: str, column: str, value: Any) -> Change:
    def change(record: dict[str, Any]) -> None:
        record[table][column][0] = value

    return change


def forget(record: dict[str, Any]) -> None:
    for column in record["attempts"].values():
        del column[0]


def acknowledge(record: dict[str, Any]) -> None:
    record["operations"]["last_byte_sent_ns"] = record["operations"]["end_ns"]


def answer_at_once(record: dict[str, Any]) -> None:
    record["operations"]["first_byte_ns"] = record["operations"]["start_ns"]


def copy_last(record: dict[str, Any]) -> None:
    record["operations"]["kind"][-1] = "copy"


def begin_late(record: dict[str, Any]) -> None:
    """Move the start of an operation and of its attempt close to their end."""
    for table in ("operations", "attempts"):
        record[table]["start_ns"][0] = record[table]["end_ns"][0] - MS


@pytest.mark.parametrize(
    ("name", "change", "about", "words"),
    [
        ("read", shift("operations", "bytes", -1), "bytes", "byte 9999 went out 1 times, not 0"),
        ("read", shift("operations", "bytes", 1), "bytes", "byte 10000 went out 0 times, not 1"),
        ("read", shift("attempts", "bytes", 5), "bytes", "the record says 10005 bytes"),
        ("read", put("attempts", "status", 206), "requests", "the record says 206, the store 200"),
        ("read", put("attempts", "request_id", "0" * 16), "requests", "saw no such request"),
        ("read", forget, "requests", "is in no record"),
        ("read", begin_late, "times", "the store alone"),
        ("read", answer_at_once, "times", "first byte after 0.000 ms, the store sent it"),
        ("write", acknowledge, "times", "acknowledged too soon: one 0.000 ms after"),
        ("ranges", shift("attempts", "end_ns", -50 * MS), "times", "its clock would have to be"),
        ("open", shift("operations", "intended_ns", 5 * MS), "schedule", "intervals between"),
        ("open", put("operations", "intended_ns", None), "schedule", "1 have no due time"),
        ("mixed", copy_last, "asked", "1 operations of kind copy, which is not in the mix"),
    ],
)
def test_wrong_records_are_reported(
    saved: Saved, tmp_path: Path, name: str, change: Change, about: str, words: str
) -> None:
    found = changed(saved, name, tmp_path / "run", change)
    assert any(one.about == about and words in one.text for one in found.differences), found


@pytest.mark.parametrize(
    ("name", "job", "words"),
    [
        ("read", {"read_times": 1}, "bytes 0 to 9999 read 2 times instead of 1"),
        ("read", {"read_times": 3}, "bytes 0 to 9999 read 2 times instead of 3"),
        ("write", {"size": 20_000}, "20000 bytes should have been written"),
        ("write", {"objects": 3}, "4 objects were written instead of 6"),
        ("write", {"warm_up": 0}, "written 2 times instead of 1"),
        ("mixed", {"load": {"operations": 20}}, "30 operations were performed instead of 40"),
        ("open", {"duration": 0.6}, "30 were requested"),
        ("open", {"load": {"rate": 100}}, "intervals between due times are not 10.000"),
    ],
)
def test_deviating_requests_are_reported(
    saved: Saved, tmp_path: Path, name: str, job: dict[str, Any], words: str
) -> None:
    path = tmp_path / "run"
    shutil.copytree(saved.directory / name, path)
    header = json.loads((path / "run.json").read_text())
    load = {**header["job"]["load"], **job.pop("load", {})}
    header["job"] |= {**job, "load": load}
    forge(path, header)
    texts = [one.text for one in audit(path, saved.seen).differences]
    assert any(words in text for text in texts), texts


def request_of(saved: Saved, name: str, operation: str) -> tuple[Path, StoreRequest]:
    """Return a run and one of its requests."""
    path = saved.directory / name
    created = json.loads((path / "run.json").read_text())["created_ns"]
    return path, next(
        one for one in saved.seen if one.operation == operation and one.head_ns > created
    )


def test_differences_from_the_stores_log_are_reported(saved: Saved) -> None:
    path, one = request_of(saved, "read", "get")
    others = [each for each in saved.seen if each is not one]

    def texts(*seen: StoreRequest) -> list[str]:
        found = audit(path, [*others, *seen])
        return [each.text for each in found.differences]

    assert texts(one) == []
    assert any("the store saw no such request" in text for text in texts())
    assert any("read 1 times instead of 2" in text for text in texts())
    twice = replace(one, request=10**6)
    assert any("is in no record" in text for text in texts(one, twice))
    elsewhere = replace(twice, key="somebody/elses")
    assert texts(one, elsewhere) == ["get of a key that is not part of the job"]
    # Concurrent requests of others do not count.
    assert texts(one, replace(elsewhere, worker="another")) == []
    assert texts(one, replace(twice, bucket="another")) == []
    half = replace(one, offset=0, out_bytes=SIZE // 2)
    assert any("bytes 5000 to 9999" in text for text in texts(half))


def test_shares_have_to_make_the_object(saved: Saved) -> None:
    path = saved.directory / "shared"
    assert audit(path, saved.seen).differences == ()
    first, second = [one for one in saved.seen if one.length == SIZE // 2]
    others = [one for one in saved.seen if one is not second]
    same = replace(second, offset=first.offset)
    texts = [one.text for one in audit(path, [*others, same]).differences]
    halves = {f"bytes 0 to {SIZE // 2 - 1}", f"bytes {SIZE // 2} to {SIZE - 1}"}
    assert {f"{half} read {n} times instead of 1" for half in halves for n in (0, 2)} & set(texts)
    assert any("read 2 times instead of 1" in text for text in texts)
    assert any("read 0 times instead of 1" in text for text in texts)


def test_strangers_on_its_own_keys_are_named(saved: Saved) -> None:
    path, one = request_of(saved, "write", "put")
    stranger = replace(one, request=10**6, worker="another")
    found = audit(path, [*saved.seen, stranger])
    assert [each.text for each in found.differences] == ["put by another, which left no record"]
    assert found.not_compared == 1


def test_the_bill_has_to_equal_the_stores_log(saved: Saved) -> None:
    probes = saved.audit("read").requests["probes"]
    right = {"get": 8, "control": 0, "probes": probes}
    for exact in (True, False):
        assert not saved.audit("read", billed=Billed(requests=right, exact=exact)).differences
    less = {**right, "get": 7}
    found = saved.audit("read", billed=Billed(requests=less, exact=True))
    assert [one.text for one in found.differences] == ["7 get are billed, the store saw 8"]
    assert not saved.audit("read", billed=Billed(requests=less, exact=False)).differences
    for wrong in ({**right, "get": 9}, {**right, "barrier": 1}, {**right, "put": 1}):
        found = saved.audit("read", billed=Billed(requests=wrong, exact=False))
        assert [one.about for one in found.differences] == ["bill"]


def test_the_command_names_each_difference(saved: Saved, tmp_path: Path) -> None:
    sbench = Sbench(tmp_path, KEYS)
    good = sbench("check", saved.directory / "read", "--request-log", saved.request_log)
    assert good.code == 0
    assert "0 differences" in good.out
    path = tmp_path / "run"
    changed(saved, "read", path, shift("operations", "bytes", -1))
    bad = sbench("check", path, "--request-log", saved.request_log, "--format", "json", "--cleaned")
    assert bad.code == 11
    assert "bytes" in {one["about"] for one in bad.json["request_log"]["differences"]}
    refused = sbench("check", path, "--cleaned")
    assert refused.code == 2
    assert "--request-log" in refused.err


def test_coverage_counts_each_byte() -> None:
    found = coverage([(0, 10), (5, 10), (7, 7)])
    assert list(segments(found, {0: 1, 10: 0})) == [(0, 5, [1, 1]), (5, 10, [2, 1])]
    assert describe(3, 4) == "byte 3"
