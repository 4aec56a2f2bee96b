"""Sharing of a store, against a count at each time."""

from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.stores.keeper import StoreLoads, overlap

END = 12
spans = st.tuples(st.integers(0, END), st.integers(0, END)).map(lambda ends: tuple(sorted(ends)))


@given(spans, st.lists(spans))
def test_an_overlap_agrees_with_each_instant(
    own: tuple[int, int], others: list[tuple[int, int]]
) -> None:
    concurrency = [sum(begin <= now < end for begin, end in others) for now in range(*own)]
    assert overlap(own, others) == (max(concurrency, default=0), sum(map(bool, concurrency)))


@given(st.lists(st.integers(0, 4), max_size=30))
def test_every_sharing_command_is_counted(visits: list[int]) -> None:
    """At each step one of five commands starts, or ends if it is active."""
    loads = StoreLoads()
    since: dict[int, int] = {}
    spans: list[tuple[int, int]] = []
    for now, who in enumerate(visits):
        if who not in since:
            since[who] = now
            loads.begin(who, now)
            continue
        own = since.pop(who), now
        others = [*spans, *((begin, now) for begin in since.values())]
        assert loads.end(who, now) == overlap(own, others)
        spans.append(own)
        assert since or not loads._ended


def test_an_unstarted_command_shares_no_time() -> None:
    loads = StoreLoads()
    loads.begin("a", 1)
    assert loads.end("b", 5) == (0, 0)
    assert loads.end("a", 7) == (0, 0)
