"""A client of another package, added as in CONTRIBUTING.md, without a change of our files."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.command import Sbench
from tests.stores.servers import Server

CLIENT = Path(__file__).parents[2] / "data" / "outside_client.py"
CONTRACT = """
import os
from uuid import uuid4

import pytest

from serverless_bench.job.target import Target
from serverless_bench.features.testing.clients import ClientContract


class TestOutside(ClientContract):
    @pytest.fixture
    def target(self) -> Target:
        where = {name: os.environ[name.upper()] for name in ("bucket", "endpoint_url")}
        return Target(client="outside", prefix=f"{os.environ['PREFIX']}{uuid4().hex}/", **where)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package as pip leaves it: its module and its metadata."""
    folder = tmp_path / "site"
    info = folder / "sbench_outside-1.dist-info"
    info.mkdir(parents=True)
    shutil.copyfile(CLIENT, folder / "sbench_outside.py")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sbench-outside\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[serverless_bench.clients]\noutside = sbench_outside:OutsideClient\n"
    )
    return folder


def test_it_passes_the_contract(
    package: Path, embedded: Server, prefix: str, tmp_path: Path
) -> None:
    (tmp_path / "test_outside.py").write_text(CONTRACT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_outside.py"],
        cwd=tmp_path,
        env={
            **os.environ,
            **embedded.environment,
            "PYTHONPATH": str(package),
            "BUCKET": embedded.bucket,
            "ENDPOINT_URL": embedded.endpoint_url,
            "PREFIX": prefix,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    # Undeclared features are skipped: only conditional writes.
    assert " passed" in done.stdout


def test_a_command_runs_with_it(
    sbench: Sbench, package: Path, embedded: Server, prefix: str
) -> None:
    where = ("--bucket", embedded.bucket, "--endpoint-url", embedded.endpoint_url)
    how = (*where, "--prefix", prefix, "--client", "outside", "--number", 2, "--size", "1MB")
    here = {**embedded.environment, "PYTHONPATH": str(package)}
    wrote = sbench.apart("write", *how, "--name", "outside", "--format", "json", **here)
    assert wrote.code == 0, wrote.err
    assert (wrote.json["client"], wrote.json["ok"]) == ("outside", 2)
    keys = ("--key-file", "sbench-runs/outside/keys.txt")
    read = sbench.apart("read", *where, *keys, "--client", "outside", **here)
    assert read.code == 0, read.err
    assert "every byte" in read.out
    report = sbench("report", "outside")
    assert "outside" in report.out
