"""Each client as a function uses it: everything verified, everything recorded."""

from collections.abc import Sequence
from typing import Final

from benchmarks.subjects.draft import BUCKET, REGION, Run
from serverless_bench.base.units import MIB
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target, Transfer
from serverless_bench.job.workload import Load
from serverless_bench.rundir.rows import column
from serverless_bench.worker.board import BoardSlot
from serverless_bench.worker.invocation import run_invocation

Settings = tuple[Transfer, tuple[tuple[str, str], ...]]
"""Settings of a job, and of the library."""
_WHOLE: Final[Settings] = (Transfer(), ())
_LARGE: Final[dict[str, Settings]] = {
    "boto3": (Transfer(part_size=8 * MIB, connections=10), ()),
    "minio": (Transfer(), (("part_mb", "5"),)),
    "obstore": (Transfer(), (("multipart", "yes"),)),
}
"""Settings for objects of more than 8 MiB, so that they are moved as by the library alone; the
other libraries split by themselves.
"""


def settings(client: str, size: int) -> Settings:
    """Return the settings of a client for objects of one size."""
    return _LARGE.get(client, _WHOLE) if size > 8 * MIB else _WHOLE


def harnessed(
    client: str, url: str, size: int, threads: int, board: BoardSlot | None = None
) -> Run:
    """Return a function that moves objects as an sbench function does."""
    transfer, options = settings(client, size)
    target = Target(
        client=client,
        bucket=BUCKET,
        endpoint_url=url,
        region=REGION,
        prefix="sbench/",
        client_option=options,
    )

    def run(kind: str, keys: Sequence[str]) -> None:
        job = JobSpec(
            workload="write" if kind == "put" else "read",
            target=target,
            transfer=transfer,
            number=1,
            objects=len(keys),
            size=size if kind == "put" else None,
            load=Load(threads=threads),
        )
        read = keys if kind == "get" else ()
        (spec,) = invocation_specs(job, run_id="r", created_ns=1 << 62, keys=read)
        record = run_invocation(spec, board=board)
        assert record.ok, record.error
        verified = sum(column(record.operations, "verified_bytes"))
        assert verified == (size * len(keys) if kind == "get" else 0)

    return run
