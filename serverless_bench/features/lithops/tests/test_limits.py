"""What a user has to know about a backend of Lithops before its functions are lost."""

from dataclasses import replace

import pytest

from serverless_bench.features.lithops.executor import limits
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target

JOB = JobSpec(
    workload="write", target=Target(bucket="b", endpoint_url="http://127.0.0.1:9"), number=1, size=1
)


@pytest.mark.parametrize(
    ("backend", "deadline", "start_timeout", "says"),
    [
        ("aws_lambda", 900, 60, []),
        ("azure_functions", 900, 60, []),
        ("gcp_functions", 900, 60, ["after 540 s"]),
        ("gcp_functions", 500, 60, []),
        ("oracle_f", 900, 60, ["after 300 s"]),
        ("aws_batch", 900, 60, ["after 60 s: set `start_timeout` 600"]),
        ("k8s", 3600, 60, ["`start_timeout`"]),
        ("aws_ec2", 900, 600, []),
    ],
)
def test_limits_of_a_backend_are_noted(
    backend: str, deadline: float, start_timeout: float, says: list[str]
) -> None:
    job = replace(JOB, deadline=float(deadline)).with_options(start_timeout=float(start_timeout))
    noted = [*limits(backend, job)]
    assert len(noted) == len(says)
    for text, expected in zip(noted, says, strict=True):
        assert text.startswith(backend)
        assert expected in text
