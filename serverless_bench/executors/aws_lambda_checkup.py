"""What ``sbench doctor`` hears from deployed functions themselves."""

from collections.abc import Iterator
from contextlib import closing

from serverless_bench.clock import wall_ns
from serverless_bench.executors.aws_lambda_client import LambdaClient
from serverless_bench.executors.aws_lambda_probe import ANSWER_S, ask, check_functions
from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.findings import Finding, ok
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.target import Target
from serverless_bench.worker.probe import ProbeSpec


def answers(
    name: str, region: str | None, target: Target | None, control: Target | None
) -> Iterator[Finding]:
    """Invoke a function once, and say what it is and may do; ``ExecutorInfo.try_out``."""
    spec = ProbeSpec(
        run_id=new_run_id(wall_ns()),
        # The plainest: its code is in every package.
        workload="write",
        target=target,
        control=control,
        needs=() if target is None else ("put", "get"),
    )
    client = LambdaClient(
        region or None, RunProgress(), connections=1, answer_s=ANSWER_S, patient=False
    )
    with closing(client):
        (found,), _ = ask(client, (name,), spec)
    check_functions([found], spec.workload)
    where = {True: ", in a VPC", False: ", in no VPC", None: ""}[found.in_vpc]
    may = "may claim, put and get" if target is not None else "tried in no bucket"
    yield ok(
        f"function {name}",
        f"answers from {found.region}{where}: Python {found.python} on {found.machine}, with the"
        f" code of this sbench; {may}",
    )
