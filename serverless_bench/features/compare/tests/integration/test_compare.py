"""Comparisons and fits as a user makes them: of saved runs, and with new runs."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import serverless_bench as sb
from serverless_bench.clients import CLIENTS
from serverless_bench.driver.boto import open_s3
from serverless_bench.features.compare.run_comparison import compare
from serverless_bench.features.compare.verdict import Verdict
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.workload import Load
from serverless_bench.rundir.archive import Archive
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import Call, Sbench
from tests.data.runs import TARGET, S, header, job, lost, operation, outcome, record
from tests.house.members import uses
from tests.stores.servers import Server, credentials

JOB = job(number=1)


def make_run(
    path: Path, seconds: float, of: JobSpec = JOB, *, created_ns: int = 0, size: int = 1000
) -> Path:
    """Save a run in which every function needs so many seconds."""
    client = {"attempts": "exact", "shows": sorted(CLIENTS.load(of.target.client).info.shows)}
    about = {**header(of), "run_id": str(path), "created_ns": created_ns}
    about["provenance"] = {"client": client}
    with Archive(path, header=about, ledger=()) as archive:
        for index in range(of.number):
            kind = OperationKind.GET if of.workload == "read" else OperationKind.PUT
            op = operation(end_ns=round(seconds * S), size=of.size or size, kind=kind)
            archive.append(outcome(record(index, [op])))
    return path


def make_side(
    path: Path,
    seconds: Sequence[float],
    of: JobSpec = JOB,
    *,
    first_ns: int = 0,
    size: int = 1000,
) -> Path:
    for number, one in enumerate(seconds):
        make_run(path / str(number), one, of, created_ns=first_ns + 2 * number, size=size)
    return path


BASE = (1.0, 1.01, 1.02, 1.03, 1.04, 1.05)


def test_a_side_that_is_a_run_has_its_name(tmp_path: Path) -> None:
    made = make_side(tmp_path / "runs", BASE)
    one, other, another = (load_run(made / name) for name in "012")
    sides = sb.compare(one, [other, another]).to_json()["sides"]
    assert [side["directory"] for side in sides] == [str(one.path), str(made)]


@pytest.mark.parametrize(
    ("other", "code", "verdict"),
    [
        ((2.0, 2.01, 2.02, 2.03, 2.04, 2.05), 9, "slower"),
        ((0.5, 0.51, 0.52, 0.53, 0.54, 0.55), 0, "faster"),
        ((1.001, 1.011, 1.021, 1.031, 1.041, 1.051), 0, "same"),
        ((0.7, 1.0, 1.1, 1.3, 0.9, 1.2), 10, "undecided"),
        ((2.0, 2.01, 2.02, 2.03, 2.04), 10, "not enough runs"),
    ],
)
def test_verdicts_and_exit_codes(
    call: Call, tmp_path: Path, other: Sequence[float], code: int, verdict: str
) -> None:
    make_side(tmp_path / "a", BASE)
    client = replace(JOB, target=replace(JOB.target, client="boto3"))
    make_side(tmp_path / "b", other, client, first_ns=1)
    ended, out, err = call("compare", "a", "b")
    assert (ended, err) == (code, "")
    assert f"B against A: {verdict}" in out
    assert "target.client differs: wire, boto3" in out
    assert call("compare", "a", "b", "--format", "markdown")[1].count(f"**{verdict}**") == 1
    found = json.loads(call("compare", "a", "b", "--format", "json")[1])
    (comparison,) = found["comparisons"]
    assert comparison["verdict"] == verdict
    assert (comparison["evidence"] is None) == (verdict == "not enough runs")
    assert [side["runs"] for side in found["sides"]] == [6, len(other)]
    assert (found["metric"], found["alpha"], found["threshold"]) == (
        "throughput_bytes_per_s",
        0.05,
        0.05,
    )
    assert found["differing"] == {"target.client": ["wire", "boto3"]}


def test_a_side_may_be_runs_directories_of_runs_and_lists_of_both(tmp_path: Path) -> None:
    first, second = make_side(tmp_path / "a", BASE[:2]), make_side(tmp_path / "b", BASE[2:])
    listed: list[str | Path | Run] = [
        *(first, str(second / "0"), load_run(second / "1")),
        *(second / "2", second / "3"),
    ]
    other = make_side(tmp_path / "other", (2.0, 2.01, 2.02, 2.03, 2.04, 2.05))
    found = compare(listed, other)
    assert [side["runs"] for side in found.to_json()["sides"]] == [6, 6]
    assert found.verdict is Verdict.SLOWER


def test_a_side_may_mix_relative_and_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, _ = make_side(tmp_path / "side", BASE[:2]), make_side(tmp_path / "other", BASE)
    monkeypatch.chdir(tmp_path)
    found = compare([Path("side", "0"), side / "1"], "other")
    assert [one["directory"] for one in found.to_json()["sides"]] == [str(side), "other"]


def test_slower_precedes_undecided_and_less_may_be_better(call: Call, tmp_path: Path) -> None:
    # By name, as other commands accept runs, or by path.
    make_side(tmp_path / "runs" / "a", BASE)
    make_side(tmp_path / "runs" / "b", (0.7, 1.0, 1.1, 1.3, 0.9, 1.2))
    make_side(tmp_path / "c", (2.0, 2.01, 2.02, 2.03, 2.04, 2.05))
    code, out, _ = call(
        "compare", "a", "b", "c", "--run-dir", "runs", "--metric", "completion_s.p99"
    )
    assert code == 9
    assert "less is better" in out
    assert out.startswith("completion time, p99, less is better;")
    # All ratios of a line are rounded in the same way.
    assert re.search(
        r"C against A: slower, ratio of geometric means x1\.9\d\d \(1\.\d{3} to \d\.\d{3} with"
        r" 95% confidence\), p ",
        out,
    )


@pytest.mark.parametrize("metric", ["ops_per_s", "put.ops_per_s", "latency_s.p50", "put.p99"])
def test_operations_and_their_latencies_are_metrics(
    call: Call, tmp_path: Path, metric: str
) -> None:
    make_side(tmp_path / "a", BASE)
    make_side(tmp_path / "b", (2.0, 2.01, 2.02, 2.03, 2.04, 2.05))
    code, out, _ = call("compare", "a", "b", "--metric", metric, "--format", "json")
    (comparison,), values = json.loads(out)["comparisons"], json.loads(out)["sides"][0]["values"]
    assert (code, comparison["verdict"]) == (9, "slower")
    of_runs = [json.loads(call("report", f"a/{n}", "--format", "json")[1]) for n in range(6)]
    (puts,) = {row["kind"]: row for row in of_runs[0]["latencies"]["by_kind"]}.values()
    expected = {
        "ops_per_s": of_runs[0]["ops_per_s"],
        "put.ops_per_s": puts["operations_per_s"],
        "latency_s.p50": of_runs[0]["latency_s"]["p50"],
        "put.p99": puts["latency"]["percentiles_s"]["p99"],
    }
    assert values[0] == expected[metric]
    text = call("compare", "a", "b", "--metric", metric)[1]
    assert re.search(r"median \S+/s," if "ops" in metric else r"median \S+ m?s,", text)


def test_sides_that_took_no_turns_get_a_note(call: Call, tmp_path: Path) -> None:
    make_side(tmp_path / "a", BASE)
    make_side(tmp_path / "b", BASE, first_ns=100)
    assert "one side ended before the other started" in call("compare", "a", "b")[1]
    assert "their settings are the same" in call("compare", "a", "b")[1]


def refusals(tmp_path: Path) -> None:
    make_side(tmp_path / "a", BASE)
    make_side(tmp_path / "more", BASE, job(number=2))
    make_side(tmp_path / "silent", BASE, replace(JOB, target=replace(TARGET, client="awscrt")))
    make_side(tmp_path / "mixed", BASE)
    make_run(tmp_path / "mixed" / "boto3", 1, replace(JOB, executor="inline"))
    make_side(tmp_path / "broken", BASE)
    about = {**header(JOB), "run_id": "broken"}
    with Archive(tmp_path / "broken" / "9", header=about, ledger=()) as archive:
        archive.append(outcome(lost(0)))
    make_side(tmp_path / "open", BASE)
    records = tmp_path / "open" / "2" / "records.jsonl"
    records.write_text(records.read_text().splitlines()[0] + "\n")


@uses("client awscrt")
@pytest.mark.parametrize(
    ("code", "words", "arguments"),
    [
        (2, "did different work: number is 1 or 2", ("a", "more")),
        (2, "mixed differ in their configuration: executor is local or inline", ("a", "mixed")),
        (2, "broken/9 cannot be compared: 1 function lost", ("a", "broken")),
        (2, "open/2 cannot be compared: its driver did not exit normally", ("a", "open")),
        (2, "are the same run", ("a", "a")),
        (2, "1 side cannot be compared", ("a",)),
        (2, "'speed' is not a metric", ("a", "more", "--metric", "speed")),
        (2, "mean latency_s.p99, or get.p99", ("a", "more", "--metric", "p99")),
        (2, "has no get.p99", ("a", "silent", "--metric", "get.p99")),
        (2, "has no ttfb_s.p50", ("a", "more", "--metric", "ttfb_s.p50", "--allow", "bytes")),
        (
            2,
            "has no ack_s.p50: awscrt does not show when the last byte was acknowledged\nhint:",
            ("a", "silent", "--metric", "ack_s.p50"),
        ),
        (
            2,
            "--threshold: '5' is not a share above 0% and below 100%",
            ("a", "more", "--threshold", "5"),
        ),
        (8, "there is no run 'nowhere'", ("a", "nowhere")),
    ],
)
def test_incomparable_runs_are_refused(
    call: Call, tmp_path: Path, code: int, words: str, arguments: Sequence[str]
) -> None:
    refusals(tmp_path)
    extra = ("--allow", "number") if "--allow" in arguments else ()
    ended, out, err = call("compare", *arguments, *extra)
    assert (ended, out) == (code, "")
    assert words in err
    assert "Traceback" not in err


FOR_A_TIME = replace(JOB, size=None, duration=1.0)
GETS = replace(FOR_A_TIME, workload="mixed", size=1000, load=Load(mix=(("get", 1.0),)))


@pytest.mark.parametrize(
    ("a", "b", "name", "hint"),
    [
        (
            replace(FOR_A_TIME, load=Load(sizes="uniform:1KiB:8KiB")),
            replace(FOR_A_TIME, load=Load(sizes="uniform:1MiB:8MiB")),
            "load.sizes is uniform:1KiB:8KiB or uniform:1MiB:8MiB",
            "the same --sizes; --allow load.sizes",
        ),
        (
            GETS,
            replace(GETS, load=Load(mix=(("put", 1.0),))),
            "load.mix is",
            "the same --mix; --allow load.mix",
        ),
        (
            replace(GETS, load=replace(GETS.load, rate=10.0)),
            replace(GETS, load=replace(GETS.load, rate=20.0)),
            "load.rate is 10.0 or 20.0",
            "the same --rate",
        ),
        (
            FOR_A_TIME,
            replace(FOR_A_TIME, workload="read"),
            "workload is write or read",
            "compare writes with writes",
        ),
    ],
)
def test_a_duration_does_not_make_other_work_comparable(
    call: Call, tmp_path: Path, a: JobSpec, b: JobSpec, name: str, hint: str
) -> None:
    make_side(tmp_path / "a", BASE, a)
    make_side(tmp_path / "b", BASE, b)
    code, _, err = call("compare", "a", "b")
    assert code == 2
    assert f"did different work: {name}" in err
    assert hint in err
    assert "--allow workload" not in err


def test_timed_reads_use_objects_of_one_size(call: Call, tmp_path: Path) -> None:
    reads = replace(FOR_A_TIME, workload="read")
    for name, size in (("a", 4500), ("alike", 5000), ("b", 4_500_000)):
        make_side(tmp_path / name, BASE, reads, size=size)
    code, _, err = call("compare", "a", "b")
    assert code == 2
    assert "mean_object_bytes is 4500 or 4500000" in err
    assert call("compare", "a", "alike")[0] == 0
    assert call("compare", "a", "b", "--allow", "mean_object_bytes")[0] != 2


@uses("client awscrt")
def test_differences_may_be_allowed(call: Call, tmp_path: Path) -> None:
    refusals(tmp_path)
    code, out, _ = call("compare", "a", "more", "--allow", "number", "--allow", "bytes")
    assert code == 0
    assert "number differs: 1, 2" in out


def test_scipy_is_required_before_any_run(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    for words in (
        ("scale",),
        ("history", "check", "--old", "sbench write", "--new", "sbench write"),
    ):
        code, _, err = call(*words)
        assert code == 3
        assert re.search(r"pip install .*'scipy>=", err)


@uses("feature ab")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('command = "demo"', "a.toml: unknown command 'demo'"),
        ("number = 1", "a.toml: command is missing"),
        ('command = "write"\nnumbr = 1', "a.toml: write has no flag 'numbr'"),
        ('command = "write"\nname = "x"', "a.toml: write has no flag 'name'"),
        ('command = "write"\nnumber = "many"', "a.toml: number must be a whole number, got 'many'"),
        ('command = "write"\nclient = "nope"', "a.toml: unknown client 'nope'"),
        ("command =", "cannot read the job file a.toml"),
    ],
)
def test_a_job_file_is_checked_before_anything_runs(
    call: Call, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "a.toml").write_text(text)
    (tmp_path / "b.toml").write_text('command = "write"')
    code, out, err = call("ab", "a.toml", "b.toml")
    assert (code, out) == (3 if "nope" in text else 2, "")
    assert words in err


@uses("feature ab")
def test_too_few_blocks_allow_no_verdict(call: Call, tmp_path: Path) -> None:
    for name in ("a.toml", "b.toml"):
        (tmp_path / name).write_text('command = "write"')
    assert "--blocks must be at least 6" in call("ab", "a.toml", "b.toml", "--blocks", "5")[2]


def test_ab_takes_turns_and_cleans_up(sbench: Sbench, embedded: Server) -> None:
    task = 'command = "write"\nexecutor = "inline"\nnumber = 2\nprefix = "ab/"\n'
    # Drawn from the seed: both sides move the same bytes.
    task += 'sizes = "uniform:50KB:150KB"\n'
    (sbench.directory / "a.toml").write_text(task)
    (sbench.directory / "b.toml").write_text(task + 'block_size = "64KiB"\n')
    done = sbench(
        *("ab", "a.toml", "b.toml", "--blocks", 6, "--warm-up-blocks", 1, "--name", "x"),
        *("--threshold", "0.9", "--format", "json"),
    )
    assert done.code in {0, 9, 10}, done.err
    assert done.json["differing"] == {"transfer.block_size": [1 << 20, 64 << 10]}
    assert done.json["interleaved"]
    assert [side["runs"] for side in done.json["sides"]] == [6, 6]
    assert done.err.count("block ") == 12
    runs = sbench.directory / "sbench-runs" / "x"
    made = sorted(str(file.parent.relative_to(runs)) for file in runs.rglob("run.json"))
    assert made == [f"{side}/{n}" for side in "ab" for n in (*range(1, 7), "warm-up/1")]
    with credentials(embedded.environment):
        s3 = open_s3(Target(bucket=embedded.bucket, endpoint_url=embedded.endpoint_url))
        assert "Contents" not in s3.list_objects_v2(Bucket=embedded.bucket, Prefix="ab/")
    again = sbench("compare", runs / "a", runs / "b", "--threshold", "0.9", "--format", "json")
    assert again.code == done.code
    assert again.json["comparisons"] == done.json["comparisons"]


@uses("feature ab")
def test_a_run_that_fails_ends_a_series_with_its_code(sbench: Sbench) -> None:
    task = 'command = "read"\nexecutor = "inline"\nkey = "sbench/none"\n'
    for name in ("a.toml", "b.toml"):
        (sbench.directory / name).write_text(task)
    done = sbench("ab", "a.toml", "b.toml", "--name", "x")
    assert done.code == 6
    assert "ended with exit code 6" in done.err


@uses("feature scale")
def test_scale_runs_every_number_and_fits(sbench: Sbench) -> None:
    done = sbench(
        *("scale", "--numbers", "1,2,4", "--repeats", 1, "--size", "100KB", "--keep"),
        *("--name", "s", "--format", "json"),
    )
    assert done.code == 0, done.err
    whole = done.json["throughput_bytes_per_s"]
    assert [(row["number"], row["runs"]) for row in whole["rows"]] == [(1, 1), (2, 1), (4, 1)]
    assert whole["reach"] == 8
    runs = sbench.directory / "sbench-runs" / "s"
    for path in runs.glob("*/run.json"):
        assert load_run(path.parent).job.concurrency == int(path.parent.name.split("-")[0])
    again = sbench("scale", "--from", runs, "--format", "json")
    assert again.json == done.json


def make_series(path: Path) -> None:
    for number in (1, 2, 4, 8):
        for turn in range(3):
            of = job(number=number, concurrency=number)
            # Functions share the capacity of four of them.
            make_run(path / f"{number}-{turn}", max(1.0, number / 4) * (1 + turn / 100), of)


@uses("feature scale")
def test_saved_runs_are_fitted_without_far_predictions(call: Call, tmp_path: Path) -> None:
    make_series(tmp_path / "s")
    code, out, err = call("scale", "--from", "s", "--predict", "16")
    assert (code, err) == (0, "")
    assert "linear up to a cap, the better fit: per function" in out
    assert "16 functions get" in out
    assert "The fit makes no prediction beyond 16 functions." in out
    assert "Knee: the number of functions beyond which more of them add no throughput." in out
    found = json.loads(call("scale", "--from", "s", "--format", "json")[1])
    assert found["throughput_bytes_per_s"]["capped"]["knee"]["value"] == pytest.approx(4, rel=0.02)
    assert call("scale", "--from", "s", "--format", "markdown")[1].count("\n| ") == 6
    code, _, err = call("scale", "--from", "s", "--predict", "17")
    assert code == 2
    assert "17 functions are out of reach" in err


@uses("feature scale")
def test_a_law_that_is_off_is_withheld(call: Call, tmp_path: Path) -> None:
    for number, rate in ((1, 1.0), (2, 40.0), (4, 0.5), (8, 90.0)):
        of = job(number=number, concurrency=number)
        for turn in range(2):
            make_run(tmp_path / "s" / f"{number}-{turn}", 1 / rate, of)
    code, out, _ = call("scale", "--from", "s")
    assert code == 0
    assert re.search(
        r"^linear up to a cap: withheld, off by \d{2,}% at a number left out$", out, re.MULTILINE
    )
    assert "per function" not in out
    page = call("scale", "--from", "s", "--format", "html")[1]
    assert "withheld, off by" in page


@uses("feature scale")
def test_a_run_without_all_functions_is_left_out_by_name(call: Call, tmp_path: Path) -> None:
    make_series(tmp_path / "s")
    of = job(number=8, concurrency=8)
    about = {**header(of), "run_id": "late"}
    with Archive(tmp_path / "s" / "8-9", header=about, ledger=()) as archive:
        archive.append(outcome(lost(0)))
    code, out, err = call("scale", "--from", "s")
    assert code == 6
    assert "left out: s/8-9 cannot be compared: 8 functions lost" in err
    assert "The fit makes no prediction beyond 16 functions." in out


@uses("feature scale")
@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("write has no --key", ("--key", "x")),
        ("read has no --mb", ("read", "--mb", "1")),
        ("are not three different numbers", ("--numbers", "1,2,2")),
        ("are not whole numbers", ("--numbers", "1,two,3")),
        ("--repeats must be at least 1", ("--repeats", "0")),
        ("inline runs one function at a time", ("--executor", "inline")),
    ],
)
def test_wrong_flags_of_scale_start_no_run(
    call: Call, words: str, arguments: Sequence[str]
) -> None:
    code, out, err = call("scale", *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_runs_in_blocks_are_pairs_and_their_order_is_reported(call: Call, tmp_path: Path) -> None:
    """Blocks differ by a factor of three, sides by 15 %: finding 7."""
    hours, own_times = (1.0, 3.0, 2.0, 1.5, 2.5, 1.2), (1, 1.02, 0.99, 1.01, 1, 0.99)
    slower = [1.15 * hour * own for hour, own in zip(hours, own_times, strict=True)]
    make_side(tmp_path / "a", hours)
    make_side(tmp_path / "b", slower, first_ns=1)
    code, out, _ = call("compare", "a", "b")
    assert code == 9
    assert "B against A: slower, ratio of geometric means x0.868" in out
    assert "blocks AB AB AB AB AB AB" in out
    assert "test: Student's t of pairs within blocks" in out
    # The same figures, and no blocks.
    make_side(tmp_path / "later", slower, first_ns=100)
    code, out, _ = call("compare", "a", "later")
    assert code == 10
    assert "runs without blocks" in out
    assert "test: Welch's t" in out
    found = json.loads(call("compare", "a", "b", "--format", "json")[1])
    assert found["blocks"] == ["AB"] * 6
