"""Two concurrent commands on one run, one of them killed at a random time: successes remain."""

import random
import subprocess
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.shaping import Shape
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import is_text
from tests.commands.command import Apart
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import KEYS

BUCKET: Final = "test"
LONGEST_S: Final = 3.0
"""Approximate duration of a command here; kills happen at a random time within it."""


def test_successful_objects_of_a_report_exist(tmp_path: Path) -> None:
    race_pairs(tmp_path, first=0, count=6)


@pytest.mark.full
def test_successful_objects_of_a_report_exist_in_many_cases(tmp_path: Path) -> None:
    race_pairs(tmp_path, first=random.SystemRandom().randrange(1 << 32), count=200)


def race_pairs(scratch: Path, *, first: int, count: int) -> None:
    settings = LoopbackSettings(strict=True, shape=Shape(latency="fixed:30ms"))
    with serving(settings) as store:
        for seed in range(first, first + count):
            directory = scratch / str(seed)
            directory.mkdir()
            race(store, directory, random.Random(seed), f"seed {seed}")


def race(store: LoopbackServer, directory: Path, rng: random.Random, about: str) -> None:
    """Start two commands on one run, kill one of them in half of the cases, and check."""
    sbench = Apart(directory, {**KEYS, "SBENCH_STORE_DIR": str(directory)})
    commands = {
        "write": (
            *("write", "--endpoint-url", store.endpoint_url, "--bucket", BUCKET, "--name", "w"),
            *("--number", "8", "--objects", "2", "--size", "4KiB", "--concurrency", "2"),
        ),
        "resume": ("resume", "sbench-runs/w"),
        "clean": ("clean", "sbench-runs/w"),
    }
    before = rng.choice(["nothing", "a run", "a run that was killed"])
    if before != "nothing":
        assert sbench(*commands["write"]).code == 0
    if before == "a run that was killed":
        records = directory / "sbench-runs/w/records.jsonl"
        lines = records.read_bytes().splitlines(keepends=True)
        records.write_bytes(b"".join(lines[: rng.randrange(8)]))
    pair = rng.choices([*commands], k=2)
    processes = [sbench.start(*commands[name]) for name in pair]
    is_killed = rng.random() < 0.5
    if is_killed:
        kill_after(rng.choice(processes), rng.uniform(0, LONGEST_S))
    codes = [ended(process) for process in processes]
    about = f"{about}: {pair} on {before}, ended with {codes}"
    path = directory / "sbench-runs/w"
    if not (path / "run.json").exists():
        assert before == "nothing", about
        return
    run = load_run(path)
    missing = [key for key in good_keys(run) if not there(store, key)]
    assert run.cleaning_ns is not None or not missing, about
    # An interrupted command can be completed.
    assert sbench("clean", path).code == 0, about
    assert not [key for key in run.ledger() if there(store, key)], about


def kill_after(process: "subprocess.Popen[str]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()


def ended(process: "subprocess.Popen[str]") -> int:
    _, err = process.communicate(timeout=PATIENCE_S)
    assert "this is a bug" not in err, err
    return process.returncode


def good_keys(run: Run) -> list[str]:
    """Return the keys of the objects that functions which are ok have written."""
    ok = is_text(run.functions["status"], "ok")
    good = ok[run.operations["function"]] & is_text(run.operations["error"], None)
    keys: list[str] = run.operations["key"][good].tolist()
    return keys


def there(store: LoopbackServer, key: str) -> bool:
    return store.state.objects.find(BUCKET, key) is not None
