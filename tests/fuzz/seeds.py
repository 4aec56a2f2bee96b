"""Record the runs that are spoiled besides those of ``tests/recorded``: every workload and client.

``python -m tests.fuzz.seeds NAME`` makes the run of that name anew, after a workload, client or
policy was added; without a name, all of them.
"""

import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from serverless_bench.driver.checked_job import check_job
from serverless_bench.driver.run import CutShort, run_job
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from serverless_bench.features.why.interventions import CHANGES, Interventions
from serverless_bench.job.abilities import ReadsFiles
from serverless_bench.job.workload import open_workload
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.schema import Stopped
from tests.house.examples import FEW, examples
from tests.stores.servers import KEYS, credentials

RECORDED: Final = Path(__file__).parents[1] / "recorded"
MADE: Final = Path(__file__).parent / "made"
SEEDS: Final = {path.name: path for root in (RECORDED, MADE) for path in sorted(root.iterdir())}
"""Directories of all recorded runs by name."""

LOG: Final = """time,op,key,size
2026-01-01T00:00:00.00Z,put,a,1000
2026-01-01T00:00:00.01Z,get,a,1000
2026-01-01T00:00:00.02Z,head,b,500
2026-01-01T00:00:00.03Z,delete,a,
"""
JOBS: Final[Mapping[str, Mapping[str, Any]]] = {
    **examples("SEEDS"),
    "delete-many-boto3": {
        "workload": "mixed",
        "mix": "put=2,get=1,delete_many=1,copy=1,list=1",
        **FEW,
        "operations": 12,
    },
    "parts": {"workload": "write", "size": 6 << 20, "part_size": 5 << 20, "number": 1},
    "stopped": {"workload": "write", **FEW},
}


def policies(run: Run) -> Iterator[str]:
    """Yield the policies of a run that fields of its own describe."""
    job = run.job
    if "hedge" in job.options:
        yield "hedge"
    if "interventions" in job.options:
        yield "interventions"
    if job.transfer.part_size is not None:
        yield "parts"
    if "barrier" in job.options:
        yield "barrier"
    if job.load.rate is not None:
        yield "rate"
    if run.stopped is not None:
        yield "stopped"
    yield from (f"kind {kind}" for kind in set(run.operations["kind"].tolist()))


def loaded() -> list[Run]:
    return [load_run(path) for path in SEEDS.values()]


def main(names: Collection[str]) -> None:
    """Record runs again: those of these names, or all."""
    jobs = {name: JOBS[name] for name in names or JOBS}
    for path in MADE.iterdir():
        if path.name in jobs or path.name not in JOBS:
            shutil.rmtree(path)
    with (
        tempfile.TemporaryDirectory() as scratch,
        serving(LoopbackSettings()) as server,
        credentials(KEYS),
    ):
        log = Path(scratch, "log.csv")
        log.write_text(LOG)
        for name, settings in jobs.items():
            given: Mapping[str, Any] = {**settings, "executor": "inline", "name": name}
            if settings["workload"] == "replay":
                replay = open_workload("replay")
                assert isinstance(replay, ReadsFiles)
                given, _ = replay.with_files({**given, "log": str(log)}, lambda _: log.open())
            if settings["workload"] != "noop":
                given = {**given, "bucket": "any", "endpoint_url": server.endpoint_url}
            last = name.rpartition("-")[2]
            if last in {"minio", "obstore", "awscrt", "boto3", "s3dlio", "s3torchconnector"}:
                given = {**given, "client": last}
            job = check_job(given).job
            if name == "why":
                plan = Interventions(changes=tuple(CHANGES)[:2], block_s=0.2)
                job = job.with_options(interventions=plan)
            live = RunProgress()
            if name == "stopped":
                live.stopped = Stopped(by="Ctrl-C", after_s=0.0)
            # Such a run ends like that of a user who interrupts it.
            with suppress(CutShort):
                run_job(job, MADE / name, live=live)


if __name__ == "__main__":
    main(sys.argv[1:])
