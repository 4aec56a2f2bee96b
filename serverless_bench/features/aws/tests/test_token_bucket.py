from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.aws.token_bucket import TokenBucket


def test_it_gives_its_burst_and_then_its_rate() -> None:
    bucket = TokenBucket(2, 5, now_ns=0)
    assert [bucket.take(0) for _ in range(7)] == [True] * 5 + [False] * 2
    assert [bucket.take(NS_PER_S) for _ in range(3)] == [True, True, False]
    assert bucket.available(1000 * NS_PER_S) == 5


def test_without_a_rate_it_is_always_full() -> None:
    bucket = TokenBucket(None, 1, now_ns=0)
    assert all(bucket.take(0) for _ in range(100))


@given(st.lists(st.tuples(st.integers(-NS_PER_S, 3 * NS_PER_S), st.integers(1, 4)), max_size=30))
def test_it_never_gives_more_than_burst_and_rate(asked: list[tuple[int, int]]) -> None:
    """Even with times from several threads, out of order."""
    bucket, now_ns, latest_ns, given_out = TokenBucket(3, 6, now_ns=0), 0, 0, 0
    for step_ns, count in asked:
        now_ns += step_ns
        latest_ns = max(latest_ns, now_ns)
        there = bucket.available(now_ns)
        taken = bucket.take(now_ns, count)
        assert taken == (there >= count)
        given_out += count * taken
        assert given_out <= 6 + 3 * latest_ns / NS_PER_S + 1e-6
