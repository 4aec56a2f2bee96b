import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from docs.make_site import complete
from serverless_bench.job.operations import OperationKind
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.metrics.throughput import MissingFunctions
from serverless_bench.report import REPORTERS, open_reporter
from serverless_bench.report.base import completion, rows
from serverless_bench.rundir.record import BadRange, FoundBytes
from tests.data.runs import S, job, lost, operation, outcome, record, saved
from tests.house.members import uses

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def healthy(tmp_path: Path) -> Summary:
    outcomes = [
        outcome(record(i, [operation(start_ns=0, end_ns=(6 + i) * S, size=600_000_000)]))
        for i in range(4)
    ]
    of = job(number=4, concurrency=4, size=600_000_000)
    return summarize(saved(tmp_path / "healthy", outcomes, of=of))


@pytest.fixture
def troubled(tmp_path: Path) -> Summary:
    def bad(found: FoundBytes, **more: object) -> BadRange:
        return BadRange(
            operation=0,
            key="k.1000",
            offset=16,
            length=64,
            bad_bytes=63,
            found=found,
            **more,  # type: ignore[arg-type]
        )

    ranges = [
        bad(FoundBytes.ZEROS),
        bad(FoundBytes.MISSING),
        bad(FoundBytes.EXTRA),
        bad(FoundBytes.UNKNOWN),
        bad(FoundBytes.OTHER_OFFSET, found_offset=32),
        bad(FoundBytes.OTHER_GENERATION, found_generation=2, found_offset=16),
        bad(FoundBytes.OTHER_OBJECT, found_key_hash="00000000000000ff", found_offset=16),
    ]
    get = operation(kind=OperationKind.GET, error="corrupt", bad_bytes=63)
    outcomes = [
        outcome(record(0, [get], bad_ranges=ranges)),
        outcome(lost(1, "killed by SIGKILL")),
        outcome(record(2, [operation(kind=OperationKind.GET)])),
    ]
    of = job(number=3, workload="read", size=None)
    return summarize(saved(tmp_path / "troubled", outcomes, of=of))


def report(name: str, summary: Summary) -> str:
    out = io.StringIO()
    open_reporter(name)(replace(summary, argument=summary.name), out)
    return out.getvalue()


@uses("feature bottleneck", "feature cost", "feature why")
@pytest.mark.parametrize("name", [name for name in REPORTERS if name != "html"])
@pytest.mark.parametrize("case", ["healthy", pytest.param("troubled", marks=uses("workload read"))])
def test_reports_equal_the_golden_ones(
    name: str, case: str, request: pytest.FixtureRequest
) -> None:
    """Changes are accepted with `make golden`."""
    text = report(name, request.getfixturevalue(case))
    golden = GOLDEN / f"{case}.{name}.txt"
    if request.config.getoption("update_golden"):
        golden.write_text(text)
    assert text == golden.read_text()


def test_json_is_one_line_and_has_the_documented_fields(healthy: Summary) -> None:
    text = report("json", healthy)
    assert text.count("\n") == 1
    page = complete(Path(__file__).parents[3] / "docs" / "figures.md")
    undocumented = [name for name in json.loads(text) if f"`{name}`" not in page]
    assert undocumented == []


def test_json_has_the_promised_fields(healthy: Summary) -> None:
    promised = (
        "run_id workload requested ok failed lost duplicate bytes verified_bytes corrupt_objects"
        " peak_1s_bytes_per_s peak_5s_bytes_per_s steady_bytes_per_s throughput_bytes_per_s"
        " elapsed_s makespan_s completion_s per_function_bytes_per_s ttfb_s ack_s attempts"
        " retried_bytes cpu_s_per_gib peak_rss_bytes"
    )
    assert set(promised.split()) <= set(json.loads(report("json", healthy)))


def test_peak_steady_and_whole_stand_together(healthy: Summary) -> None:
    for name in ("full", "markdown"):
        text = report(name, healthy)
        assert all(
            word in text for word in ("peak, best 1 s", "peak, best 5 s", "steady", "average")
        )


