"""Job files as a user runs them, and those that converters write."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from serverless_bench.cli.main import main
from serverless_bench.driver.boto import open_s3
from serverless_bench.job.target import Target
from tests.commands.command import Done, Sbench
from tests.commands.processes import until
from tests.house.members import uses
from tests.stores.servers import Server, credentials

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "stages.toml"
KIB = 1 << 10

FILL = (
    '[[stages]]\nname = "fill"\nkind = "prepare"\nworkload = "write"\nnumber = 1\nsize = "1KiB"\n'
)
MIX = FILL.replace('"write"', '"mixed"') + "operations = 9\n"
ARRAY = '[[stages]]\nname = "a"\nkind = "execute"\nworkload = "array"\noperation = "write"\n'
TIDY = '[[stages]]\nname = "tidy"\nkind = "cleanup"\n'
LOST = '[[stages]]\nname = "lost"\nkind = "KIND"\nworkload = "read"\nkey = "not-there"\n'
BACK = '[[stages]]\nname = "back"\nkind = "execute"\nworkload = "read"\nkeys = "fill"\n'


def reports(done: Done) -> list[dict[str, object]]:
    return [json.loads(line) for line in done.out.splitlines()]


def job_file(sbench: Sbench, *stages: str, prefix: str = "sbench/") -> Path:
    path = sbench.directory / "job.toml"
    path.write_text("\n".join([f'name = "job"\n[target]\nprefix = "{prefix}"', *stages]))
    return path


def keys_below(server: Server, prefix: str) -> list[str]:
    with credentials(server.environment):
        s3 = open_s3(Target(bucket=server.bucket, endpoint_url=server.endpoint_url))
        listed = s3.list_objects_v2(Bucket=server.bucket, Prefix=prefix)
    return [entry["Key"] for entry in listed.get("Contents", ())]


@pytest.fixture
def here(
    sbench: Sbench, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """The command in this process, which saves a second each time."""
    monkeypatch.chdir(sbench.directory)
    for name, value in sbench.environment.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str | Path | int) -> Done:
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Done(code, captured.out, captured.err)

    return run


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "serverless_bench" / "features" / "stages" / "README.md").read_text()
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert shown == EXAMPLE.read_text()


@uses("feature stages")
def test_the_example_runs_and_leaves_no_object(
    sbench: Sbench, embedded: Server, prefix: str
) -> None:
    done = sbench("run", EXAMPLE, "--prefix", prefix, "--name", "mine", "--format", "json")
    assert done.code == 0, done.err
    fill, back, mix = reports(done)
    assert (fill["requested"], fill["ok"], fill["bytes"]) == (4, 4, 12 << 20)
    assert (back["requested"], back["verified_bytes"]) == (4, 24 << 20)
    assert (mix["workload"], mix["ok"], mix["operations"]) == ("mixed", 2, 80)
    folder = sbench.directory / "sbench-runs" / "mine"
    assert sorted(path.name for path in folder.iterdir()) == [
        "01-fill",
        "02-read-back",
        "03-mix",
    ]
    assert "deleted 12 objects of stage 'fill'" in done.err
    assert keys_below(embedded, prefix) == []


@uses("feature stages")
def test_a_dry_run_starts_no_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SBENCH_STORE_DIR", str(tmp_path / "store"))
    assert main(["run", str(EXAMPLE), "--dry-run", "--format", "json"]) == 0
    fill, back, mix = json.loads(capsys.readouterr().out)["stages"]
    assert (fill["functions"], fill["operations"], fill["bytes"]) == (4, {"put": 12}, 12 << 20)
    assert fill["exact"]
    assert all(key.startswith("sbench/") and key.endswith(".1048576") for key in fill["keys"])
    assert (back["functions"], back["operations"], back["bytes"]) == (4, {"get": 24}, 24 << 20)
    assert (mix["prepared_objects"], sum(mix["operations"].values())) == (16, 80)
    assert not mix["exact"]
    assert main(["run", str(EXAMPLE), "--dry-run"]) == 0
    text = capsys.readouterr().out
    for words in ("stage 4 of 4: tidy", "4, concurrency 4", "12 put", "makes first"):
        assert words in text
    assert list(tmp_path.iterdir()) == []


BAD = [
    ("cannot read the job file none.toml", None),
    ("job.toml: [target]: unknown key 'mb'", "[target]\nmb = 1\n" + FILL),
    ("job.toml: [run]: unknown key 'bucket'", '[run]\nbucket = "b"\n' + FILL),
    ("job.toml: [run]: unknown key 'run-dir'", '[run]\nrun-dir = "b"\n' + FILL),
    ("job.toml: stage 'fill': write has no flag 'mbs'", FILL + "mbs = 1"),
    ("job.toml: stage 'fill': write has no flag 'name2'", FILL + "name2 = 1"),
    ("stage 'fill': objects must be a whole number, got 'many'", FILL + 'objects = "many"'),
    ("stage 'fill': objects must be a whole number, got 1.5", FILL + "objects = 1.5"),
    ("stage 'fill': duration must be a number or text, got True", FILL + "duration = true"),
    ("stage 'fill': client must be text, got 3", FILL + "client = 3"),
    ("stage 'fill': ceiling must be true or false, got 1", FILL + "ceiling = 1"),
    (
        "stage 'fill': verify must be one of full, sample, none, got 'maybe'",
        FILL + 'verify = "maybe"',
    ),
    ("stage 'fill': objects must be at least 1, got 0", FILL + "objects = 0"),
    ("stage 'fill': unknown client 'nope'", FILL + 'client = "nope"'),
    ("stage 'fill': size and sizes give the size of an object", FILL + 'sizes = "1MiB"'),
    (
        "stage 'fill': operation is missing",
        FILL.replace('"write"', '"array"').replace("size = ", "# "),
    ),
    ("--threads applies to none of the stages of job.toml", ARRAY),
    (
        "stage 'two': keys needs a stage that reads",
        FILL + FILL.replace("fill", "two") + 'keys = "fill"',
    ),
    ("stage 'back': keys names stage 'fill' of workload 'mixed'", MIX + BACK),
    ("stage 's': unknown workload 'none'", FILL.replace("fill", "s").replace('"write"', '"none"')),
    ("stage 'lost': keys and key-file are mutually exclusive", FILL + LOST + 'keys = "fill"'),
]


@uses("feature stages")
@pytest.mark.parametrize(("words", "stages"), BAD)
def test_mistakes_are_one_line_before_any_stage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    stages: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SBENCH_STORE_DIR", str(tmp_path / "store"))
    if stages is not None:
        text = stages.replace("KIND", "execute")
        Path("job.toml").write_text(f'name = "job"\n{text}')
    flags = ["--threads", "2"] if words.startswith("--threads") else []
    code = main(["run", "none.toml" if stages is None else "job.toml", *flags])
    done = capsys.readouterr()
    lines = done.err.splitlines()
    assert code in {2, 3}, done.err
    assert lines[0].startswith("sbench: ")
    assert words in lines[0]
    assert len(lines) <= 2
    assert done.out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) in ([], ["job.toml"])


def test_cleanup_and_later_stages_run_after_a_failure(
    sbench: Sbench, here: Callable[..., Done], embedded: Server, prefix: str
) -> None:
    lost = LOST.replace("KIND", "execute")
    over = lost.replace('"lost"', '"over"').replace("execute", "prepare")
    never = BACK.replace('"back"', '"never"')
    path = job_file(sbench, FILL, lost, BACK, over, never, TIDY, prefix=prefix)
    done = here("run", path, "--retries", 0, "--executor", "inline", "--format", "json")
    # The failed benchmark has a report, and the next one runs.
    assert [report["ok"] for report in reports(done)] == [1, 0, 1, 0]
    assert done.code == 6
    assert "stage 'never' is skipped: stage 'over' failed" in done.err
    assert "stage 6 of 6: tidy (cleanup), although stage 'over' failed" in done.err
    assert "deleted 1 object of stage 'fill'" in done.err
    assert keys_below(embedded, prefix) == []


@uses("feature stages")
def test_after_an_interrupt_the_cleanup_runs(sbench: Sbench, embedded: Server, prefix: str) -> None:
    long = FILL.replace("fill", "long") + "duration = 60.0\n"
    process = sbench.apart.start("run", job_file(sbench, FILL, long, BACK, TIDY, prefix=prefix))
    runs = sbench.directory / "sbench-runs"
    until(lambda: list(runs.glob("*/02-long/run.json")))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert "stage 'back' is skipped: stage 'long' failed" in err
    assert "although stage 'long' failed" in out
    assert "deleted 1 object of stage 'fill'" in out
    assert keys_below(embedded, prefix) == []


SAI3 = {
    "target": "s3://b/theirs/",
    "duration": "2s",
    "concurrency": 2,
    "workload": [
        {"op": "get", "path": "data/*", "weight": 60},
        {"op": "list", "path": "data/", "weight": 10},
    ],
}


def test_a_converted_configuration_runs(
    here: Callable[..., Done], embedded: Server, prefix: str
) -> None:
    Path("theirs.yaml").write_text(yaml.safe_dump(SAI3))
    converted = here("convert", "theirs.yaml", "-o", "ours.toml")
    assert converted.code == 0, converted.err
    notes = [line.removeprefix("note: ") for line in converted.err.splitlines()]
    text = Path("ours.toml").read_text()
    assert notes
    assert all(f"#   {note}" in text.splitlines() for note in notes)
    Path("ours.toml").write_text(text.replace('bucket = "b"\n', ""))
    done = here("run", "ours.toml", "--prefix", prefix, "--format", "json")
    assert done.code == 0, done.err
    (report,) = reports(done)
    assert (report["requested"], report["ok"]) == (2, 2)
    performed = json.dumps(report)
    assert all(f'"{kind}"' in performed for kind in ("get", "list"))
    assert keys_below(embedded, prefix), "objects are kept, as without a cleanup stage"
