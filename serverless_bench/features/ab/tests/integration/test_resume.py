"""Series that were cut off are resumed by name, with the runs that are complete."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.rundir.run import load_run
from tests.commands.command import Done, Sbench
from tests.house.members import uses
from tests.stores.servers import KEYS


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackServer]:
    with serving(LoopbackSettings()) as store:
        yield store


ENDS = {0, 6, 9, 10}
"""Codes of series that ended, whatever they say."""
SCALE = ("scale", "write", "--numbers", "1,2,3", "--repeats", 1)
LIMIT = ("limit", "write", "--p99", "5s", "--block", "0.3s", "--budget", "1s", "--highest", 20)


@uses("feature scale", "feature limit")
@pytest.mark.parametrize("series", [SCALE, LIMIT], ids=["scale", "limit"])
def test_a_series_is_resumed_with_its_complete_runs(
    tmp_path: Path, server: LoopbackServer, series: tuple[str | int, ...]
) -> None:
    where = ("--endpoint-url", server.endpoint_url, "--bucket", "b", "--size", "4KiB")
    sbench = Sbench(tmp_path, KEYS)

    def made() -> dict[str, str]:
        root = tmp_path / "sbench-runs" / "s"
        paths = (path.parent for path in root.rglob("run.json"))
        return {str(path.relative_to(root)): load_run(path).run_id for path in paths}

    first = sbench(*series, *where, "--name", "s")
    assert first.code in ENDS, first
    before = made()
    *kept, gone = sorted(before)
    shutil.rmtree(tmp_path / "sbench-runs" / "s" / gone)
    again = sbench(*series, *where, "--resume", "s")
    assert again.code in ENDS, again
    after = made()
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert after.get(gone) != before[gone]
    other = sbench(*series, *where[:-1], "8KiB", "--resume", "s")
    assert other.code == 2
    assert "is a run of another job: size" in other.err


def test_two_jobs_are_resumed(tmp_path: Path, server: LoopbackServer) -> None:
    sbench = Sbench(tmp_path, KEYS)
    task = f'command = "write"\nendpoint_url = "{server.endpoint_url}"\nbucket = "b"\nnumber = 1\n'
    for name, size in (("a.toml", 64), ("b.toml", 128)):
        text = f'{task}executor = "inline"\nsize = "4KiB"\nblock_size = "{size}KiB"\n'
        (tmp_path / name).write_text(text)

    def run(*flags: str) -> Done:
        return sbench("ab", "a.toml", "b.toml", "--blocks", 6, "--warm-up-blocks", 0, *flags)

    done = run("--name", "s")
    assert done.code in ENDS, done
    count = len([*(tmp_path / "sbench-runs" / "s").rglob("run.json")])
    again = run("--resume", "s")
    assert again.code == done.code, again
    assert len([*(tmp_path / "sbench-runs" / "s").rglob("run.json")]) == count
    assert run("--resume", "none").err.startswith("sbench: there is no series 'none'")
