"""A user's own function: packed, refused, run, and its arguments."""

import json
import os
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverless_bench.base import clock
from serverless_bench.base.errors import AccessDenied, Corrupt, NotFound, UsageError
from serverless_bench.base.process import environment
from serverless_bench.base.units import NS_PER_S
from serverless_bench.clients.base import Exchange, Source
from serverless_bench.driver.plan import ledger
from serverless_bench.features.custom.context import FunctionContext
from serverless_bench.features.custom.load import FunctionLoad
from serverless_bench.features.custom.own_function import load_function
from serverless_bench.features.custom.pickling import MAX_CODE_BYTES, pack
from serverless_bench.features.custom.user_function import PYTHON
from serverless_bench.features.custom.workload import ALLOW_CODE
from serverless_bench.job.abilities import environment_of
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.workload import Load, open_workload
from serverless_bench.payload.shaped import content_of
from serverless_bench.rundir.record import InvocationRecord
from serverless_bench.worker import runner
from serverless_bench.worker.invocation import forget_clients, run_invocation
from tests.data.own_functions import function_job
from tests.data.runs import TARGET
from tests.house.members import uses
from tests.stores.virtual_time import BEGIN_NS, SlowClient, VirtualTime, virtual_time
from tests.tables import each_row
from tests.unit.flaky import FlakyClient, open_barrier

SIZE = 10_000
STORE_S = 0.05
"""What a store takes for an answer, by a virtual clock."""
OwnFunction = Callable[[FunctionContext], object]


def allowed_here() -> AbstractContextManager[None]:
    """Let this process run code, as executors let their workers."""
    return environment(environment_of(open_workload("custom")))


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[FlakyClient]:
    flaky = FlakyClient()
    monkeypatch.setattr(runner, "open_client", lambda *_: flaky)
    forget_clients()
    yield flaky
    forget_clients()


@contextmanager
def at_work() -> Iterator[VirtualTime]:
    """Functions live by a virtual clock, and a store takes time for each answer."""
    with virtual_time() as time, pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: SlowClient(time, STORE_S))
        forget_clients()
        yield time
        forget_clients()


def job(function: OwnFunction, **of: Any) -> JobSpec:
    return function_job(function, target=TARGET, number=1, **{"objects": 2, "size": SIZE, **of})