def test_an_unfinished_run_says_so_in_its_first_line(healthy: Summary) -> None:
    unfinished = replace(healthy, ended=False, ok=3, lost=1, skipped_lines=2)
    first = report("full", unfinished).splitlines()[0]
    assert first == (
        "write: 3 of 4 functions ok, 0 failed, 1 lost, 0 duplicate;"
        " the driver has not ended this run; 2 unreadable lines skipped"
    )


def test_a_single_item_is_in_the_singular(troubled: Summary) -> None:
    (first, *_) = troubled.bad_ranges
    one = {**first, "found": "unknown", "bad_bytes": 1}
    alone = replace(
        troubled,
        warmup_operations=1,
        skipped_lines=1,
        missing_functions=MissingFunctions(
            count=1, throughput_bytes_per_s=(1e6, 2e6), per_function_p50_bytes_per_s=None
        ),
        bad_ranges=({**one, "length": 1}, {**one, "length": 9}),
    )
    text = report("full", alone)
    assert "; 1 unreadable line skipped; with the missing one 1.0 MB/s to 2.0 MB/s" in text
    assert "1 operation, not counted in rates" in text
    assert "1 byte at 16 is not what was written\n" in text
    assert "9 bytes at 16 are not what was written (1 of them differs)\n" in text


def test_an_imported_run_names_no_endpoint(healthy: Summary) -> None:
    """Other tools record the bucket, but not its endpoint."""
    for store, response in (("b at ", "b"), (" at http://s", "bucket not recorded at http://s")):
        assert f"store              {response}, concurrency 4" in report(
            "full", replace(healthy, store=store)
        )


def test_rates_of_one_table_have_one_unit(healthy: Summary) -> None:
    fast = replace(
        healthy, peak_1s_bytes_per_s=1.2e9, steady_bytes_per_s=9e8, throughput_bytes_per_s=8e8
    )
    text = report("full", fast)
    for rate in ("1200.0 MB/s", "900.0 MB/s", "800.0 MB/s"):
        assert rate in text
    assert "GB/s" not in text
    # Except for rates that would be unreadable in that unit.
    far_apart = report("full", replace(fast, throughput_bytes_per_s=5e6))
    assert "1.20 GB/s" in far_apart
    assert "5.0 MB/s" in far_apart


def test_missing_figures_have_a_reason(healthy: Summary) -> None:
    short = replace(healthy, peak_5s_bytes_per_s=None, elapsed_s=1.5, workers=0)
    short = replace(short, cpu_s_per_gib=None, peak_rss_bytes=None)
    text = report("full", short)
    assert "peak, best 5 s     - (the run took 1.5 s)" in text
    assert "wire, CPU time and memory not recorded" in text
    assert "local, not recorded" in text
    nothing = replace(healthy, peak_1s_bytes_per_s=None, peak_5s_bytes_per_s=None)
    nothing = replace(nothing, throughput_bytes_per_s=None, per_function_bytes_per_s=None)
    assert report("full", nothing).count("no bytes were moved") == 4


def test_completion_has_the_last_share_unless_all_took_as_long(healthy: Summary) -> None:
    done = {"p50": 0.63, "p90": 7.4, "p99": 9.0, "max": None}
    some = replace(healthy, completion_s=done)
    assert completion(some) == "50% 630 ms, 90% 7.4 s, 99% 9 s, all never"
    few = {"p50": 0.63, "p90": None, "p99": None, "max": None}
    assert completion(replace(healthy, completion_s=few)) == "50% 630 ms, 90% never, all never"


def test_one_is_one_and_small_is_readable(healthy: Summary) -> None:
    one = replace(healthy, planned_concurrency=1, object_bytes=64, cold_starts=1, bytes=2048)
    one = replace(one, steady_bytes_per_s=None)
    text = report("full", one)
    assert "2 KiB, objects of 64 B\n" in text
    assert "(never 90% of 1 function active for 3 s)" in text
    assert "concurrency 1" in text
    assert "1 cold start\n" in text


