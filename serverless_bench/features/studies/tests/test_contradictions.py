"""Checks of published rows find impossible figures, and report no others."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.features.studies import names
from serverless_bench.features.studies.contradictions import ROUNDING, SHORTER, contradictions
from serverless_bench.features.studies.definition import Study
from serverless_bench.features.studies.loading import load_study, parse

HEAD = """
title = "Sizes"
question = "Do sizes matter?"
null_hypothesis = "They do not."
[seed]
source = "a study"
date = 2026-11-23
[small]
min_bytes = "1kB"
settings = { objects = 3 }
[paper]
min_bytes = "1kB"
settings = { objects = 3 }
[[axes]]
name = "size"
setting = "size"
values = ["1KiB", "1MiB", "16MiB"]
[[axes]]
name = "client"
values = ["wire", "boto3"]
"""
METRICS = {
    "took": ("elapsed_s", "s"),
    "took_ms": ("latency_s.p50", "ms"),
    "rate": ("throughput_bytes_per_s", "MB/s"),
    "ops": ("ops_per_s", ""),
    "failed": ("failed_attempts_share", "%"),
}
ERRATA = {
    "concurrency-knee": [],
    "model-streamer-concurrency": [],
    "python-range-readers": [
        ("failures", "client=aiohttp size=128KiB"),
        ("failures", "client=obstore size=4MiB"),
        ("failures", "client=obstore size=8MiB"),
        ("failures", "client=httpx size=16KiB"),
        *(("failures", f"client=fsspec size={n}KiB") for n in (16, 32, 64, 128, 256, 512)),
        *(("failures", f"client=fsspec size={n}MiB") for n in (1, 2, 4, 8)),
        *(("link", f"client=fsspec size={n}KiB") for n in (64, 128, 256, 512)),
        *(("link", f"client=fsspec size={n}MiB") for n in (1, 2, 4, 8)),
    ],
    "sai3-prestat": [
        *(("link", f"size={n}MiB stat={stat}") for n in (4, 8) for stat in ("off", "on")),
    ],
    "sai3-range-engine": [
        *(("link", f"size={n}MiB engine={on}") for n in (4, 8, 16, 32) for on in ("off", "on")),
        ("repeats", "size=32MiB engine=off"),
    ],
    "sebs-flow-parallel-download": [
        ("grows", "platform=AWS 2024 size=256MiB"),
        ("grows", "platform=GCP 2024 size=256MiB"),
        ("grows", "platform=Azure 2024 size=256MiB"),
        ("grows", "platform=AWS 2024 size=256MiB"),
    ],
    "skyrise-latency": [],
    "small-objects-stores": [
        ("repeats", "store=R2 phase=mix"),
        ("amount", "store=R2 phase=mix"),
        *(
            ("order", f"store=S3 Express from Lambda phase={size} in files of 10 KiB")
            for size in ("50 MiB", "500 MiB", "5 GiB")
        ),
    ],
}
"""Findings of the checks of each study: the kind of check, and the row."""


def made(check: str, rows: Iterable[str]) -> Study:
    """A study with one check and these rows."""
    metrics = "".join(
        f'[[metrics]]\nname = "{name}"\nof = "{of}"\nunit = "{unit}"\n'
        for name, (of, unit) in METRICS.items()
    )
    published = "".join(f"[[published]]\n{row}\n" for row in rows)
    return parse(f'{HEAD}{metrics}[[checks]]\ntext = "No."\n{check}\n{published}', "made")


def texts(check: str, *rows: str) -> list[str]:
    return [one.text for one in contradictions(made(check, rows))]


def test_every_study_with_checks_is_listed_below() -> None:
    assert {name for name in names() if load_study(name).checks} == set(ERRATA)


@pytest.mark.parametrize("name", ERRATA)
def test_the_errata_of_a_study_are_found_in_its_rows(name: str) -> None:
    found = [
        (type(one.check).__name__.lower(), one.text.partition(":")[0])
        for one in contradictions(load_study(name))
    ]
    assert sorted(found) == sorted(ERRATA[name])


def test_the_reads_that_are_not_printed_follow_from_the_mix() -> None:
    """42.6 is 20 % of 212.5, so there were 170 reads per second."""
    (found,) = [
        one.text
        for one in contradictions(load_study("small-objects-stores"))
        if one.metrics == ("reads_per_s",)
    ]
    assert found.endswith("is 200,446 in all, not 800,000: that would be 170")


SIZED = ("1KiB", "1MiB", "16MiB")


@given(st.lists(st.floats(min_value=0.001, max_value=1e6), min_size=3, max_size=3))
def test_only_a_time_that_falls_by_a_fifth_is_found(took: list[float]) -> None:
    # The order differs from that of the sizes, but sizes are compared.
    order = (2, 0, 1)
    rows = [f'at = {{ size = "{SIZED[n]}" }}\ntook = {took[n]!r}' for n in order]
    falls = [n for n in (1, 2) if took[n] < (1 - SHORTER) * max(took[:n])]
    found = texts('kind = "grows"\nmetric = "took"\nalong = "size"', *rows)
    assert [text.partition(":")[0] for text in found] == [f"size={SIZED[n]}" for n in falls]


def test_lines_of_other_axes_are_not_compared() -> None:
    check = 'kind = "grows"\nmetric = "took"\nalong = "size"'
    first = 'at = { size = "1KiB", client = "wire" }\ntook = 9'
    assert not texts(check, first, 'at = { size = "1MiB", client = "boto3" }\ntook = 1')
    assert texts(check, first, 'at = { size = "1MiB", client = "wire" }\ntook = 1')


@pytest.mark.parametrize(
    ("metric", "within", "beyond"),
    [("rate", 124, 126), ("ops", 119, 120), ("took", 0.0084, 0.0083), ("took_ms", 8.4, 8.3)],
)
def test_a_link_holds_rates_operations_and_times(metric: str, within: float, beyond: float) -> None:
    """1 Gbps is 125 MB/s: 119.2 MiB per second, and 8.389 ms for each."""
    check = f'kind = "link"\nmetric = "{metric}"\nalong = "size"\nmost = 1\nunit = "Gbps"'
    row = 'at = {{ size = "1MiB" }}\n{} = {}'
    assert not texts(check, row.format(metric, within))
    assert texts(check, row.format(metric, beyond))
    fixed = check.replace('along = "size"', 'bytes = "1MiB"')
    assert texts(fixed, f'at = {{ client = "wire" }}\n{metric} = {beyond}')


def test_failures_above_a_hundredth_are_no_throughput() -> None:
    check = 'kind = "failures"\nmetric = "ops"\nfailed = "failed"'
    row = 'at = {{ size = "1MiB" }}\nops = 100\nfailed = {}'
    assert not texts(check, row.format(0.9))
    (found,) = texts(check, row.format(75))
    assert found == "size=1MiB: 75.0% of 100 ops failed: 25 succeeded"
    assert not texts(check, 'at = { size = "1MiB" }\nops = 100')


@pytest.mark.parametrize("amounts", ["amounts = { wire = 1000e6, boto3 = 500e6 }", ""])
def test_a_rate_times_its_time_is_the_amount(amounts: str) -> None:
    check = f'kind = "amount"\nmetric = "rate"\ntime = "took"\nalong = "client"\n{amounts}'
    good = 'at = {{ client = "{}" }}\nrate = {}\ntook = 10'
    wire, other = good.format("wire", 100), good.format("boto3", 50 if amounts else 101)
    assert not texts(check, wire, other)
    beyond = 100 * (1 + 2 * ROUNDING)
    third = good.format("wire", beyond)
    (found,) = texts(check, third, other, wire if not amounts else other)
    assert found.startswith("client=wire: 104 MB/s for 10 s is 1.04e+09 in all")


def test_figures_that_repeat_are_found_between_rows_and_within_one() -> None:
    rows = ['at = { client = "wire" }\nops = 5\ntook = 3', 'at = { client = "boto3" }\nops = 5\n']
    check = 'kind = "repeats"\nmetrics = ["ops", "took"]\nalong = "client"'
    assert not texts(check, *rows)
    assert not texts(check, rows[0], rows[1] + "took = 4")
    (found,) = texts(check, rows[0], rows[1] + "took = 3")
    assert found == "client=boto3: 5 ops, 3 s: all as with client=wire"
    within = 'kind = "repeats"\nmetrics = ["ops", "took"]\nothers = ["rate", "took_ms"]'
    one = 'at = { client = "wire" }\nops = 5\ntook = 3\nrate = 5\ntook_ms = '
    assert not texts(within, f"{one}3000.5")
    assert texts(within, f"{one}3")


def test_percentiles_rise_in_any_units() -> None:
    check = 'kind = "order"\nmetrics = ["took_ms", "took"]'
    assert not texts(check, 'at = { client = "wire" }\ntook_ms = 999\ntook = 1')
    assert texts(check, 'at = { client = "wire" }\ntook_ms = 1001\ntook = 1')


def test_where_keeps_a_check_to_some_rows() -> None:
    check = 'kind = "order"\nmetrics = ["took_ms", "took"]\nwhere = { client = "wire" }\n'
    assert not texts(check, 'at = { client = "boto3" }\ntook_ms = 1001\ntook = 1')


@pytest.mark.parametrize("value", ['"words"', "0", "-1", "[1, 2]"])
def test_figures_that_are_not_numbers_are_not_checked(value: str) -> None:
    row = f'at = {{ size = "1MiB" }}\ntook = {value}\nops = {value}\nrate = {value}'
    for check in (
        'kind = "grows"\nmetric = "took"\nalong = "size"',
        'kind = "link"\nmetric = "took"\nbytes = 1\nmost = 9\nunit = "GB/s"',
        'kind = "amount"\nmetric = "rate"\ntime = "took"',
    ):
        assert not texts(check, row)


@pytest.mark.parametrize(
    ("check", "says"),
    [
        ("kind = {}", "kind must be text"),
        ('kind = "guess"', "there is no kind 'guess'"),
        ('kind = "grows"\nmetric = "took"', "missing required field 'along'"),
        ('kind = "grows"\nmetric = "took"\nalong = "nope"', "there is no 'nope'"),
        ('kind = "order"\nmetrics = ["nope", "took"]', "there is no 'nope'"),
        ('kind = "repeats"\nmetrics = ["took"]\nalong = "size"', "two or more"),
        ('kind = "repeats"\nmetrics = ["took", "ops"]\nothers = ["rate"]', "two or more"),
        ('kind = "repeats"\nmetrics = ["took", "ops"]', "two or more"),
        ('kind = "link"\nmetric = "ops"\nmost = 1\nunit = "Gbps"', "is not a rate of bytes"),
        ('kind = "link"\nmetric = "rate"\nmost = 1\nunit = "s"', "a unit of bytes per second"),
        ('kind = "order"\nmetrics = ["took", "ops"]\nmore = 1', "unknown field 'more'"),
    ],
)
def test_an_empty_check_is_refused(check: str, says: str) -> None:
    with pytest.raises(UsageError, match="checks 1") as caught:
        made(check, [])
    assert says in str(caught.value)