def planned(of: JobSpec, keys: tuple[str, ...] = ()) -> InvocationSpec:
    (spec,) = invocation_specs(of, run_id="r", created_ns=sys.maxsize // 2, keys=keys)
    return spec


def called(function: OwnFunction, **of: Any) -> InvocationRecord:
    with allowed_here():
        return run_invocation(planned(job(function, **of)))


def writes(context: FunctionContext) -> None:
    context.put(context.new_key())


def test_a_worker_runs_no_code_without_permission(
    client: FlakyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = planned(job(writes))
    for value in (None, "0", "", "true"):
        if value is None:
            monkeypatch.delenv(ALLOW_CODE, raising=False)
        else:
            monkeypatch.setenv(ALLOW_CODE, value)
        record = run_invocation(spec)
        assert record.operations == ()
        assert str(record.error).startswith("refused: this worker does not run code")
    assert client.calls == []


def test_code_is_refused_before_it_is_looked_at(client: FlakyClient) -> None:
    spec = planned(job(writes))
    for code, why in (
        (None, "has no function"),
        ("cpython-2.7:gASV", "was pickled by cpython-2.7"),
        ("gASV", "was pickled by gASV"),
    ):
        with allowed_here():
            record = run_invocation(replace(spec, load=FunctionLoad(code=code)))
        assert why in str(record.error)
    with allowed_here():
        broken = run_invocation(replace(spec, load=FunctionLoad(code=f"{PYTHON}:AAAA")))
    assert str(broken.error).startswith("function: UnpicklingError")


def test_leave_to_run_code_ends_with_the_block() -> None:
    assert ALLOW_CODE not in os.environ
    with allowed_here(), allowed_here():
        assert os.environ[ALLOW_CODE] == "1"
    assert ALLOW_CODE not in os.environ


def test_its_operations_are_measured_like_ours(client: FlakyClient) -> None:
    def mine(context: FunctionContext) -> None:
        key = context.new_key()
        context.put(key)
        assert context.get(key) == context.content(key).read(0, SIZE)
        assert context.get(key, 100, 50) == context.content(key).read(100, 50)
        assert context.get(key, SIZE - 7) == context.content(key).read(SIZE - 7, 7)
        context.check(key)
        assert context.head(key) == context.size(key) == SIZE
        assert context.list() == [key]
        context.delete(key)
        assert context.list() == []

    record = called(mine)
    assert record.error is None
    kinds = " ".join(op.kind.value for op in record.operations)
    assert kinds == "put get get_range get_range get head list delete list"
    assert [op.index for op in record.operations] == list(range(9))
    assert [op.verified_bytes for op in record.operations[1:5]] == [SIZE, 50, 7, SIZE]
    assert len(record.attempts) == 9
    assert sum(step.step_bytes for step in record.steps) == 3 * SIZE + 57


def test_the_keys_that_it_may_make_stand_in_the_ledger(client: FlakyClient) -> None:
    made: list[str] = []

    def mine(context: FunctionContext) -> None:
        for number in (None, None, 0):
            context.put(context.new_key(number))

    of = job(mine)
    record = called(mine)
    made = [op.key for op in record.operations]
    assert made == [*ledger(of, [planned(of)]), made[0]]
    drawn = job(mine, size=None, load=Load(sizes="uniform:1KiB:8KiB"))
    assert len([*ledger(drawn, [planned(drawn)])]) == 2
    assert [*ledger(none := job(mine, size=None), [planned(none)])] == []


@pytest.mark.parametrize(
    ("mine", "why"),
    [
        (lambda context: context.new_key(2), "object 2 is out of range"),
        (lambda context: context.put("others/key.10"), "was not created by this function"),
        (lambda context: context.delete("others/key.10"), "others/key.10 was not created"),
        (lambda context: context.get("k", -1), "not a range of an object"),
        (lambda context: context.get("foreign", 5), "needs a length"),
        (lambda context: context.verify("k", 0, b"x"), "before any measured block"),
    ],
)
def test_forbidden_calls_are_errors_of_their_own(
    client: FlakyClient, mine: OwnFunction, why: str
) -> None:
    record = called(mine)
    assert str(record.error).startswith("function: UsageError: ")
    assert why in str(record.error)
    assert record.operations == ()


def test_a_job_without_sizes_makes_no_objects(client: FlakyClient) -> None:
    assert "does not let its functions create objects" in str(called(writes, size=None).error)


def test_exceptions_are_one_line_with_a_place(client: FlakyClient) -> None:
    def mine(context: FunctionContext) -> None:
        context.put(context.new_key())
        raise ValueError("several\nlines " + "x" * 500)

    record = called(mine)
    assert str(record.error).startswith("function: ValueError: several lines xxx")
    line = mine.__code__.co_firstlineno + 2
    assert str(record.error).endswith(f"... (test_user_function.py:{line})")
    assert len(str(record.error)) < 300
    assert record.operations[0].error is None
    left = called(lambda _: sys.exit("bye"))
    assert str(left.error).startswith("function: SystemExit: bye (test_user_function.py:")


def test_the_place_is_its_own_line_and_not_one_of_a_library(client: FlakyClient) -> None:
    def mine(context: FunctionContext) -> None:
        del context
        np.zeros(3).reshape(2, 2)

    where = f"(test_user_function.py:{mine.__code__.co_firstlineno + 2})"
    assert str(called(mine).error).endswith(where)


def test_a_failed_operation_is_raised_and_may_be_caught(client: FlakyClient) -> None:
    client.script["get"] = [NotFound("not there", status=404)]

    def mine(context: FunctionContext) -> None:
        key = context.new_key()
        try:
            context.get(key)
        except NotFound:
            context.put(key)

    record = called(mine)
    assert record.error is None
    assert [op.error for op in record.operations] == ["not_found", None]


def test_a_wrong_byte_of_the_store_is_raised_too(
    client: FlakyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mine(context: FunctionContext) -> None:
        key = context.new_key()
        context.put(key)
        try:
            context.get(key)
        except Corrupt as exc:
            with context.measure(str(exc)):
                pass

    put = client.put

    def spoil(key: str, source: Source, exchange: Exchange) -> None:
        put(key, source, exchange)
        client.objects[key] = bytes([client.objects[key][0] ^ 1]) + client.objects[key][1:]

    monkeypatch.setattr(client, "put", spoil)
    record = called(mine)
    assert [op.error for op in record.operations] == [None, "corrupt", None]
    assert record.operations[2].key == "get: 1 bytes are wrong"


def test_a_block_is_an_operation(client: FlakyClient) -> None:
    def mine(context: FunctionContext) -> None:
        data = context.content("anything").read(5, 3 << 20)
        with context.measure("read"):
            pass
        assert context.verify("anything", 5, np.frombuffer(data, dtype="<u2")) == 0
        with context.measure("idle") as block:
            block.bytes = 1000
        with pytest.raises(ZeroDivisionError), context.measure("fails"):
            context.remaining_s / 0

    record = called(mine)
    assert record.error is None
    read, idle, fails = record.operations
    assert (read.kind, read.key, read.size) == (OperationKind.CALL, "read", None)
    # Verified bytes count as moved, for any value of the block; comparing took no time of it.
    assert (read.bytes, read.verified_bytes, read.payload_ns) == (3 << 20, 3 << 20, 0)
    assert (idle.bytes, idle.verified_bytes) == (1000, 0)
    assert (fails.error, fails.bytes) == ("ZeroDivisionError", 0)
    assert [step.step_bytes for step in record.steps] == [3 << 20, 1000, 0]
    assert [step.operation for step in record.steps] == [0, 1, 2]


@uses("feature live")
def test_blocks_are_on_the_live_board(client: FlakyClient) -> None:
    from serverless_bench.features.live.board import LiveBoard

    def mine(context: FunctionContext) -> None:
        context.put(context.new_key())
        with context.measure("idle") as block:
            block.bytes = 77

    board = LiveBoard.here()
    with allowed_here():
        assert run_invocation(planned(job(mine)), board=board.writer()).ok
    totals = board.totals()
    assert (totals.operations["put"], totals.operations["call"]) == (1, 1)
    assert totals.bytes["call"] == 77


def test_numbers_of_numpy_and_odd_names_fit_into_a_record(client: FlakyClient) -> None:
    def mine(context: FunctionContext) -> None:
        key = context.new_key()
        context.put(key)
        context.get(key, np.int64(3), np.int32(5))  # type: ignore[arg-type]
        with context.measure("two\nlines \udcff") as block:
            block.bytes = np.int64(7)  # type: ignore[assignment]
        context.verify("name", np.uint8(1), b"wrong")  # type: ignore[arg-type]
        raise ValueError("\udcff")

    record = called(mine)
    json.dumps(record.to_json(), allow_nan=False).encode()
    assert [op.key for op in record.operations][2:] == ["two lines ?"]
    assert [op.offset for op in record.operations] == [0, 3, 0]
    assert str(record.error).startswith("function: ValueError: ? (")


@settings(max_examples=30)
@given(offset=st.integers(0, 1 << 40), length=st.integers(1, 5000), data=st.data())
def test_a_wrong_byte_is_found_in_any_buffer(offset: int, length: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, length - 1))

    def mine(context: FunctionContext) -> None:
        block = context.content("name").read(offset, length)
        block[at] ^= 0x10
        with context.measure("read"):
            pass
        assert context.verify("name", offset, block) == 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "open_client", lambda *_: FlakyClient())
        forget_clients()
        record = called(mine)
        forget_clients()
    (read,) = record.operations
    assert (read.error, read.bad_bytes, read.verified_bytes) == ("corrupt", 1, length - 1)
    (bad,) = record.bad_ranges
    assert (bad.key, bad.offset, bad.operation) == ("name", offset + at, 0)


def test_threads_of_its_own_share_the_context(client: FlakyClient) -> None:
    def mine(context: FunctionContext) -> None:
        def one(number: int) -> None:
            key = context.new_key(number)
            context.put(key)
            with context.measure("block"):
                context.get(key)

        threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    record = called(mine, objects=8)
    assert record.error is None
    assert len(record.operations) == 24
    assert [op.index for op in record.operations] == list(range(24))
    assert {op.error for op in record.operations} == {None}


def test_reads_of_the_context_are_not_verified_twice(client: FlakyClient) -> None:
    """Its bytes would count as operations and as the block's."""

    def mine(context: FunctionContext) -> None:
        key = context.new_key()
        context.put(key)
        with context.measure("by hand"):
            data = context.get(key)
        context.verify(key, 0, data)

    record = called(mine, objects=1)
    assert record.error is not None
    assert "its bytes would count twice" in record.error
    assert {op.kind.value: op.bytes > 0 for op in record.operations} == {
        "put": True,
        "get": True,
        "call": False,
    }


def test_the_warm_up_and_a_duration_call_it_again(client: FlakyClient) -> None:
    warm = called(writes, warm_up=2)
    assert [op.warmup for op in warm.operations] == [True, True, False]
    with at_work() as time:
        lasting = called(writes, duration=0.2)
    # One begins as the time is not over yet, and none when it is.
    assert len(lasting.operations) == 0.2 / STORE_S
    assert time.now_ns - BEGIN_NS == 0.2 * NS_PER_S


def test_after_its_deadline_it_starts_no_operation() -> None:
    def mine(context: FunctionContext) -> None:
        clock.sleep(context.remaining_s + 0.001)
        context.put(context.new_key())

    with at_work():
        record = called(mine, deadline=0.01)
    assert record.error == "deadline: stopped before the function had finished"
    assert record.operations == ()


def test_a_client_that_cannot_list_says_so(
    client: FlakyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    only = replace(FlakyClient.info, operations=frozenset({"put", "get"}))
    monkeypatch.setattr(FlakyClient, "info", only)
    assert "client 'wire' does not support list" in str(
        called(lambda context: context.list()).error
    )


def test_it_gets_its_share_of_the_keys(client: FlakyClient) -> None:
    keys = tuple(f"{n:032x}.{SIZE}" for n in range(3))
    client.objects[keys[2]] = bytes(content_bytes(keys[2]))

    def mine(context: FunctionContext) -> None:
        assert len(context.keys) == 2
        assert context.index == context.launch == 0
        assert context.prefix == f"{context.target.prefix}{context.run_id}/0/0/"
        context.get(context.keys[1])

    with allowed_here():
        record = run_invocation(planned(job(mine), keys[1:]))
    assert (record.error, record.operations[0].verified_bytes) == (None, SIZE)


def content_bytes(key: str) -> bytearray:
    room = bytearray(SIZE)
    content_of(key).readinto_at(0, room)
    return room


def test_modules_beside_its_file_are_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: FlakyClient
) -> None:
    (tmp_path / "beside.py").write_text("def answer():\n    return 42\n")
    (tmp_path / "mine.py").write_text(
        "import beside\ndef mine(context):\n    raise ValueError(beside.answer())\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from mine import mine  # type: ignore[import-not-found]

    spec = planned(job(mine))
    for name in ("mine", "beside"):
        # Without monkeypatch, which would restore them for later tests.
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(tmp_path)])
    with allowed_here():
        assert "ValueError: 42 (mine.py:3)" in str(run_invocation(spec).error)
    import cloudpickle

    assert not cloudpickle.list_registry_pickle_by_value()


