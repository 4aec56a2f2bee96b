"""Executors of other packages, installed as in docs/plugins.md."""

import contextlib
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from flit_core import buildapi  # type: ignore[import-untyped]

from serverless_bench.features.testing.executors import COUNT, ExecutorContract
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import Server, credentials

pytestmark = pytest.mark.on_change(
    "launching functions", "serverless_bench/base/plugins.py", "serverless_bench/features/testing"
)

EXAMPLE = Path(__file__).parents[3] / "examples" / "executor"
LOCAL = """
from serverless_bench.executors.local import LocalExecutor

class MineLocal(LocalExecutor):
    pass
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the example is installed."""
    folder = tmp_path_factory.mktemp("site")
    with contextlib.chdir(EXAMPLE):
        wheel = buildapi.build_wheel(str(folder))
    with zipfile.ZipFile(folder / wheel) as archive:
        archive.extractall(folder)
    return folder


@uses("feature remote")
def test_a_remote_executor_runs_functions(sbench: Sbench, site: Path) -> None:
    own = ("--executor", "processes", "--control-prefix", "control/", "--number", 8)
    run = ("--size", "1KiB", "--name", "w", "--format", "json")
    done = sbench.apart("write", *own, *run, PYTHONPATH=str(site))
    assert done.code == 0, done.err
    assert (done.json["executor"], done.json["ok"], done.json["workers"]) == ("processes", 8, 8)
    assert done.json["deliveries"]["received"] == 8
    checked = sbench.apart("check", "sbench-runs/w", PYTHONPATH=str(site))
    assert checked.code == 0, checked.err


@uses("feature aws")
@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--no-progress-objects",), "--progress-objects does not apply to --executor processes"),
        (("--max-cost", "1"), "--executor processes costs what its machines cost"),
        (("--stack", "s"), "--stack does not apply to --executor processes"),
        (("--ceiling",), "--ceiling needs functions on this machine"),
    ],
)
def test_undeclared_features_are_refused(
    sbench: Sbench, site: Path, flags: tuple[str, ...], text: str
) -> None:
    refused = sbench.apart("write", "--executor", "processes", *flags, PYTHONPATH=str(site))
    assert refused.code == 2
    assert text in refused.err


@uses("feature until_stable")
def test_an_executor_that_inherits_local_is_one(sbench: Sbench, tmp_path: Path) -> None:
    about = tmp_path / "site" / "mine_local-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine-local\nVersion: 1\n")
    entry = "[serverless_bench.executors]\nminelocal = mine_local:MineLocal\n"
    (about / "entry_points.txt").write_text(entry)
    (about.parent / "mine_local.py").write_text(LOCAL)
    job = ("--number", 2, "--size", "1KiB", "--duration", 3, "--until-stable", "5%")
    done = sbench.apart(
        "write",
        *("--executor", "minelocal", *job, "--format", "json"),
        PYTHONPATH=str(about.parent),
    )
    assert done.code == 0, done.err
    assert done.json["stability"]["asked"] == 0.05


class TestProcesses(ExecutorContract):
    executor = "processes"

    @pytest.fixture(autouse=True)
    def installed(
        self, site: Path, embedded: Server, prefix: str, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[None]:
        monkeypatch.syspath_prepend(site)
        url = embedded.endpoint_url
        self.control = Target(bucket="sbench", prefix=prefix, endpoint_url=url)
        with credentials(embedded.environment):
            yield

    def job(self, workload: str, *, number: int = COUNT) -> JobSpec:
        """Return a job with functions that do not wait for each other's start."""
        return replace(super().job(workload, number=number), concurrency=8)
