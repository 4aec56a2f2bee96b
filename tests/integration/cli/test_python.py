"""Series from Python: their documents equal those of the commands."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

import serverless_bench as api
from serverless_bench.features.history.tests.test_command import make_history, make_run
from serverless_bench.features.history.tests.test_interleaved import NOISE, command
from tests.commands.command import Call, Sbench
from tests.house.members import uses
from tests.stores.servers import credentials, loopback

RUNS = Path("sbench-runs")


@pytest.fixture
def here(sbench: Sbench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have paths mean the same here as in the commands."""
    monkeypatch.chdir(sbench.directory)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[api.Target]:
    with loopback(log=tmp_path / "log") as store:
        yield api.Target(bucket=store.bucket, endpoint_url=store.endpoint_url)


def job(target: api.Target, **changes: object) -> api.JobSpec:
    small = {"workload": "write", "executor": "inline", "number": 1, "size": 100_000}
    return api.JobSpec(target=target, **{**small, **changes})  # type: ignore[arg-type]


def plain(document: object) -> Any:
    """Return a document as JSON has it."""
    return json.loads(orjson.dumps(document))


def at(target: api.Target) -> tuple[str, ...]:
    return ("--endpoint-url", target.endpoint_url, "--bucket", target.bucket)


@pytest.mark.usefixtures("here")
def test_ab_equals_the_command(sbench: Sbench, target: api.Target) -> None:
    text = (
        'command = "write"\nexecutor = "inline"\nnumber = 1\nsize = "100KB"\n'
        f'endpoint_url = "{target.endpoint_url}"\nbucket = "{target.bucket}"\n'
    )
    Path("a.toml").write_text(text)
    Path("b.toml").write_text(text + 'block_size = "64KiB"\n')
    flags = ("--blocks", 6, "--warm-up-blocks", 1, "--seed", 3, "--format", "json")
    done = sbench("ab", "a.toml", "b.toml", *flags, "--name", "x")
    a = job(target)
    b = replace(a, transfer=api.Transfer(block_size=64 << 10))
    # It uses the runs of the command, and makes none.
    seen: list[str] = []
    found = api.ab(
        a, b, RUNS / "x", blocks=6, seed=3, resume=True, on_run=lambda t, _: seen.append(t)
    )
    assert plain(found.to_json()) == done.json
    words = [
        line.split("  ")[0] for line in done.err.splitlines() if "block" in line or "warm" in line
    ]
    assert [" ".join(line.split()[:5]) for line in words] == [" ".join(t.split()) for t in seen]
    # And it makes runs that the command compares with the same result.
    with credentials(sbench.environment):
        made = api.ab(a, b, RUNS / "y", blocks=6, warm_up_blocks=0, seed=3)
    assert plain(made.to_json())["differing"] == done.json["differing"]
    assert plain(made.to_json()) == sbench("compare", "y/a", "y/b", "--format", "json").json


@uses("feature scale")
@pytest.mark.usefixtures("here")
def test_scale_equals_the_command(sbench: Sbench, target: api.Target) -> None:
    flags = ("--numbers", "1,2,4", "--repeats", 1, "--size", "100KB", "--format", "json")
    done = sbench("scale", *at(target), *flags, "--name", "s", "--predict", 8)
    assert done.code == 0, done.err
    assert plain(api.scale(None, RUNS / "s").to_json(predict=8)) == done.json
    asked = job(target, executor="local")
    found = api.scale(asked, RUNS / "s", numbers=(1, 2, 4), repeats=1, resume=True)
    assert found.complete
    assert plain(found.to_json(predict=8)) == done.json


@pytest.mark.usefixtures("here")
def test_limit_equals_the_command(sbench: Sbench, target: api.Target) -> None:
    # Nothing fails, and nothing has to be in time: the answer of a busy machine is no other one.
    done = sbench(
        *("limit", "write", *at(target), "--executor", "inline", "--number", "1", "--size", "1KiB"),
        *("--over", "threads", "--objects", "2", "--errors", "40%", "--highest", "2"),
        *("--block", "0.3s", "--precision", "20%", "--name", "l", "--format", "json"),
    )
    assert done.code == 15, done.err
    found = api.limit(
        job(target, size=1024, objects=2),
        RUNS / "l",
        errors=0.4,
        over="threads",
        highest=2,
        block_s=0.3,
        precision=0.2,
        resume=True,
    )
    # Only the duration of the search is not read from the runs.
    assert plain(found.to_json() | {"took_s": 0}) == done.json | {"took_s": 0}


def test_checks_of_history_equal_the_commands(call: Call) -> None:
    make_history(call)
    for name, seconds in (("good", 1.0), ("bad", 1.2)):
        run = make_run(name, seconds, day=9, version="2")
        out = call("history", "check", run, "--format", "json")[1]
        assert plain(api.history_check(run).to_json()) == json.loads(out)


def test_checks_interleaved_equal_the_command(call: Call) -> None:
    def sides(name: str) -> tuple[str, str]:
        old = command(f"{name}-old", (9.0, *NOISE))
        return old, command(f"{name}-new", [9.0, *(1.15 * n for n in NOISE)])

    old, new = sides("x")
    flags = ("--blocks", "6", "--keep", "--format", "json")
    code, out, err = call("history", "check", "--old", old, "--new", new, *flags)
    assert code == 9, err
    found = api.history_check_interleaved(*sides("y"), blocks=6, keep=True)
    assert found.verdict == "regressed"
    assert plain(found.to_json()) == json.loads(out)
