"""Workers without invocations: real processes that look for events in a store."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from serverless_bench.base.clock import wall_ns
from serverless_bench.base.errors import INTERRUPTED
from serverless_bench.features.array.load import ArrayLoad, ArraySpec
from serverless_bench.features.loopback.server import LoopbackServer, serving
from serverless_bench.features.remote.claims import (
    RecordKey,
    claim,
    claim_name,
    event_name,
    for_events,
    for_run,
    record_name,
)
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import InvocationSpec, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.rundir.run import Run, load_run
from serverless_bench.rundir.tables import is_text
from serverless_bench.worker.object_io import ObjectIO
from tests.commands.command import Apart, Sbench
from tests.commands.processes import PATIENCE_S, until
from tests.data.runs import long_ago
from tests.house.members import uses
from tests.matrix.proxy import HOLD, Proxy, Refusal, proxy_of, refuses_claims, s3_refusal
from tests.stores.servers import KEYS, credentials

BUCKET, CONTROL, RUN = "any", "control/", "run"
CODE = """def mine(context):
    return context.index
"""


@pytest.fixture
def store() -> Iterator[LoopbackServer]:
    with serving() as server:
        yield server


@pytest.fixture
def proxy(store: LoopbackServer) -> Iterator[Proxy]:
    with proxy_of(store.endpoint_url) as between:
        yield between


@pytest.fixture
def here(tmp_path: Path) -> Sbench:
    return Sbench(tmp_path, KEYS)


@pytest.fixture
def events(store: LoopbackServer) -> Iterator[ObjectIO]:
    with credentials(KEYS), closing(ObjectIO(for_events(control(store.endpoint_url)))) as objects:
        yield objects


@pytest.fixture
def own(store: LoopbackServer) -> Iterator[ObjectIO]:
    """Claims and records of the run that ``invocation`` is of."""
    place = for_run(control(store.endpoint_url), RUN)
    with credentials(KEYS), closing(ObjectIO(place)) as objects:
        yield objects


def control(url: str) -> Target:
    return Target(bucket=BUCKET, prefix=CONTROL, endpoint_url=url)


def at(url: str) -> Sequence[str]:
    return "worker", "--control", f"s3://{BUCKET}/{CONTROL}", "--endpoint-url", url


def work(here: Apart, url: str, number: int) -> "list[subprocess.Popen[str]]":
    """Start workers, and return when all of them look for events."""
    started = [here.start(*at(url)) for _ in range(number)]
    for worker in started:
        assert worker.stdout is not None
        assert "takes events from s3://any/control/" in worker.stdout.readline()
    return started


def job(url: str, *flags: str | int) -> Sequence[str | int]:
    return (
        *("--executor", "workers", "--control-prefix", CONTROL, "--endpoint-url", url),
        *("--bucket", BUCKET, "--name", "w", "--run-dir", ".", "--format", "json", *flags),
    )


def names(objects: ObjectIO) -> list[str]:
    return [name for page in objects.list_pages("", timeout_s=PATIENCE_S) for name in page]


def claims(url: str) -> int:
    """Return how many launches of all runs are claimed."""
    with closing(ObjectIO(control(url))) as objects:
        return sum("/claims/0" in name for name in names(objects))


def holds_data(method: str, path: str) -> Refusal | None:
    """Let no function get on with its objects."""
    return HOLD if method == "PUT" and f"/{CONTROL}" not in path else None


def statuses(run: Run) -> list[str]:
    return [str(status) for status in run.functions["status"].astype(str)]


def end(workers: "Sequence[subprocess.Popen[str]]") -> int:
    """End workers as a scheduler of containers does; return how many functions they ran."""
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
    last = [worker.communicate(timeout=PATIENCE_S)[0].splitlines()[-1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * len(workers)
    return sum(int(line.split()[0]) for line in last)


@pytest.mark.parametrize(
    ("number", "dead"), [(6, 2), pytest.param(100, 10, marks=pytest.mark.full)]
)
def test_losses_are_reported_and_no_function_runs_twice(
    here: Sbench, store: LoopbackServer, proxy: Proxy, number: int, dead: int
) -> None:
    """Some of many workers are killed while they work."""
    workers = work(here.apart, proxy.url, number)
    proxy.rule = holds_data
    flags = ("--number", 2 * number, "--size", "10KiB", "--concurrency", number)
    driver = here.apart.start(
        "write",
        *job(
            proxy.url,
            *flags,
            *("--deadline", 30, "--retries", 100, "--start-timeout", 300),
        ),
    )
    with credentials(KEYS):
        # Each of them has one, and none can end it.
        until(lambda: claims(store.endpoint_url) == number)
    for worker in workers[:dead]:
        worker.kill()
    proxy.rule = lambda _, __: None
    out, err = driver.communicate(timeout=PATIENCE_S)
    report = json.loads(out.splitlines()[-1])
    counts = [report[name] for name in ("requested", "ok", "failed", "lost", "duplicate")]
    assert counts == [2 * number, 2 * number - dead, 0, dead, 0], err
    path = here.directory / "w"
    run = load_run(path)
    lost = is_text(run.functions["status"], "lost")
    assert all("left no record" in cause for cause in run.functions["error"][lost])
    resumed = here.apart("resume", "w", "--format", "json").json
    assert (resumed["ok"], resumed["lost"], resumed["duplicate"]) == (2 * number, 0, 0)
    keys = load_run(path).operations["key"].tolist()
    assert len(keys) == len(set(keys)) == 2 * number
    assert end(workers[dead:]) == 2 * number, "as many records as functions that were run"
    long_ago(path)
    cleaned = here.apart("clean", "w")
    assert cleaned.code == 0, cleaned.err
    assert store.state.objects.count() == 0


def test_a_worker_ends_after_the_present_event(here: Sbench, proxy: Proxy) -> None:
    workers = work(here.apart, proxy.url, 1)
    proxy.rule = holds_data
    flags = ("--number", 2, "--size", "10KiB", "--deadline", 600, "--retries", 100)
    driver = here.apart.start("write", *job(proxy.url, *flags))
    with credentials(KEYS):
        until(lambda: claims(proxy.url) == 1)
    workers[0].send_signal(signal.SIGTERM)
    others = work(here.apart, proxy.url, 1)
    proxy.rule = lambda _, __: None
    out, err = driver.communicate(timeout=PATIENCE_S)
    assert json.loads(out.splitlines()[-1])["ok"] == 2, err
    assert workers[0].communicate(timeout=PATIENCE_S)[0] == "1 function run, 0 of them failed\n"
    assert end(others) == 1


def test_a_second_signal_ends_a_worker_at_once(here: Sbench, proxy: Proxy) -> None:
    (worker,) = work(here.apart, proxy.url, 1)
    proxy.rule = holds_data
    flags = ("--number", 1, "--size", "10KiB", "--deadline", 600, "--retries", 100)
    driver = here.apart.start("write", *job(proxy.url, *flags))
    with credentials(KEYS):
        until(lambda: claims(proxy.url) == 1)

    # Two signals at once are one: the second one only counts after the first has been handled.
    def ended_by_another() -> bool:
        # Not SIGINT, which is ignored if whoever started the tests ignores it.
        worker.send_signal(signal.SIGTERM)
        return worker.poll() is not None

    until(ended_by_another)
    # Another signal may arrive during Python's shutdown, without handlers.
    assert worker.returncode in {INTERRUPTED, -signal.SIGTERM}
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(PATIENCE_S) == INTERRUPTED


def test_a_hanging_function_ends_with_its_worker(here: Sbench, store: LoopbackServer) -> None:
    workers = work(here.apart, store.endpoint_url, 2)
    spec = JobSpec(
        workload="fault-hang",
        target=Target(bucket=BUCKET, endpoint_url=store.endpoint_url),
        control=control(store.endpoint_url),
        executor="workers",
        number=2,
        concurrency=2,
        deadline=15,
    )
    with credentials(KEYS):
        from serverless_bench import run_job

        run = run_job(spec, here.directory / "w")
    assert statuses(run) == ["ok", "lost"]
    ended = until(lambda: [worker for worker in workers if worker.poll() is not None])
    assert "Timeout" in ended[0].communicate()[1]
    # One of them may have taken both events, one after the other.
    assert end([worker for worker in workers if worker not in ended]) <= 1


def test_irrevocable_events_are_lost_in_the_end(here: Sbench, proxy: Proxy) -> None:
    denied = s3_refusal(403, "AccessDenied")
    proxy.rule = lambda method, path: denied if method == "PUT" and "/claims/" in path else None
    flags = ("--number", 1, "--size", "1KiB", "--start-timeout", "0.5", "--format", "json")
    done = here("write", *job(proxy.url, *flags))
    assert done.code == 6, done.err
    assert (done.json["lost"], done.json["ok"]) == (1, 0)
    assert "its launch cannot be cancelled" in load_run(here.directory / "w").functions["error"][0]


def test_untaken_events_are_lost_and_reported(
    here: Sbench, store: LoopbackServer, events: ObjectIO
) -> None:
    flags = ("--number", 2, "--size", "1KiB", "--start-timeout", "0.5")
    done = here("write", *job(store.endpoint_url, *flags))
    assert (done.json["ok"], done.json["lost"]) == (0, 2)
    errors = load_run(here.directory / "w").functions["error"]
    assert all("not started" in error for error in errors)
    assert done.err.count(f"`sbench worker --control s3://{BUCKET}/{CONTROL}") == 1
    assert names(events) == [], "they are withdrawn"


@pytest.mark.parametrize("allowed", [False, True])
def test_code_is_run_only_where_it_is_allowed(
    here: Sbench, store: LoopbackServer, *, allowed: bool
) -> None:
    (here.directory / "own.py").write_text(CODE)
    flags = ["--allow-code"] if allowed else []
    worker = here.apart.start(*at(store.endpoint_url), *flags)
    done = here("custom", "own.py:mine", *job(store.endpoint_url, "--number", 1))
    assert done.json["ok"] == allowed, done.err
    if not allowed:
        (error,) = load_run(here.directory / "w").functions["error"]
        assert "refused: this worker does not run code" in error
        assert "--allow-code" in error
    assert end([worker]) == 1


# One worker, in this process


def invocation(url: str, **changes: object) -> InvocationSpec:
    spec = JobSpec(
        workload="noop",
        target=Target(bucket=BUCKET, endpoint_url=url),
        control=control(url),
        executor="workers",
        number=1,
    )
    (made,) = invocation_specs(spec, run_id=RUN, created_ns=wall_ns())
    return replace(made, **changes)  # type: ignore[arg-type]


def lay(events: ObjectIO, event: InvocationSpec) -> str:
    name = event_name(event.run_id, event.index, event.launch)
    events.put(name, json.dumps(asdict(event)).encode(), timeout_s=PATIENCE_S)
    return name


@uses("workload noop")
def test_an_idle_worker_ends(here: Sbench, store: LoopbackServer, events: ObjectIO) -> None:
    lay(events, invocation(store.endpoint_url))
    done = here(*at(store.endpoint_url), "--idle", 0)
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "1 function run, 0 of them failed"
    assert names(events) == []


@uses("workload noop")
@pytest.mark.parametrize("holder", ["delivery", "taken_back_ns"])
def test_claimed_events_are_skipped(
    here: Sbench, store: LoopbackServer, events: ObjectIO, own: ObjectIO, holder: str
) -> None:
    """While its event exists, another worker's claim is not a duplicate delivery."""
    event = invocation(store.endpoint_url)
    lay(events, event)
    claim(own, claim_name(0, 0), {"run_id": RUN, holder: "1"}, timeout_s=PATIENCE_S)
    done = here(*at(store.endpoint_url), "--idle", 0)
    assert (done.code, done.err) == (0, "")
    assert "0 functions run" in done.out
    assert names(events) == [], "nobody has to look at it again"
    assert list(own.list_pages("records/", timeout_s=PATIENCE_S)) == [[]]


