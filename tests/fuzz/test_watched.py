"""The watch itself detects everything that it has to detect."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.watched import Nursery, nursery

RECORDED = Path(__file__).parents[1] / "recorded"


@pytest.fixture(scope="module")
def sbench() -> Iterator[Nursery]:
    with nursery("serverless_bench.cli.commands.ls") as found:
        yield found


def test_a_correct_command_passes(sbench: Nursery, tmp_path: Path) -> None:
    ended = sbench(tmp_path, "--version")
    ended.check(0)
    assert ended.out.startswith("sbench")
    assert ended.asked == ()


def test_writes_elsewhere_are_detected(sbench: Nursery, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there.png"
    shutil.copytree(RECORDED / "write", here)
    ended = sbench(here, "plot", ".", "--output", there)
    assert there.exists(), ended.err
    assert any("there" in what for what in ended.touched)


def test_contacted_hosts_are_detected(sbench: Nursery, tmp_path: Path) -> None:
    endpoint = "http://127.0.0.1:9"
    ended = sbench(
        tmp_path, "write", "--bucket", "b", "--endpoint-url", endpoint, "--number", 1,
        environment={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"},
        limit_s=60,
    )  # fmt: skip
    assert any("9" in what for what in ended.asked), ended


def test_a_command_that_hangs_is_ended(sbench: Nursery, tmp_path: Path) -> None:
    ended = sbench(tmp_path, "serve", "--port", 0, limit_s=1)
    assert ended.code == -9
