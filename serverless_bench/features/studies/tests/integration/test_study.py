"""``sbench study``: tiny studies on real stores, interrupted and gone on with."""

import json
import os
import shutil
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.cli.main import main
from serverless_bench.cli.output import terminal
from serverless_bench.driver.clean import clean
from serverless_bench.driver.cleanup import Deleted
from serverless_bench.features.studies.commands import study_plan
from serverless_bench.features.studies.loading import parse
from serverless_bench.features.studies.observations import observe
from serverless_bench.features.studies.plan import FILE, Plan, load_plan, save_plan
from serverless_bench.features.studies.runner import run
from serverless_bench.rundir.files import open_file, take_lock
from serverless_bench.rundir.run import load_run
from serverless_bench.stores.embedded import Lease
from tests.commands.command import Done, Sbench
from tests.stores.servers import Server
from tests.twice import two_of_three

Study = Callable[..., Done]

TINY = """
title = "Two sizes"
question = "Is a larger object written faster?"
null_hypothesis = "It is not."
[seed]
source = "nobody"
date = 2026-11-21
[settings]
executor = "inline"
objects = 2
[small]
min_bytes = "8kB"
[paper]
min_bytes = "1GB"
[[axes]]
name = "size"
setting = "size"
small = ["4KiB", "4MiB"]
paper = ["1GiB", "2GiB"]
paired = true
[[metrics]]
name = "rate"
header = "MB/s"
of = "throughput_bytes_per_s"
unit = "MB/s"
[[hypotheses]]
id = "H0"
text = "A larger object is not written faster."
test = "no-gain"
metric = "rate"
along = "size"
[[published]]
at = { size = "1GiB" }
rate = 100
[plot]
x = "size"
y = "rate"
kind = "bars"
"""

READS = """
title = "Reads"
question = "?"
null_hypothesis = "None."
[seed]
source = "nobody"
date = 2026-11-21
[settings]
workload = "read"
executor = "inline"
objects = 2
size = "8KiB"
[small]
min_bytes = "16KiB"
repeats = 1
[paper]
min_bytes = "16KiB"
[prepare]
number = 1
objects = 2
[[axes]]
name = "where"
values = ["here", "delayed", "nowhere"]
[axes.levels.here]
cpus = 1
[axes.levels.delayed]
store = "loopback"
"serve.latency" = "fixed:30ms"
[axes.levels.nowhere]
client = "none"
[[unsupported]]
at = { where = "here" }
reason = "replaced by the test"
[[metrics]]
name = "rate"
of = "latency_s.p50"
unit = "ms"
better = "less"
"""


HERE_AND_THERE = """
[[axes]]
name = "threads"
values = [1, 2]
[[metrics]]
name = "rate"
of = "latency_s.p50"
unit = "ms"
better = "less"
"""
TWO = "http://127.0.0.1:1,http://127.0.0.1:2"


