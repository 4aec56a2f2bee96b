"""Contract of executors.

Inherit ``ExecutorContract`` and name the executor::

    class TestMyExecutor(ExecutorContract):
        executor = "mine"

A remote executor also needs a ``control`` target, in a store that its functions can reach.
"""

import sys
from collections.abc import Iterator

import pytest

from serverless_bench.executors import info_of, open_executor
from serverless_bench.executors.base import ExecutorInfo, Recovering, RunProgress
from serverless_bench.features.testing.faults import FAULTY_INDEX
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import InvocationRecord, Lost, Outcome

COUNT = 4
_LONG_S = 600.0


class ExecutorContract:
    """Tests of an executor; the module docstring describes them."""

    executor: str
    """Name in ``executors.EXECUTORS``, or of an entry point."""
    control: Target | None = None
    """Target for the records of a remote executor; subclasses may set it in a fixture."""
    timeout_s = 10.0
    """Deadline of a job with a function that is killed or hangs."""

    def job(self, workload: str, *, number: int = COUNT) -> JobSpec:
        """Return a job that needs no store."""
        return JobSpec(
            name="contract",
            workload=workload,
            target=Target(bucket="none", endpoint_url="http://127.0.0.1:1"),
            control=self.control,
            executor=self.executor,
            number=number,
            concurrency=2,
            # No other function is late, however busy the machine is.
            deadline=self.timeout_s if workload in {"fault-kill", "fault-hang"} else _LONG_S,
        )

    def outcomes(self, workload: str, *, number: int = COUNT) -> list[Outcome]:
        """Run a job and return its outcomes by index."""
        job = self.job(workload, number=number)
        outcomes = list(open_executor(job).map(specs(job), RunProgress()))
        assert [type(outcome) for outcome in outcomes] == [Outcome] * number
        return sorted(outcomes, key=lambda outcome: outcome.result.index)

    def test_it_declares_itself(self) -> None:
        info = info_of(self.executor)
        assert isinstance(info, ExecutorInfo)
        assert info.remote is isinstance(open_executor(self.job("noop")), Recovering)

    def test_every_invocation_has_one_outcome(self) -> None:
        outcomes = self.outcomes("noop", number=20)
        assert [outcome.result.index for outcome in outcomes] == list(range(20))
        assert all(isinstance(o.result, InvocationRecord) and o.result.ok for o in outcomes)

    def test_submitted_comes_before_start_and_end_before_collected(self) -> None:
        for outcome in self.outcomes("noop"):
            record = outcome.result
            assert isinstance(record, InvocationRecord)
            assert outcome.submitted_ns <= record.start_ns <= record.end_ns <= outcome.collected_ns

    def test_a_worker_is_cold_once(self) -> None:
        records = [o.result for o in self.outcomes("noop", number=12)]
        cold = [r.worker_id for r in records if isinstance(r, InvocationRecord) and r.cold_start]
        assert len(cold) == len(set(cold))

    def test_a_function_that_raises_fails_alone(self) -> None:
        self.only_one_is_bad("fault-raise", InvocationRecord, "planned failure")

    @pytest.mark.parametrize("fault", ["fault-kill", "fault-hang"])
    def test_a_function_that_is_killed_or_hangs_is_lost_alone(self, fault: str) -> None:
        if info_of(self.executor).in_process:
            pytest.skip("this executor runs functions in the caller's process")
        self.only_one_is_bad(fault, Lost, "")

    def only_one_is_bad(self, workload: str, kind: type, words: str) -> None:
        """Check that invocation 1 is a ``kind`` with ``words``, and all others are ok."""
        for outcome in self.outcomes(workload):
            result = outcome.result
            if result.index == FAULTY_INDEX:
                assert isinstance(result, kind)
                assert words in str(result.cause if isinstance(result, Lost) else result.error)
            else:
                assert isinstance(result, InvocationRecord)
                assert result.ok

    def test_closing_early_ends_the_rest(self) -> None:
        job = self.job("noop", number=50)
        outcomes = open_executor(job).map(specs(job), RunProgress())
        next(outcomes)
        outcomes.close()
        with pytest.raises(StopIteration):
            next(outcomes)


def specs(job: JobSpec) -> Iterator[InvocationSpec]:
    """Return the invocations of a job, without an expiry."""
    return invocation_specs(job, run_id="contract", created_ns=sys.maxsize // 2)
