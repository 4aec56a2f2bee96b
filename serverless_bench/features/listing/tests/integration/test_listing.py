"""``sbench list`` against the loopback store: complete, verified, small, and audited."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.driver.run import run_job
from serverless_bench.features.check.checked_run import audited
from serverless_bench.features.listing.load import ListLoad
from serverless_bench.features.listing.tree import Tree
from serverless_bench.features.loopback.objects import ObjectTable, StoredObject
from serverless_bench.features.loopback.s3 import S3Error
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.features.versions.kept import VersionedBucket
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import Done, Sbench
from tests.house.members import uses
from tests.stores.servers import KEYS, credentials

MIB = 1 << 20


def listing(tmp_path: Path, server: LoopbackServer, name: str, *flags: str | int) -> Done:
    where = ("--endpoint-url", server.endpoint_url, "--bucket", "any", "--format", "json")
    return Sbench(tmp_path, KEYS)("list", *where, "--name", name, *flags)


def saved(tmp_path: Path, name: str) -> Run:
    return load_run(tmp_path / "sbench-runs" / name)


@uses("feature existing")
@pytest.mark.parametrize("executor", ["inline", "local"])
def test_a_tree_is_written_listed_listed_again_and_deleted(tmp_path: Path, executor: str) -> None:
    log, run = tmp_path / "log", ("--executor", executor)
    with serving(LoopbackSettings(request_log=log)) as server:
        tree = ("--number", 2, "--objects", 1300, "--breadth", 2, "--depth", 2, "--threads", 2)
        cases: dict[str, tuple[tuple[str | int, ...], tuple[int, int, int]]] = {
            "w": ((*tree, "--sizes", "uniform:1:90"), (8, 2600, 8)),
            "again": (("--tree", "w", "--number", 3), (8, 2600, 8)),
            "all": (("--tree", "w", "--number", 2, "--by", "sequence"), (2, 5200, 6)),
            "v": (("--tree", "w", "--number", 1, "--by", "sequence", "--versions"), (1, 2600, 3)),
            "s": ((*tree[:4], "--by", "sequence", "--depth", 0), (2, 5200, 6)),
        }
        if executor == "inline":
            done = listing(tmp_path, server, "s", *cases.pop("s")[0], *run)
            assert "2 functions write before any of them lists, got --concurrency 1" in done.err
        for name, (flags, (prefixes, keys, pages)) in cases.items():
            done = listing(tmp_path, server, name, *flags, *run)
            assert done.code == 0, done
            found = done.json["listings"]
            assert (found["prefixes"], found["keys"], found["pages"]) == (prefixes, keys, pages)
            assert found["verified"]
            assert found["wrong_keys"] == 0
            assert found["keys_per_s"] > 0
            assert found["first_page_s"]["p50"] <= done.json["latencies"]["elapsed_s"]
            server.state.request_log.settle()
            kept = audited(saved(tmp_path, name), log)
            assert not kept.differences, kept.differences
        done = listing(tmp_path, server, "given", "--existing", "sbench/", "--number", 2, *run)
        assert done.code == 0, done
        found = done.json["listings"]
        assert (found["keys"], found["verified"], found["wrong_keys"]) == (
            2 * len(kept_keys(server)),
            False,
            0,
        )
        for name in cases:
            assert Sbench(tmp_path, KEYS)("clean", name).code == 0
        assert not [key for key, _ in kept_keys(server)]
        done = listing(tmp_path, server, "gone", "--tree", "w", *run)
        assert done.code == 8
        assert "are deleted" in done.err


def kept_keys(server: LoopbackServer) -> list[tuple[str, Any]]:
    return [*server.state.objects._buckets["any"].kept.items()]


Page = tuple[list[str], bool]


class Planted(ObjectTable):
    """Objects whose pages are wrong."""

    def __init__(self, spoil: Callable[[Callable[[str], Page], str], Page]) -> None:
        super().__init__(strict=True)
        self._spoil = spoil

    def page(self, bucket: str, prefix: str, after: str, limit: int, **more: bool) -> Page:
        def right(after: str) -> Page:
            return super(Planted, self).page(bucket, prefix, after, limit, **more)

        return self._spoil(right, after)


def without_a_page(right: Callable[[str], Page], after: str) -> Page:
    keys, more = right(after)
    return right(keys[-1]) if not after and more else (keys, more)


def page_twice(right: Callable[[str], Page], after: str) -> Page:
    keys, more = right(after)
    return (right("")[0], True) if after and more else (keys, more)


def pages_swapped(right: Callable[[str], Page], after: str) -> Page:
    first, more = right("")
    second, further = right(first[-1])
    if not more:
        return right(after)
    if not after:
        return second, True
    return (first, True) if after == second[-1] else right(second[-1] if further else after)


def without_a_key(right: Callable[[str], Page], after: str) -> Page:
    keys, more = right(after)
    return [keys[0], *keys[2:]], more


def key_twice(right: Callable[[str], Page], after: str) -> Page:
    keys, more = right(after)
    return [*keys[:5], keys[4], *keys[5:]], more


def keys_swapped(right: Callable[[str], Page], after: str) -> Page:
    keys, more = right(after)
    return [*keys[:5], keys[6], keys[5], *keys[7:]], more


@pytest.mark.parametrize(
    ("spoil", "problem", "number"),
    [
        (without_a_page, "missing", 1000),
        (without_a_key, "missing", 3),
        (page_twice, "double", 1000),
        (key_twice, "double", 3),
        (keys_swapped, "out of order", 3),
        (pages_swapped, "out of order", 1000),
    ],
)
def test_planted_pages_are_named(
    tmp_path: Path,
    spoil: Callable[[Callable[[str], Page], str], Page],
    problem: str,
    number: int,
) -> None:
    with serving(LoopbackSettings()) as server:
        server.state.objects = Planted(spoil)
        flags = ("--number", 1, "--objects", 2300, "--depth", 0, "--executor", "inline")
        done = listing(tmp_path, server, "w", *flags)
    assert done.code == 7, done
    found = done.json["listings"]
    named = {each["problem"] for each in found["problems"]}
    assert named == {problem}
    assert found["wrong_keys"] == number
    assert all(each["key"].startswith("sbench/") for each in found["problems"])


def test_throttled_pages_are_counted_and_the_listing_is_complete(tmp_path: Path) -> None:
    calls = count()

    def busy(right: Callable[[str], Page], after: str) -> Page:
        if next(calls) % 3 == 0:
            raise S3Error(503, "SlowDown", "reduce your request rate")
        return right(after)

    with serving(LoopbackSettings()) as server:
        server.state.objects = Planted(busy)
        tree = ("--number", 2, "--objects", 300, "--breadth", 10, "--executor", "inline")
        done = listing(tmp_path, server, "w", *tree)
    assert done.code == 0, done
    listings = done.json["listings"]
    assert (listings["keys"], listings["pages"], listings["wrong_keys"]) == (600, 20, 0)
    assert done.json["throttled"] == next(calls) - 20 > 0


def in_the_store(server: LoopbackServer, job: JobSpec) -> None:
    """Put the keys of a tree into the store, as a run of a million requests would."""
    for spec in invocation_specs(job, run_id="r", created_ns=1):
        tree = Tree(spec, ListLoad.narrow(spec.load))
        for leaf in tree.shared():
            for key, size in tree.keys(leaf):
                server.state.objects.put("any", StoredObject(key=key, size=size))


def complete(tmp_path: Path, number: int, objects: int) -> Run:
    """List a tree from its functions, and return the run."""
    with serving(LoopbackSettings()) as server, credentials(KEYS):
        job = JobSpec(
            workload="list",
            target=Target(bucket="any", endpoint_url=server.endpoint_url),
            number=number,
            concurrency=number,
            objects=objects,
            size=1,
            load=ListLoad(tree="r", parts=number),
        )
        in_the_store(server, job)
        return run_job(job, tmp_path / "r")


def check_complete(run: Run, keys: int) -> None:
    summary = summarize(run)
    listings = summary.parts["listings"]
    assert (listings.keys, listings.wrong_keys, listings.verified) == (keys, 0, True)
    assert summary.ok == run.job.number
    assert max(run.functions["max_rss_bytes"]) < 60 * MIB


def test_functions_that_list_are_small(tmp_path: Path) -> None:
    check_complete(complete(tmp_path, 2, 20_000), 40_000)


@pytest.mark.full
def test_a_million_keys_from_sixteen_functions(tmp_path: Path) -> None:
    check_complete(complete(tmp_path, 16, 62_500), 1_000_000)


def test_versions_have_pages_of_any_length(tmp_path: Path) -> None:
    """Pages above 64 KiB were refused as too long."""
    with serving(LoopbackSettings()) as server, credentials(KEYS):
        for number in range(1100):
            content = StoredObject(key=f"a/{number:0600}", size=1, verbatim=b"+")
            server.state.objects.put("any", content)
        bucket = VersionedBucket(Target(bucket="any", endpoint_url=server.endpoint_url))
        assert len([*bucket.versions("a/")]) == 1100
        bucket.close()
