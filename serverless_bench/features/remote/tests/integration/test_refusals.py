"""Functions that report that they did not run: the driver's checks, and when it gives up."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from queue import Empty, SimpleQueue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import ExecutorError
from serverless_bench.executors.base import RunProgress
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.remote.claims import RecordKey, for_run, get_claim, leave_refusal
from serverless_bench.features.remote.delivery import handle_delivery
from serverless_bench.features.remote.launcher import Launcher, Refusal
from serverless_bench.features.remote.map import RemoteMap
from serverless_bench.features.remote.view import RequestedRecords
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import new_run_id
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.record import Lost, Outcome
from serverless_bench.worker.object_io import ObjectIO
from tests.stores.servers import KEYS, credentials

COUNT = 3
DENIED = "AccessDenied: no credentials"
ANSWERS = ("run", "refused", "refused for good", "left for good")
"""Behaviours of functions; the last one stores its refusal as a record, because no answer is read.
"""


@pytest.fixture(scope="module")
def store() -> Iterator[LoopbackServer]:
    with credentials(KEYS), serving() as server:
        yield server


def job_in(store: LoopbackServer) -> JobSpec:
    target = Target(bucket="any", endpoint_url=store.endpoint_url)
    return JobSpec(
        workload="write",
        target=target,
        control=replace(target, prefix="control/"),
        number=COUNT,
        concurrency=COUNT,
        size=1000,
        deadline=5,
        options={"start_timeout": 600},
    )


@dataclass
class Answering(Launcher):
    """Runs events or refuses them, as set by index; others are run."""

    answers: Mapping[int, str]
    most: int = COUNT
    heard: SimpleQueue[Refusal] = field(default_factory=SimpleQueue)

    def launch(self, events: Callable[[], Iterable[InvocationSpec]]) -> int:
        (event,) = events()
        answer = self.answers.get(event.index, "run")
        if "run" in answer:
            handle_delivery(asdict(event))
        if answer == "left for good":
            assert event.control is not None
            with closing(ObjectIO(for_run(event.control, event.run_id))) as control:
                key = RecordKey(event.index, event.launch, "1" * 32)
                leave_refusal(control, event.run_id, key, DENIED)
        elif "refused" in answer:
            self.refuse(event.index, event.launch, permanent="for good" in answer)
        return 0

    def refuse(self, index: int, launch: int, *, permanent: bool) -> None:
        self.heard.put(Refusal(index=index, launch=launch, cause=DENIED, permanent=permanent))

    def refusals(self) -> Iterator[Refusal]:
        try:
            while True:
                yield self.heard.get_nowait()
        except Empty:
            return


def run(
    job: JobSpec, launcher: Answering, seen: RequestedRecords | None = None
) -> tuple[list[Outcome], ExecutorError | None]:
    """Return the outcomes of a wave, and the error that it ended with."""
    seen = RequestedRecords(COUNT) if seen is None else seen
    now_ns = wall_ns()
    specs = list(invocation_specs(job, run_id=new_run_id(now_ns), created_ns=now_ns))
    outcomes = []
    refusable = RemoteMap(job, launcher, RunProgress(), seen=seen)
    try:
        for outcome in refusable.run(specs):
            outcomes.append(outcome)
            check_claim(job, specs[0].run_id, outcome)
    except ExecutorError as exc:
        return outcomes, exc
    return outcomes, None


def check_claim(job: JobSpec, run_id: str, outcome: Outcome) -> None:
    """Check that an unstarted function can no longer start, and that a started one had a claim."""
    assert job.control is not None
    result = outcome.result
    with closing(ObjectIO(for_run(job.control, run_id))) as control:
        claim = get_claim(control, result.index, result.launch, timeout_s=30)
    assert claim is not None
    assert ("taken_back_ns" in claim) == isinstance(result, Lost)


@settings(max_examples=6)
@given(
    st.lists(
        st.sampled_from([*ANSWERS, "run, refused for good"]),
        min_size=COUNT,
        max_size=COUNT,
    )
)
def test_every_function_has_one_outcome_and_its_cause(
    store: LoopbackServer, answers: list[str]
) -> None:
    """A refusal of work that another worker has claimed is not believed, in any place."""
    outcomes, error = run(job_in(store), Answering(dict(enumerate(answers))))
    assert sorted(one.result.index for one in outcomes) == list(range(COUNT))
    gone = {one.result.index: one.result for one in outcomes if isinstance(one.result, Lost)}
    assert gone.keys() == {i for i, answer in enumerate(answers) if "run" not in answer}
    assert all(one.not_started and one.cause == DENIED for one in gone.values())
    assert (error is not None) == (set(answers) <= {"refused for good", "left for good"})


def test_a_run_that_nobody_can_do_anything_for_ends_with_the_cause(store: LoopbackServer) -> None:
    refused = dict.fromkeys(range(COUNT), "refused for good")
    outcomes, error = run(job_in(store), Answering(refused))
    assert len(outcomes) == COUNT
    assert str(error) == f"no function can run: {DENIED}"


def test_a_later_wave_may_be_refused_where_others_have_run(store: LoopbackServer) -> None:
    """Workers may have different permissions: the next launch may reach one that can run."""
    seen = RequestedRecords(COUNT)
    run(job_in(store), Answering({}), seen)
    _, error = run(job_in(store), Answering(dict.fromkeys(range(COUNT), "refused for good")), seen)
    assert error is None


def test_statements_on_other_launches_are_ignored(store: LoopbackServer) -> None:
    launcher = Answering({})
    for index, launch in ((0, 1), (COUNT, 0), (-1, 0)):
        launcher.refuse(index, launch, permanent=True)
    outcomes, error = run(job_in(store), launcher)
    assert not any(isinstance(one.result, Lost) for one in outcomes)
    assert error is None