@uses("workload noop")
def test_late_events_are_left_to_the_driver(
    here: Sbench, store: LoopbackServer, events: ObjectIO
) -> None:
    """This machine's clock may be the wrong one."""
    name = lay(events, invocation(store.endpoint_url, not_after_ns=1))
    assert "0 functions run" in here(*at(store.endpoint_url), "--idle", 0).out
    assert names(events) == [name]
    assert claims(store.endpoint_url) == 0


@uses("workload noop")
def test_without_permission_to_delete_each_event_runs_once(
    here: Sbench, proxy: Proxy, events: ObjectIO
) -> None:
    name = lay(events, invocation(proxy.url))
    denied = s3_refusal(403, "AccessDenied")
    proxy.rule = lambda method, _: denied if method == "DELETE" else None
    for ran in (1, 0):
        done = here(*at(proxy.url), "--idle", 0)
        assert (done.code, done.err) == (0, "")
        assert f"\n{ran} function" in done.out
    assert names(events) == [name]


@uses("workload noop")
def test_events_that_cannot_be_read_are_one_line(
    here: Sbench, proxy: Proxy, events: ObjectIO
) -> None:
    lay(events, invocation(proxy.url))
    denied = s3_refusal(403, "AccessDenied")
    proxy.rule = lambda method, path: denied if method == "GET" and "/events/" in path else None
    done = here(*at(proxy.url), "--idle", 0)
    assert done.code == 5
    assert "the events below any/control/ cannot be read" in done.err