@each_row(
    ("named", "why"),
    [
        ("own.py", "'own.py' is not FILE.py:FUNCTION"),
        ("own.txt:good", "is not FILE.py:FUNCTION"),
        ("none.py:good", "there is no file none.py"),
        ("own.py:none", "own.py has no function 'none'"),
        ("own.py:number", "own.py has no function 'number'"),
        ("broken.py:good", "broken.py, line 2: ModuleNotFoundError: No module"),
        ("syntax.py:good", "syntax.py: SyntaxError"),
    ],
)
def test_invalid_functions_in_a_file_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, text in (
        ("own", "number = 5\n"),
        ("broken", "\nimport nothing_of_that_name\n"),
        ("syntax", "def\n"),
    ):
        (tmp_path / f"{name}.py").write_text(text)
    before = set(sys.modules)
    with pytest.raises(UsageError, match=re.escape(why)):
        load_function(named)
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_things_that_are_called_are_functions_too(client: FlakyClient) -> None:
    def mine(word: str, context: FunctionContext) -> None:
        with context.measure(word):
            pass

    assert called(partial(mine, "hello")).operations[0].key == "hello"


SECRET = "wJalrXUtnFEMI/not/a/real/key"


def test_credentials_and_unpicklable_objects_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    session, lock, big = boto3.Session(), threading.Lock(), os.urandom(MAX_CODE_BYTES)
    secret = SECRET
    for function, why in (
        (lambda _: session, "holds credentials"),
        (lambda _: session.client("s3"), "holds credentials"),
        (lambda _: secret, "holds credentials"),
        (lambda _: lock, "cannot be sent: TypeError"),
        (lambda _: big, "fit into an event"),
        ("no function", "is not a function"),
    ):
        with pytest.raises(UsageError, match=why) as caught:
            pack(function)  # type: ignore[arg-type]
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("secret", "is_sent"), [("test", True), ("testing", True), ("minioadmin", False)]
)
def test_the_word_that_test_stores_have_for_a_secret_may_stand_in_names(
    monkeypatch: pytest.MonkeyPatch, secret: str, *, is_sent: bool
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    named = f"my_{secret}_here"
    refused = ""
    try:
        assert pack(lambda _: named)
    except UsageError as exc:
        refused = str(exc)
    assert ("holds credentials" in refused) == (not is_sent)


@pytest.mark.parametrize(
    "load", [Load(rate=5), Load(threads=2), Load(mix=(("get", 1.0),))], ids=str
)
def test_loads_without_effect_are_refused(load: Load) -> None:
    with pytest.raises(UsageError, match="does not apply to the workload custom"):
        job(writes, load=load)


def test_an_event_with_a_function_is_small_enough() -> None:
    big = os.urandom(MAX_CODE_BYTES - 2000)

    def mine(context: FunctionContext) -> object:
        return context, big

    assert 128_000 < len(str(planned(job(mine)))) < 1_000_000


def test_the_worker_needs_cloudpickle(client: FlakyClient, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = planned(job(writes))
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with allowed_here():
        assert run_invocation(spec).error == "refused: this worker has no cloudpickle"


def test_its_module_may_be_gone(client: FlakyClient) -> None:
    lonely = types.FunctionType(writes.__code__, writes.__globals__, "lonely")
    lonely.__module__ = "not.there"
    assert called(lonely).error is None


@uses("feature barrier")
@pytest.mark.parametrize("status", [403, 404])
def test_a_missing_start_is_awaited_for_any_answer_of_s3(client: FlakyClient, status: int) -> None:
    """S3 answers 403 to callers that may not list."""
    kind = {403: AccessDenied, 404: NotFound}[status]
    open_barrier(client, TARGET.prefix)
    client.script["get"] = [kind("not there", status=status)] * 2
    record = called(writes, options={"barrier": 1.0})
    assert (record.error, record.barrier_late, record.barrier_gets) == (None, False, 3)


@uses("feature barrier")
def test_the_barrier_is_between_the_calls_of_the_warm_up_and_the_others(
    client: FlakyClient,
) -> None:
    open_barrier(client, TARGET.prefix)

    def function(context: FunctionContext) -> None:
        context.put(context.new_key())

    record = called(function, warm_up=2, options={"barrier": 1.0})
    assert record.ok
    assert record.barrier_wait_ns is not None
    assert [op.warmup for op in record.operations] == [True, True, False]
    # The announcement and one poll of the start come after the second put, before the third.
    assert [call for call in client.calls if call in {"put", "get"}] == [
        *("put", "put"),
        *("put", "get"),
        "put",
    ]