@pytest.fixture
def study(
    tmp_path: Path,
    embedded: Server,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Study:
    """``sbench study`` in an empty directory, in this process: SciPy is slow to import."""
    monkeypatch.chdir(tmp_path)
    for name, value in embedded.environment.items():
        monkeypatch.setenv(name, value)

    def call(*arguments: object) -> Done:
        capsys.readouterr()
        code = main(["study", *map(str, arguments)])
        message = capsys.readouterr()
        return Done(code, message.out, message.err)

    return call


@pytest.mark.on_change("serverless_bench/features/studies")
def test_six_interleaved_repeats_make_a_verdict(study: Study, tmp_path: Path) -> None:
    tiny = tmp_path / "tiny.toml"
    tiny.write_text(TINY, encoding="utf-8")
    done = study("run", tiny, "--name", "e", "--output", "p.png", "--format", "json", "--seed", 3)
    assert done.code == 0, done.err
    found = done.json
    assert found["complete"]
    assert [cell["counted"] for cell in found["cells"]] == [6, 6]
    assert found["cells"][0]["metrics"]["rate"]["published"] == 100
    (judgement,) = found["hypotheses"][0]["judgements"]
    assert judgement["segment"] == ["4KiB", "4MiB"]
    assert (tmp_path / "p.png").stat().st_size > 5000

    # In turns: each round has both cells once.
    order = [line for line in done.err.splitlines() if line.startswith("run ")]
    assert [line.split("repeat ")[1][0] for line in order] == list("112233445566")
    assert len({line.split("size=")[1].split(",")[0] for line in order[:2]}) == 2

    root = tmp_path / "sbench-runs" / "e"
    (one,) = sorted((root / "cells").iterdir())[:1]
    first = load_run(one / "01")
    assert len(first.keys()) == 2
    # No objects are left to delete.
    cleaned = clean(first)
    assert replace(cleaned.deleted, requests=Counter()) == Deleted()

    # Missing runs are reported, and only these are made again by --resume.
    kept = (one / "02" / "run.json").read_bytes()
    shutil.rmtree(one / "01")
    report = study("report", root)
    assert report.code == 6
    assert "size=4KiB: 1 of 6 runs: not run" in report.out
    # By its directory's name, or as the last one of its kind.
    assert study("report", "e").out == study("report", "tiny").out == report.out
    again = study("run", "--resume", root, "--format", "markdown")
    assert again.code == 0, again.err
    assert again.err.count("run ") == 1
    assert "| 4KiB |" in again.out
    assert (one / "02" / "run.json").read_bytes() == kept


@pytest.mark.timing
@pytest.mark.on_change("serverless_bench/features/studies")
def test_larger_objects_are_written_faster(study: Study, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(TINY, encoding="utf-8")
    tries = iter(range(3))

    def check() -> None:
        flags = ("--name", f"try-{next(tries)}", "--format", "json", "--seed", 3)
        done = study("run", "tiny.toml", *flags)
        assert done.code == 0, done.err
        (judgement,) = done.json["hypotheses"][0]["judgements"]
        assert judgement["outcome"] == "rejected", judgement
        assert judgement["interval"]["low"] > 1, judgement

    two_of_three(check)


@pytest.mark.on_change("serverless_bench/features/studies")
def test_reads_are_prepared_and_failures_are_rows(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "reads.toml"
    path.write_text(READS, encoding="utf-8")
    done = study("run", path, "--format", "json")
    assert done.code == 6, done.err
    here, delayed, nowhere = done.json["cells"]
    assert here["skipped"] == "replaced by the test"
    assert (here["runs"], delayed["counted"], nowhere["counted"]) == ([], 1, 0)
    assert delayed["metrics"]["rate"]["measured"]["at"] > 30
    assert "PluginError" in nowhere["runs"][0]["problem"]
    assert "'none'" in nowhere["runs"][0]["problem"]
    # The last one with this name.
    report = study("report", path)
    assert "unsupported" in report.out
    assert "where=nowhere: 1 of 1 runs: PluginError" in report.out


@pytest.mark.on_change("serverless_bench/features/studies")
@pytest.mark.parametrize(
    ("after", "code"), [("run 2 of 2", 0), ("run 1 of 2", 6)], ids=["at the end", "half-way"]
)
def test_a_store_that_ends_costs_no_report(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, code: int
) -> None:
    monkeypatch.setenv("SBENCH_STORE_DIR", str(tmp_path / "store"))
    path = tmp_path / "reads.toml"
    path.write_text(READS.partition("[[axes]]")[0] + HERE_AND_THERE)
    printed = terminal.say

    def say(text: str, **style: Any) -> None:
        if text.startswith(after):
            lease = Lease.take(tmp_path / "store", start=False)
            assert lease is not None
            os.kill(lease.address.store_pid, signal.SIGKILL)
            lease.release()
        printed(text, **style)

    monkeypatch.setattr(study_plan, "say", say)
    done = study("run", path, "--name", "e", "--repeats", 1)
    # If the store had a successor by then, it has deleted the objects.
    remain = "objects may remain" in done.err
    assert done.code == (6 if remain else code), done.err
    assert "threads=1" in done.out
    cleaned = Sbench(tmp_path, {})("clean", "sbench-runs/e/prepare/1")
    assert cleaned.code == 0, cleaned.err
    assert remain is ("deleted 0 objects" not in cleaned.out)
    hint = "hint: sbench study run --resume sbench-runs/e adds the missing runs"
    assert (hint in done.err) is (code == 6)
    again = study("run", "--resume", "sbench-runs/e")
    assert again.code == 0, again.err


@pytest.mark.on_change("serverless_bench/features/studies")
def test_an_interrupted_study_can_be_continued(study: Study, tmp_path: Path) -> None:
    del study
    plan = Plan(study=parse(TINY, "tiny"), scale="small", repeats=2)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if len(said) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, tmp_path / "e", say=say)
    run(plan, tmp_path / "e", say=said.append)
    assert [text.split(":")[0] for text in said] == [f"run {n} of 4" for n in (1, 2, 3, 4)]
    observed = observe(tmp_path / "e", plan.cells(), repeats=2, min_bytes=1)
    assert [one.counted for one in observed] == [2, 2]


def test_a_study_has_one_driver_at_a_time(study: Study, tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    assert study("run", path, "--name", "e", "--repeats", 1).code == 0
    root = tmp_path / "sbench-runs" / "e"
    with open_file(root / FILE) as file:
        take_lock(file, root)
        second = study("run", "--resume", root)
    assert (second.code, second.out.count("done")) == (8, 0)
    assert "another sbench process" in second.err
    assert study("run", "--resume", root).code == 0


def test_a_study_of_somebody_else_runs_only_with_trust(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    assert study("run", path, "--name", "e", "--repeats", 1).code == 0
    root = tmp_path / "sbench-runs" / "e"
    text = (root / FILE).read_text()
    (root / FILE).write_text(text.replace('"inline"', '"local"'))
    changed = study("run", "--resume", root)
    assert changed.code == 2
    (root / FILE).write_text(text)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "somebody else's"))
    foreign = study("run", "--resume", root)
    assert foreign.code == 2
    assert "was not made here" in foreign.err
    # A report makes no request.
    assert study("report", root).code == 0
    assert study("run", "--resume", root, "--trust").code == 0


def test_files_that_a_killed_driver_left_do_not_stop_a_study(study: Study, tmp_path: Path) -> None:
    only = ("--only", "target=file", "--only", "library=zarr")
    flags = (*only, "--repeats", 1, "--run-duration", 1, "--name", "e")
    first = study("run", "zarr-writers-append", *flags)
    assert first.code in {0, 6}, first.err
    root = tmp_path / "sbench-runs" / "e"
    made = next(root.glob("cells/*/01"))
    shutil.rmtree(made)
    left = made.with_name("01.arrays") / "of a killed driver"
    left.mkdir(parents=True)
    again = study("run", "--resume", root)
    assert again.code in {0, 6}, again.err
    assert (made / "run.json").exists()
    assert [*root.glob("cut-off/*/of a killed driver")]


@pytest.mark.on_change("serverless_bench/features/studies")
def test_pilots_say_how_long_and_how_many_and_are_not_made_twice(
    study: Study, tmp_path: Path
) -> None:
    del study
    lasting = '[small]\nmin_bytes = "8kB"\nseconds = 0.2\nminutes = 0.03\nrepeats = 2'
    longer = parse(TINY.replace('[small]\nmin_bytes = "8kB"', lasting), "tiny")
    plan = Plan(study=longer, scale="small", repeats=2, minutes=0.03)
    root, said = tmp_path / "e", list[str]()
    save_plan(plan, root)

    def say(text: str) -> None:
        said.append(text)
        if len(said) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(plan, root, say=say)
    done = run(load_plan(root), root, say=said.append)
    pilots = [text for text in said if text.startswith("pilot: ")]
    assert [text.split(":")[1] for text in pilots] == [" size=4KiB", " size=4MiB"]
    # Decided before the first run that counts, and kept.
    assert said[2] == f"{done.repeats} rounds"
    assert 2 <= done.repeats <= 20
    assert load_plan(root) == done
    assert len([text for text in said if text.startswith("run ")]) == 2 * done.repeats
    for one in observe(root, done.cells(), repeats=done.repeats, min_bytes=1):
        assert one.counted == done.repeats
    made = [load_run(path.parent).job for path in (root / "cells").glob("*/*/run.json")]
    assert {job.duration for job in made} == {0.2}
    # All runs exist, so none is run again.
    run(load_plan(root), root, say=pytest.fail)


def test_plan_and_published_rows_need_no_run(study: Study, tmp_path: Path) -> None:
    listed = study("ls")
    assert "s3-client-threads " in listed.out
    shown = study("show", "s3-client-threads", "--scale", "paper")
    assert "threads=128" in shown.out
    reference = study("show", "s3-client-threads", "--reference")
    assert "31.84" in reference.out
    assert "errata" in reference.out
    assert json.loads(study("show", "s3-client-threads", "--reference", "--format", "json").out)[
        "published"
    ]
    dry = study("run", "s3-client-threads", "--dry-run", "--only", "threads=8,16")
    assert "2 cells, 6 runs of each, 12 in all, of 5 s at most; more in 4 minutes" in dry.out
    assert not (tmp_path / "sbench-runs").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["show", "nope"], 2, "there is no study 'nope'"),
        (["run"], 2, "give a NAME, or --resume DIR"),
        (["run", "nope.toml"], 2, "cannot read the study nope.toml"),
        (["run", "s3-client-threads", "--only", "threads"], 2, "is not AXIS=VALUE"),
        (["run", "s3-client-threads", "--only", "threads=3"], 2, "no cell has this value"),
        (["run", "s3-client-threads", "--only", "colour=3"], 2, "there is no axis 'colour'"),
        (["run", "s3-client-threads", "--set", "bogus=1"], 2, "no setting 'bogus'"),
        (["run", "s3-client-threads", "--set", "threads"], 2, "is not NAME=VALUE"),
        (["run", "s3-client-threads", "--set", "objects=0"], 2, "--objects must be at least 1"),
        (["run", "s3-client-threads", "--set", "threads=x"], 2, "--threads must be a whole number"),
        (["run", "s3-client-threads", "--set", "mix={get=true}"], 2, "has no setting 'mix'"),
        (["run", "s3-client-threads", "--set", "client_option={x=1}"], 2, "has no option 'x'"),
        (["run", "s3-client-threads", "--repeats", "0"], 2, "is not in the range 1<=x<=1000"),
        (["run", "s3-client-threads", "--design", "list"], 2, "has no cells by this design"),
        (["run", "s3-client-threads", "--scale", "huge"], 2, "'huge' is not one of"),
        (["run", "s3-client-threads", "--executor", "nope"], 3, "nope"),
        (["run", "zarr-writers-write", "--endpoint-url", TWO, "--bucket", "b"], 2, "one endpoint"),
        (["run", "--resume", "nowhere"], 8, "not the directory of a study"),
        (["report", "s3-client-threads"], 2, "has no study"),
        (["report", "nope"], 2, "there is no study 'nope'"),
        (["report", "."], 8, "not the directory of a study"),
    ],
)
def test_bad_input_is_one_line(study: Study, arguments: list[str], code: int, says: str) -> None:
    done = study(*arguments)
    assert (done.code, done.out) == (code, ""), done.err
    assert says in done.err
    assert done.err.startswith("sbench: ")
    assert len(done.err.splitlines()) <= 2


def test_the_embedded_store_is_not_measured_where_another_one_is_named(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    (tmp_path / "tiny.toml").write_text(TINY)
    done = study("run", "tiny.toml", "--repeats", "1")
    assert done.code == 2
    assert "AWS_ENDPOINT_URL_S3 names http://127.0.0.1:1" in done.err
