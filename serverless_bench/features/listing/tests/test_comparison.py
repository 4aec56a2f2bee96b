"""Keys that are missing, double, out of order or unexpected, and the keys of a tree."""

from dataclasses import replace
from itertools import chain, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.features.listing import operation
from serverless_bench.features.listing.load import ListLoad
from serverless_bench.features.listing.operation import PageComparison
from serverless_bench.features.listing.tree import Tree
from serverless_bench.features.listing.workload import WORKLOAD
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import declared_size
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target

KEYS = [f"{number:04}" for number in range(3000)]
PAGES = [KEYS[begin : begin + 1000] for begin in range(0, 3000, 1000)]


def problems(*pages: list[str]) -> list[tuple[str, str]]:
    comparison = PageComparison(KEYS)
    for page in pages:
        comparison.take(page)
    comparison.finish()
    return comparison.problems


def test_the_expected_keys_are_right() -> None:
    assert problems(*PAGES) == []
    assert problems(*([key] for key in KEYS)) == []


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ((PAGES[0], PAGES[2]), dict.fromkeys(PAGES[1], "missing")),
        ((*PAGES[:2],), dict.fromkeys(PAGES[2], "missing")),
        ((PAGES[0], *PAGES), dict.fromkeys(PAGES[0], "double")),
        ((PAGES[1], PAGES[0], PAGES[2]), dict.fromkeys(PAGES[0], "out of order")),
        ((*PAGES, ["9999"]), {"9999": "unexpected"}),
        ((PAGES[0], ["0999x"], *PAGES[1:]), {"0999x": "unexpected"}),
        ((), dict.fromkeys(KEYS[:1000], "missing")),
    ],
)
def test_wrong_keys_are_named(pages: tuple[list[str], ...], expected: dict[str, str]) -> None:
    assert dict(problems(*pages)) == expected


@given(st.lists(st.integers(0, 40), max_size=60))
def test_any_listing_is_judged_by_what_it_holds(listing: list[int]) -> None:
    keys = [f"{number:02}" for number in range(30)]
    comparison = PageComparison(keys)
    comparison.take(f"{number:02}" for number in listing)
    comparison.finish()
    found = comparison.problems
    assert {key for key, problem in found if problem == "missing"} == {*keys}.difference(
        f"{number:02}" for number in listing
    )
    assert (not found) == (listing == list(range(30)))


def test_keys_that_nobody_knows_are_compared_by_their_order() -> None:
    comparison = PageComparison(None)
    comparison.take(["a", "c", "b", "b", "c", "d", "d"])
    comparison.finish()
    assert comparison.problems == [
        *(("b", "out of order"), ("b", "out of order"), ("c", "double"), ("d", "double")),
    ]


def test_skipped_keys_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operation, "_MOST_SKIPPED", 10)
    comparison = PageComparison(KEYS)
    comparison.take(KEYS[500:])
    comparison.finish()
    assert {key for key, problem in comparison.problems} == {*KEYS[:500]}


def made(**load: object) -> JobSpec:
    return JobSpec(
        workload="list",
        target=Target(bucket="b", prefix="p/"),
        number=3,
        objects=int(load.pop("objects", 20)),  # type: ignore[call-overload]
        size=None if "sizes" in load else 7,
        load=ListLoad(**load),  # type: ignore[arg-type]
    )


def invocations(job: JobSpec, wave: int = 0) -> list[InvocationSpec]:
    return [*invocation_specs(job, run_id="r", created_ns=1, wave=wave)]


@pytest.mark.parametrize(
    "load",
    [
        {"depth": 0},
        {"depth": 1, "breadth": 1},
        {"depth": 2, "breadth": 3, "objects": 100},
        {"depth": 3, "breadth": 2, "objects": 9},
        {"depth": 1, "breadth": 11, "sizes": "uniform:1:100"},
    ],
)
def test_the_tree_has_the_keys_that_the_functions_write_in_order(load: dict[str, object]) -> None:
    job = made(**load)
    specs = invocations(job)
    written = [key for spec in specs for key in WORKLOAD.keys(spec)]
    assert len({*written}) == 3 * job.objects
    for threads in (1, 2):
        spec = replace(specs[1], load=replace(specs[1].load, threads=threads))
        puts = [[*WORKLOAD.prepare(spec, thread)] for thread in range(threads)]
        assert {put.key for put in chain(*puts)} == {*WORKLOAD.keys(specs[1])}
        assert all(put.size == declared_size(put.key) for put in chain(*puts))
    # Another launch writes the same.
    again = [key for spec in invocations(job, wave=1) for key in WORKLOAD.keys(spec)]
    assert again == written == sorted(written)


@pytest.mark.parametrize("number", [1, 2, 3, 7])
def test_functions_share_the_folders_of_an_earlier_run(number: int) -> None:
    wrote = made(depth=2, breadth=2)
    written = [key for spec in invocations(wrote) for key in WORKLOAD.keys(spec)]
    job = replace(wrote, number=number, load=ListLoad(depth=2, breadth=2, tree="r", parts=3))
    found = []
    for spec in invocations(job):
        assert not [*WORKLOAD.keys(spec)]
        tree = Tree(spec, ListLoad.narrow(spec.load))
        listed = [each.key for each in WORKLOAD.operations(spec)]
        assert listed == [tree.folder(leaf) for leaf in tree.shared()]
        found += [key for leaf in tree.shared() for key, _ in tree.keys(leaf)]
        assert all(key.startswith(tree.root) for key in islice(written, 5))
    assert found == written


def test_a_plan_knows_the_pages() -> None:
    job = made(depth=1, breadth=2, objects=4000)
    assert WORKLOAD.pages(job) == (4000, 4)
    assert WORKLOAD.pages(replace(job, load=ListLoad(by="sequence", breadth=2))) == (4000, 12)
    again = replace(job, number=6, load=ListLoad(breadth=2, tree="r", parts=3))
    assert WORKLOAD.pages(again) == (0, 2)


@pytest.mark.parametrize(
    ("load", "more", "says"),
    [
        ({"breadth": 21}, {}, "21 folders for 20 objects"),
        ({"versions": True}, {"client": "boto3"}, "`versions` does not work with `client` boto3"),
        ({"by": "sequence", "breadth": 1}, {}, "`warm_up` lists before"),
        ({}, {"bucket": "b--use1-az4--x-s3"}, "have no order"),
    ],
)
def test_what_does_not_fit_is_refused(
    load: dict[str, object], more: dict[str, str], says: str
) -> None:
    job = made()
    with pytest.raises(UsageError, match=says):
        replace(job, warm_up=1, target=replace(job.target, **more), load=ListLoad(**load))  # type: ignore[arg-type]
