from collections.abc import Iterator
from typing import Any

import pytest

from serverless_bench.features.cost import outlook
from serverless_bench.job import invocations
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from tests.house.members import uses


@uses("workload read")
def test_a_read_is_not_gone_through_for_keys_that_it_would_not_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []

    def counted(*arguments: Any, **named: Any) -> Iterator[InvocationSpec]:
        for spec in invocation_specs(*arguments, **named):
            looked.append(spec.index)
            yield spec

    monkeypatch.setattr(invocations, "invocation_specs", counted)
    job = JobSpec(workload="read", target=Target(bucket="b"), number=50_000, concurrency=10)
    found = outlook.outlook(job, ["a", "b", "c"])
    assert found.operations == {"get": 50_000}
    assert found.keys == ("a", "b")
    assert len(looked) <= 20_001