DENIED = s3_refusal(403, "AccessDenied", "not authorized to perform: s3:PutObject")
NOT_ALLOWED = "AccessDenied: not authorized to perform: s3:PutObject"


@uses("workload noop")
def test_a_worker_that_may_not_claim_ends_and_leaves_word(
    here: Sbench, proxy: Proxy, events: ObjectIO, own: ObjectIO
) -> None:
    name = lay(events, invocation(proxy.url))
    proxy.rule = refuses_claims(DENIED)
    done = here(*at(proxy.url), "--idle", 0)
    assert done.code == 5
    assert f"events below any/control/ cannot be claimed: {NOT_ALLOWED}" in done.err
    assert names(events) == [name], "another worker may claim it"
    ((left,),) = own.list_pages("records/", timeout_s=PATIENCE_S)
    text = json.loads(own.get(f"records/{left}", timeout_s=PATIENCE_S))
    assert text == {"run_id": RUN, "refused": NOT_ALLOWED}


def test_the_driver_reports_why_its_events_are_refused(
    here: Sbench, store: LoopbackServer, proxy: Proxy
) -> None:
    """It waits for other workers, reports the refusal of this one, and launches no more."""
    proxy.rule = lambda method, path: DENIED if method == "PUT" and "/claims/" in path else None
    (worker,) = work(here.apart, proxy.url, 1)
    flags = ("--number", 1, "--size", "1KiB", "--start-timeout", 15)
    done = here("write", *job(store.endpoint_url, *flags))
    assert (done.code, done.json["lost"]) == (4, 1)
    assert f"note: a worker cannot claim its event: {NOT_ALLOWED}" in done.err
    assert f"no function can run: {NOT_ALLOWED}" in done.err
    run = load_run(here.directory / "w")
    assert (run.functions["error"][-1], run.functions["not_started"][-1]) == (NOT_ALLOWED, 1)
    assert len(run.waves) < 3, "a busy machine's worker may have come after the first"
    assert worker.wait(PATIENCE_S) == 5


