import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import KIB, MIB
from serverless_bench.job.sizes import parse_sizes
from tests.tables import each_row

TEXTS = [
    "64MiB",
    "1001",
    "1kB",
    "2GB",
    "uniform:1MiB:8MiB",
    "uniform:7:7",
    "loguniform:4KiB:64MiB",
    "loguniform:5:5",
    "lognormal:1MiB:512KiB:1KiB:10MiB",
    "lognormal:1MiB:4MiB:512KiB:2MiB",
    "buckets:4KiB=10,64KiB=30,1MiB=60",
    "buckets:1=0.5,3=0",
]
bounds = st.tuples(st.integers(1, 10**12), st.integers(1, 10**12)).map(sorted)


@each_row("text", TEXTS)
def test_a_distribution_says_itself_again(text: str) -> None:
    assert str(parse_sizes(text)) == text
    assert parse_sizes(f" {text} ") == parse_sizes(text)


@each_row("text", TEXTS)
def test_draws_have_the_mean_and_stay_below_the_maximum(text: str) -> None:
    sizes, source = parse_sizes(text), random.Random(5)
    drawn = [sizes.draw(source) for _ in range(20_000)]
    assert 1 <= min(drawn) <= max(drawn) <= sizes.maximum()
    assert fmean(drawn) == pytest.approx(sizes.mean(), rel=0.04)
    assert sizes.maximum() == max(drawn) or "uniform" in text or "normal" in text


@given(
    st.sampled_from(["uniform", "loguniform"]),
    bounds,
    st.integers(),
)
def test_bounded_distributions_stay_within_bounds(kind: str, limits: list[int], seed: int) -> None:
    low, high = limits
    sizes = parse_sizes(f"{kind}:{low}:{high}")
    source = random.Random(seed)
    assert all(low <= sizes.draw(source) <= high for _ in range(5))
    assert low <= sizes.mean() * (1 + 1e-9)
    assert sizes.mean() <= high * (1 + 1e-9)
    assert parse_sizes(str(sizes)) == sizes


@given(st.integers(1, 10**12), st.integers(1, 10**15), bounds, st.integers())
def test_lognormal_sizes_stay_within(
    centre: int, deviation: int, limits: list[int], seed: int
) -> None:
    low, high = limits
    sizes = parse_sizes(f"lognormal:{centre}:{deviation}:{low}:{high}")
    assert low <= sizes.draw(random.Random(seed)) <= high
    assert low * (1 - 1e-9) <= sizes.mean() <= high * (1 + 1e-9)
    assert parse_sizes(str(sizes)) == sizes


@given(st.dictionaries(st.integers(1, 10**12), st.floats(0.001, 1e6), min_size=1, max_size=9))
def test_buckets_contain_the_stated_shares(weights: dict[int, float]) -> None:
    text = "buckets:" + ",".join(f"{size}={weight!r}" for size, weight in weights.items())
    sizes = parse_sizes(text)
    assert sizes.draw(random.Random(1)) in weights
    assert str(parse_sizes(str(sizes))) == str(sizes)


def test_lognormal_without_effective_bounds_has_mean_and_deviation_as_asked() -> None:
    sizes, source = parse_sizes("lognormal:1000000:500000:1:1TB"), random.Random(1)
    drawn = [sizes.draw(source) for _ in range(40_000)]
    assert sizes.mean() == pytest.approx(1_000_000)
    spread = fmean((size - 1_000_000) ** 2 for size in drawn) ** 0.5
    assert spread == pytest.approx(500_000, rel=0.05)
    assert sum(size < 1_000_000 for size in drawn) > 20_000


def test_every_doubling_is_as_likely() -> None:
    sizes, source = parse_sizes("loguniform:1KiB:16KiB"), random.Random(1)
    drawn = [sizes.draw(source) for _ in range(20_000)]
    for low in (1, 2, 4, 8):
        share = sum(low * KIB <= size < 2 * low * KIB for size in drawn) / 20_000
        assert share == pytest.approx(0.25, abs=0.02)


def test_the_mean_equals_warps() -> None:
    # From the comment on its GetExpRandSize.
    assert parse_sizes(f"loguniform:{MIB // 256}:{MIB}").mean() / MIB == pytest.approx(
        0.179151, rel=0.005
    )


@each_row(
    ("text", "words"),
    [
        ("", "is not a size"),
        ("0", "is not a size"),
        ("normal:1:2", "is not a distribution"),
        ("uniform:1MiB", "has 1 sizes"),
        ("uniform:8MiB:1MiB", "has a lowest size above the highest"),
        ("loguniform:0:1MiB", "'0' is not a size"),
        ("lognormal:1MiB:1MiB", "has 2 sizes"),
        ("lognormal:1MiB:1MiB:9:8", "above"),
        ("buckets:", "not a size with a weight"),
        ("buckets:4KiB", "not a size with a weight"),
        ("buckets:4KiB=-1", "not a size with a weight"),
        ("buckets:4KiB=nan", "not a size with a weight"),
        ("buckets:4KiB=0", "no weight above 0"),
        ("buckets:4KiB=1e999", "too large"),
        ("listing:/does/not/exist", "is not a distribution"),
    ],
)
def test_invalid_distributions_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_sizes(text)
