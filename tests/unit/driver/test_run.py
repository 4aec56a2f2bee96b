from pathlib import Path
from typing import Self

import pytest

from serverless_bench.base.errors import INTERRUPTED
from serverless_bench.driver import run as fanout
from serverless_bench.driver.coordinator import Coordinator
from serverless_bench.driver.run import CutShort, resume_job, run_job
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.metrics.summary import summarize
from tests.data.runs import executor_in_process
from tests.house.members import uses

TARGET = Target(bucket="b", endpoint_url="http://nowhere")


class OnEntry(Coordinator):
    """Ctrl-C arrives while the coordinator's thread is being started."""

    def __enter__(self) -> Self:
        raise KeyboardInterrupt


class OnExit(Coordinator):
    """Ctrl-C arrives while the coordinator's thread is awaited."""

    def __exit__(self, *_: object) -> None:
        raise KeyboardInterrupt


@uses("workload noop")
@pytest.mark.parametrize(("coordinator", "arrived"), [(OnEntry, 0), (OnExit, 3)])
def test_an_interrupt_at_any_moment_leaves_a_run_that_can_be_resumed(
    coordinator: type[Coordinator], arrived: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = JobSpec(workload="noop", target=TARGET, number=3, executor=executor_in_process())
    with monkeypatch.context() as patch:
        patch.setattr(fanout, "Coordinator", coordinator)
        with pytest.raises(CutShort, match="interrupted") as caught:
            run_job(job, tmp_path / "run")
    assert caught.value.exit_code == INTERRUPTED
    assert f"sbench clean {tmp_path / 'run'}" in caught.value.hint
    # Nothing is resumed where nothing is missing.
    assert ("sbench resume" in caught.value.hint) is (arrived < 3)
    assert caught.value.run.ended
    assert summarize(caught.value.run).ok == arrived
    assert summarize(resume_job(tmp_path / "run")).ok == 3