def spoiled(event: InvocationSpec) -> bytes:
    del event
    return b"no JSON"


def of_files(event: InvocationSpec) -> bytes:
    array = ArraySpec(library="zarr", shape=(4,), chunks=(4,), path="/tmp/files")  # noqa: S108
    load = ArrayLoad(array=array)
    return json.dumps(asdict(replace(event, workload="array", load=load))).encode()


def of_eternity(event: InvocationSpec) -> bytes:
    return json.dumps({**asdict(event), "deadline": 1e308}).encode()


@uses("workload noop")
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (spoiled, "is not an event"),
        (of_files, "write files on this machine"),
        (of_eternity, "deadline"),
    ],
)
def test_an_invalid_event_is_one_line(
    here: Sbench,
    store: LoopbackServer,
    events: ObjectIO,
    make: Callable[[InvocationSpec], bytes],
    words: str,
) -> None:
    event = invocation(store.endpoint_url)
    events.put("a", make(event), timeout_s=PATIENCE_S)
    lay(events, event)
    done = here(*at(store.endpoint_url), "--idle", 0)
    assert done.code == 0
    assert words in done.err
    assert len(done.err.splitlines()) == 1
    assert "1 function run" in done.out, "the others are run"


@uses("workload noop")
def test_the_worker_claims_below_its_own_prefix(
    here: Sbench, store: LoopbackServer, events: ObjectIO, own: ObjectIO
) -> None:
    """A driver may know the store by another name."""
    event = invocation(store.endpoint_url)
    elsewhere = replace(control("http://127.0.0.1:1"), prefix="elsewhere/")
    lay(events, replace(event, control=elsewhere))
    assert "1 function run" in here(*at(store.endpoint_url), "--idle", 0).out
    (records,) = own.list_pages("records/", timeout_s=PATIENCE_S)
    assert len(records) == 1
    assert record_name(RecordKey(0, 0, "")).endswith(records[0].rpartition("/")[0] + "/")


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--control", "mine/"], 2, "'mine/' has no bucket"),
        (["--control", "s3://any/"], 2, "'s3://any/' is not a prefix"),
        (["--control", "s3://any/c/", "--endpoint-url", "http://127.0.0.1:1"], 5, "127.0.0.1:1"),
    ],
)
def test_bad_input_is_one_line(here: Sbench, flags: Sequence[str], code: int, words: str) -> None:
    done = here("worker", *flags)
    assert (done.code, done.out) == (code, "")
    assert words in done.err


def test_workers_write_no_files(here: Sbench) -> None:
    file = os.fspath(here.directory / "arrays")
    done = here(*("array", "write", "--path", file, "--number", 1, "--executor", "workers"))
    assert done.code == 2
    assert "functions of --executor workers write no files" in done.err