@uses("feature cost")
def test_without_prices_there_is_no_bill(healthy: Summary) -> None:
    assert "bill" not in dict(rows(healthy))
    shown = dict(rows(replace(healthy, store="gs://b at http://store")))
    assert shown["bill"] == ("none: the prices that come with sbench are AWS's alone, in dollars")


def test_threads_without_an_object_are_counted(healthy: Summary) -> None:
    assert "idle threads" not in dict(rows(healthy))
    reported = dict(rows(replace(healthy, threads=8, idle_threads=5)))["idle threads"]
    assert reported == "5 of 8 in each function, which has fewer objects than threads"


@pytest.mark.parametrize(
    ("opened", "attempts", "is_shown"),
    [
        (7380, 7380, True),
        (7000, 7380, True),
        (738, 7380, False),
        (None, 7380, False),
        (4, 4, False),
    ],
)
def test_connections_that_no_request_shares_are_shown(
    healthy: Summary, opened: int | None, attempts: int, *, is_shown: bool
) -> None:
    stats = replace(healthy.attempt_stats, attempts=attempts, new_connections=opened)
    summary = replace(healthy, attempt_stats=stats)
    text = f"{opened or 0:,} of {attempts:,} requests opened a new connection"
    for style in ("text", "full", "markdown"):
        assert (text in report(style, summary)) == is_shown


def test_plain_runs_have_operations_per_second(healthy: Summary) -> None:
    assert " operations         4 done, 0.444/s\n" in report("full", healthy)


def test_several_kinds_of_operations_have_a_total(tmp_path: Path) -> None:
    kinds = [OperationKind.PUT, OperationKind.GET, OperationKind.GET]
    made = [
        operation(index, start_ns=index * S, end_ns=(index + 1) * S, size=10**7, kind=kind)
        for index, kind in enumerate(kinds)
    ]
    text = report("full", summarize(saved(tmp_path / "mix", [outcome(record(0, made))])))
    table = text.partition("operations\n")[2].partition("durations")[0]
    row = {line.split()[0]: line.split()[1:] for line in table.splitlines() if " all " in line}
    assert row["total"][:4] == ["all", "3", "0", "1"]
    assert row["total"][4:] == ["28.6", "MiB", "10.0", "MB/s"]
    assert (row["put"][1], row["get"][1]) == ("1", "2")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("variable", "colored"), [("TERM", True), ("NO_COLOR", False)])
def test_a_terminal_is_filled_and_styled_unless_the_user_wants_no_color(
    healthy: Summary, monkeypatch: pytest.MonkeyPatch, *, variable: str, colored: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    out = _Terminal()
    open_reporter("full")(healthy, out)
    first, *lines = out.getvalue().splitlines()
    assert first.startswith("\x1b[1m") is colored
    assert ("\x1b[" in "".join(lines)) is colored
    shown = [line.replace("\x1b[2m", "").replace("\x1b[0m", "") for line in lines]
    assert max(map(len, shown)) <= 60


@uses("feature bottleneck")
@pytest.mark.parametrize(
    ("polled", "words"),
    [(False, "launch (2 of 2 functions)"), (True, "waiting for a worker (2 of 2 functions)")],
)
def test_workers_are_not_launched_by_the_driver(
    healthy: Summary, words: str, *, polled: bool
) -> None:
    from serverless_bench.features.bottleneck.causes import Bottleneck

    slow = Bottleneck(functions={"launch": 2})
    out = io.StringIO()
    changed = replace(healthy, polled=polled, parts={**healthy.parts, "bottleneck": slow})
    open_reporter("full")(changed, out)
    (line,) = [line for line in out.getvalue().splitlines() if "bottleneck" in line]
    assert line.endswith(f"  {words}")
