"""``sbench history`` as a user types it, on hand-made runs."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from serverless_bench.features import history
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.archive import Archive
from tests.commands.command import Call
from tests.data.runs import S, header, job, lost, operation, outcome, record

PAGE = Path(history.__file__).with_name("README.md")
DAY_NS = 24 * 3600 * S
EQUAL = (1.0, 1.01, 0.99, 1.0, 1.01, 0.99, 1.0, 1.01)


def make_run(
    name: str, seconds: float, of: JobSpec | None = None, *, day: int = 0, version: str = "1"
) -> str:
    """Save a run in which the function needs so many seconds."""
    of = of or job(number=1)
    about = {**header(of), "run_id": name.replace("/", "-"), "created_ns": day * DAY_NS}
    about["provenance"] = {"client": {"attempts": "exact"}, "sbench": version}
    op = operation(end_ns=round(seconds * S), size=of.size or 1000)
    with Archive(Path(name), header=about, ledger=()) as archive:
        for index in range(of.number):
            archive.append(outcome(record(index, [op])))
    return name


def make_history(call: Call, seconds: Sequence[float] = EQUAL) -> None:
    for day, one in enumerate(seconds):
        make_run(f"past/{day}", one, day=day)
    code, out, err = call("history", "add", "past", "--label", "v1")
    assert (code, err) == (0, "")
    assert out.count("recorded: .sbench-history/write-wire-local-") == len(seconds)


@pytest.mark.parametrize(
    ("seconds", "code", "verdict"),
    [(1.0, 0, "passed"), (1.2, 9, "regressed"), (1.04, 10, "undecided")],
)
def test_verdicts_exit_codes_and_formats(
    call: Call, tmp_path: Path, seconds: float, code: int, verdict: str
) -> None:
    make_history(call)
    make_run("new", seconds, day=9, version="2")
    (tmp_path / "summary.md").write_text("before\n")
    ended, out, err = call("history", "check", "new", "--summary", "summary.md")
    assert (ended, err) == (code, "")
    lines = out.splitlines()
    assert lines[0].endswith("1 new run against 8 recorded runs of 8 sessions")
    assert lines[-1] == verdict
    assert "sbench is new: 2" in lines
    assert any("recorded runs were made at other times" in line for line in lines)
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith(f"before\n### {verdict}: write-wire-local-")
    assert summary.count("\n| ") == 5
    markdown = call("history", "check", "new", "--format", "markdown")[1]
    assert markdown == summary.removeprefix("before\n")
    found = json.loads(call("history", "check", "new", "--format", "json")[1])
    assert (found["verdict"], found["interleaved"], found["alpha"]) == (verdict, False, 0.05)
    rate, operations, time = found["figures"]
    listed = PAGE.read_text().partition("| field of the JSON | is |\n")[2].partition("\n\n")[0]
    assert {*re.findall(r"`(\w+)`", listed)} == {*found, *rate}
    names = [one["figure"] for one in (rate, operations, time)]
    assert names == ["throughput_bytes_per_s", "ops_per_s", "latency_s.p99"]
    assert operations["ratio"] == pytest.approx(1 / seconds, rel=0.01)
    assert rate["ratio"] == pytest.approx(1 / seconds, rel=0.01)
    assert time["ratio"] == pytest.approx(seconds, rel=0.01)
    for one in (rate, operations, time):
        low, high = one["interval"]
        assert low < one["ratio"] < high


def test_a_larger_tolerance_lets_more_pass(call: Call) -> None:
    make_history(call)
    make_run("new", 1.2, day=9)
    flags = ("--tolerance", "30%", "--power", "0.4", "--metric", "completion_s.p99")
    code, out, _ = call("history", "check", "new", *flags)
    assert (code, out.splitlines()[-1]) == (0, "passed")
    assert "throughput_bytes_per_s" not in out
    assert "tolerance 30%; power" in out
    assert "detecting a 40% loss" in out


def test_a_run_is_not_compared_with_itself_or_added_twice(call: Call) -> None:
    make_history(call)
    assert "against 7 recorded runs" in call("history", "check", "past/3")[1]
    out = call("history", "add", "past/3")[1]
    assert out.startswith("recorded before, left unchanged: .sbench-history/write-wire-local-")


def test_a_restart_discards_earlier_runs(call: Call) -> None:
    make_history(call)
    for day in range(8, 15):
        make_run(f"slow/{day}", 1.5 * (1 + day % 2 / 100), day=day)
    assert call("history", "add", "slow", "--restart", "--label", "accepted")[0] == 0
    make_run("new", 1.5, day=19)
    code, out, err = call("history", "check", "new")
    assert (code, out.splitlines()[-1], err) == (0, "passed", "")
    assert "against 7 recorded runs of 7 sessions" in out
    assert "8 recorded runs left out: of other work, or from before a restart" in out
    assert call("history", "ls", "write")[1].count("restart") == 1
    again = call("history", "add", "past", "--restart")[1]
    assert again.count("recorded before, left unchanged: ") == 8
    assert "accepted" in call("history", "ls", "write")[1]


def test_the_first_run_of_its_kind_is_undecided(call: Call) -> None:
    make_history(call, EQUAL[:1])
    make_run("two", 1.0, job(number=2))
    code, out, err = call("history", "check", "two")
    assert (code, out.splitlines()[-1]) == (10, "undecided")
    assert err == ""
    assert "against 0 recorded runs of 0 sessions" in out
    assert "a verdict needs 6 more recorded sessions; runs within an hour are a session" in out
    assert (
        json.loads(call("history", "check", "two", "--format", "json")[1])["figures"][0]["old"]
        is None
    )


def test_recorded_runs_are_shown(call: Call) -> None:
    make_history(call)
    make_run("more", 1.0, job(number=2))
    call("history", "add", "more", "--machine", "second")
    code, out, _ = call("history", "ls")
    assert code == 0
    assert len(out.splitlines()) == 3
    keys = [line.split()[0] for line in out.splitlines()[1:]]
    code, out, _ = call("history", "ls", "--format", "json")
    documents = json.loads(out)
    assert sorted(one["key"] for one in documents) == sorted(keys)
    eight = next(one for one in documents if len(one["runs"]) == 8)
    assert eight["sessions"] == 8
    assert eight["figures"]["completion_s.p99"]["last"] == pytest.approx(1.01)
    # The slope of 1 %, -2 %, 1 %, repeated, is almost zero.
    assert eight["figures"]["completion_s.p99"]["trend"] == pytest.approx(1, abs=0.01)
    text = call("history", "ls", eight["key"][-12:])[1]
    assert "client wire" in text
    assert text.count(" v1 ") == 8
    assert call("history", "ls", eight["key"], "--format", "markdown")[1].count("\n| ") > 20
    # A folder without runs is not a task.
    (Path(".sbench-history") / "write-0123456789ab").mkdir()
    assert len(call("history", "ls")[1].splitlines()) == 3
    assert call("history", "ls", "0123456789ab")[0] == 8
    assert "name second" in call("history", "ls", (set(keys) - {eight["key"]}).pop())[1]


def refusals(call: Call, tmp_path: Path) -> None:
    make_history(call, EQUAL[:1])
    make_run("new", 1.0, day=9)
    make_run("two", 1.0, job(number=2))
    make_run("large", 1.0, job(number=1, size=5000))
    about = {**header(job(number=1)), "run_id": "broken"}
    with Archive(tmp_path / "broken", header=about, ledger=()) as archive:
        archive.append(outcome(lost(0)))
    (tmp_path / "link.md").symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("code", "words", "arguments"),
    [
        (2, "broken cannot be compared: 1 function lost", ("add", "new", "broken")),
        (2, "broken cannot be compared: 1 function lost", ("check", "broken")),
        (8, "there is no run 'nowhere'", ("add", "nowhere")),
        (2, "--label has characters that cannot be printed", ("add", "new", "--label", "a\x1b")),
        (8, "there is no history in none", ("check", "new", "--history", "none")),
        (2, "the runs have different configurations", ("check", "new", "two")),
        (2, "no key has 'x/'", ("check", "new", "--against", "x/")),
        (2, "no key has 'zzz'", ("ls", "zzz")),
        (8, "there is no history in none", ("ls", "--history", "none")),
        (2, "has no ttfb_s.p50", ("check", "new", "--metric", "ttfb_s.p50")),
        (2, "'speed' is not a metric", ("check", "new", "--metric", "speed")),
        (
            2,
            "--tolerance: '5' is not a share above 0% and below 100%",
            ("check", "new", "--tolerance", "5"),
        ),
        (2, "--tolerance: 'nan' is not a share", ("check", "new", "--tolerance", "nan")),
        (2, "--power 0.05 is not above --tolerance 0.05", ("check", "new", "--power", "5%")),
        (2, "--new is missing", ("check", "--old", "sbench write")),
        (2, "--old and --new make new runs", ("check", "new", "--old", "a", "--new", "b")),
        (2, "--old is not a command: No closing quotation", ("check", "--old", "'a", "--new", "b")),
        (2, "cannot start ./no: No such file", ("check", "--old", "./no", "--new", "./no")),
        (2, "created 0 runs in", ("check", "--old", "true", "--new", "true")),
        (
            2,
            "ended with exit code 1: no error message",
            ("check", "--old", "false", "--new", "false"),
        ),
        (2, "--blocks must be at least 6", ("check", "--old", "a", "--new", "b", "--blocks", "5")),
        (2, "cannot write --summary no/x.md", ("check", "--old", "a", "--summary", "no/x.md")),
        (
            2,
            "cannot write --summary link.md: it is no regular file",
            ("check", "new", "--summary", "link.md"),
        ),
    ],
)
def test_mistakes_are_one_line(
    call: Call, tmp_path: Path, code: int, words: str, arguments: Sequence[str]
) -> None:
    refusals(call, tmp_path)
    before = sorted(tmp_path.rglob(".sbench-history/*/*"))
    ended, _, err = call("history", *arguments)
    assert ended == code
    (output,) = [line for line in err.splitlines() if line.startswith("sbench: ")]
    assert words in output
    assert sorted(tmp_path.rglob(".sbench-history/*/*")) == before


def test_a_file_that_git_left_in_conflict_is_named(call: Call, tmp_path: Path) -> None:
    make_history(call)
    make_run("new", 1.0, day=9)
    path = min(tmp_path.glob(".sbench-history/*/*.json"))
    path.write_text("<<<<<<< HEAD\n")
    for arguments in (("ls",), ("check", "new")):
        code, out, err = call("history", *arguments)
        assert (code, out) == (8, "")
        assert f"{path.name}: it is not JSON" in err
        assert "hint: remove it" in err
