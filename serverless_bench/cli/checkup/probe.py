"""What ``sbench doctor`` hears from the functions themselves."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Final

from serverless_bench.cli.checkup.base import Patient
from serverless_bench.clock import wall_ns
from serverless_bench.driver.target import resolve
from serverless_bench.executors.aws_lambda_client import LambdaClient
from serverless_bench.executors.aws_lambda_probe import ANSWER_S, ask, check_functions
from serverless_bench.executors.base import RunProgress
from serverless_bench.executors.findings import Finding, ok
from serverless_bench.job.defaults import CONTROL_PREFIX
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.target import Target
from serverless_bench.worker.probe import ProbeSpec

_WORKLOAD: Final = "write"
"""The plainest: what its code needs is in every package."""


def answers(name: str, patient: Patient, target: Target | None) -> Iterator[Finding]:
    """Invoke a function once, and say what it is and may do.

    Parameters
    ----------
    name
        Of the function.
    patient
        Has the region, and the stack if there is one.
    target
        Where its jobs would put objects; None to have it try nothing.
    """
    control = None
    if target is not None:
        target = resolve(target, region=patient.region)
        control = replace(target, prefix=CONTROL_PREFIX)
        if patient.stack is not None:
            own = Target(bucket=patient.stack.control_bucket, prefix=CONTROL_PREFIX)
            control = resolve(own, region=patient.stack.region)
    spec = ProbeSpec(
        run_id=new_run_id(wall_ns()),
        workload=_WORKLOAD,
        target=target,
        control=control,
        needs=() if target is None else ("put", "get"),
    )
    region = patient.region or (target.region if target else "")
    client = LambdaClient(
        region or None, RunProgress(), connections=1, answer_s=ANSWER_S, patient=False
    )
    with closing(client):
        (found,), _ = ask(client, (name,), spec)
    check_functions([found], _WORKLOAD)
    where = {True: ", in a VPC", False: ", in no VPC", None: ""}[found.in_vpc]
    may = "may claim, put and get" if target is not None else "tried in no bucket"
    yield ok(
        f"function {name}",
        f"answers from {found.region}{where}: Python {found.python} on {found.machine}, with the"
        f" code of this sbench; {may}",
    )
