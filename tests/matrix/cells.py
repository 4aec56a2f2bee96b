"""The test of each cell of the fault matrix, which ``table`` lists.

A cell runs the command, checks the two identities and that no byte counts twice,
resumes, cleans up, and returns its figures.
"""

import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.errors import INTERRUPTED
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.run import resume_job
from serverless_bench.features.lambda_host.limits import EnvironmentLimits
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.rundir.run import load_run
from tests.clouds.lambda_hosts import LambdaHost
from tests.commands.processes import PATIENCE_S, until
from tests.matrix.proxy import (
    HOLD,
    Refusal,
    expires,
    passes,
    proxy_of,
    refuses_claims,
    refuses_records,
    s3_refusal,
)
from tests.matrix.rig import DEADLINE_S, Result, Rig, Trial, client_of, idle

Cell = Callable[[Rig, str], Result]
"""From a rig and the name of the fault."""

EVERY = 4
"""Number of functions of which a workload of ``features.testing.faults`` hits one."""
SHARE = {"share": 0.3}
"""Share of the requests.

Each seed below hits one or two of the first four, and not their repetition.
"""
HOUR_S = 3600.0
KILLS = 10
SHELL_KIB = 8


# Faults of functions


def misbehaves(workload: str, rig: Rig, fault: str, prefix: str = "") -> Result:
    """Some functions misbehave; ``resume`` runs those that left no record."""
    trial = rig.trial(workload)
    first = trial.check(trial.write(workload=workload, prefix=prefix))
    faulty = rig.number // EVERY
    assert (first.ok, first.failed + first.lost) == (rig.number - faulty, faulty), first.errors
    took_s = trial.detect_s("failed", "lost")
    words = counts_text(first)
    if first.lost:
        words += resumed(trial)
    else:
        assert "nothing to resume" in trial.resume().err
    return trial.finish(fault, words, took_s)


def runs_out_of_memory(rig: Rig, fault: str) -> Result:
    """The same with functions of this machine in a control group of their own, if supported."""
    if rig.executor != "local":
        return misbehaves("fault-oom", rig, fault)
    limits = EnvironmentLimits(memory=True, cpu=False)
    box = limits.new_limits("matrix", 512, 1)
    try:
        into = "; ".join(f"echo $$ > {group}/cgroup.procs" for group in box["cgroups"])
        return misbehaves("fault-oom", rig, fault, into or "true")
    finally:
        limits.close()


def counts_text(summary: Summary) -> str:
    names = ("ok", "failed", "lost", "duplicate")
    counts = {name: getattr(summary, name) for name in names}
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count)


def resumed(trial: Trial) -> str:
    """Complete a run, and return how that went."""
    done = trial.resume()
    summary = trial.check(done)
    assert (done.code, summary.ok, summary.lost) == (0, trial.requested, 0), done.err
    assert "nothing to resume" in trial.resume().err
    return f"; resumed: {counts_text(summary)}"


# Faults of the queue


def refused(rig: Rig, fault: str) -> Result:
    """Three in ten requests are answered 429."""
    with rig.faulty_host() as host:
        before = host.status()["throttled"]
        host.set_faults({"throttle": SHARE, "seed": 65})
        return all_ok(rig, "throttle", fault, host, lambda: host.status()["throttled"] - before)


def walled(rig: Rig, fault: str) -> Result:
    """Two functions may be alive at once."""
    with rig.faulty_host() as host, client_of(host) as caller:
        names = [f["FunctionName"] for f in caller.list_functions()["Functions"]]
        for name in names:
            caller.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=2)
        try:
            return all_ok(rig, "wall", fault, host, lambda: 1)
        finally:
            for name in names:
                caller.delete_function_concurrency(FunctionName=name)


def cut(rig: Rig, fault: str) -> Result:
    """The connection breaks after the event was accepted, three times in ten."""
    with rig.faulty_host() as host:
        before = host.status()["cut"]
        host.set_faults({"cut": SHARE, "seed": 6})
        return all_ok(rig, "cut", fault, host, lambda: host.status()["cut"] - before)


def twice(rig: Rig, fault: str) -> Result:
    """Three in ten events are delivered twice."""
    with rig.faulty_host() as host:
        before = host.status()["duplicated"]
        host.set_faults({"duplicate": SHARE, "seed": 42})
        return all_ok(rig, "twice", fault, host, lambda: host.status()["duplicated"] - before)


def all_ok(
    rig: Rig, name: str, fault: str, host: LambdaHost, happened: Callable[[], int]
) -> Result:
    """Run under faults of the host that cost no function."""
    trial = rig.trial(name, host)
    done = trial.write()
    assert happened() > 0
    summary = trial.check(done)
    assert (done.code, summary.ok) == (0, rig.number), done.err + done.out
    host.set_faults({})
    idle(host)
    words = counts_text(summary)
    if waves := trial.waves():
        words += f" after {waves + 1} launches"
    return trial.finish(fault, words, trial.detect_s("superseded", "duplicate"))


def late(rig: Rig, fault: str) -> Result:
    """Events are held for an hour: given up, launched again, and then delivered after all."""
    with rig.faulty_host() as host:
        before = host.status()["late"]
        host.set_faults({"late": SHARE, "late_s": HOUR_S, "seed": 33})
        trial = rig.trial("late", host)
        done = trial.write()
        held = host.status()["late"] - before
        assert held > 0
        summary = trial.check(done)
        assert (done.code, summary.ok) == (0, rig.number), done.err + done.out
        there = trial.objects()
        host.set_faults({})
        assert host.release() == held
        idle(host)
        assert trial.objects() == there, "a late delivery touches nothing"
        launches = trial.waves() + 1
        words = f"{counts_text(summary)} after {launches} launches; {held} late ones did nothing"
        return trial.finish(fault, words, trial.detect_s("superseded"))


def dropped(rig: Rig, fault: str) -> Result:
    """Events are accepted and never delivered."""
    with rig.faulty_host() as host:
        before = host.status()["dropped"]
        host.set_faults({"drop": SHARE, "seed": 13})
        return all_ok(rig, "drop", fault, host, lambda: host.status()["dropped"] - before)


# Faults of the store


def record_refused(rig: Rig, fault: str, *, times: int | None) -> Result:
    """The store answers 503 to the records of two functions."""
    with proxy_of(rig.store.endpoint_url) as proxy:
        trial = rig.trial("record-for-ever" if times is None else "record-a-while")
        trial.endpoint_url = proxy.url
        proxy.rule = refuses_records(s3_refusal(503, "SlowDown"), 1, 5, times=times)
        first = trial.check(trial.write())
        faulty = rig.number // EVERY
        assert proxy.refused >= faulty
        words = counts_text(first)
        if times is not None:
            assert first.ok == rig.number
            return trial.finish(fault, words, None)
        assert (first.ok, first.lost) == (rig.number - faulty, faulty)
        took_s = trial.detect_s("lost")
        words += resumed(trial)
        return trial.finish(fault, words, took_s)


NOT_ALLOWED = (
    "User: arn:aws:sts::123456789012:assumed-role/worker is not authorized to perform: s3:PutObject"
)


def may_not_claim(rig: Rig, fault: str) -> Result:
    """The store answers 403 to the claims of functions, until somebody allows them and resumes."""
    with proxy_of(rig.store.endpoint_url) as proxy:
        trial = rig.trial("may-not-claim")
        trial.endpoint_url = proxy.url
        proxy.rule = refuses_claims(s3_refusal(403, "AccessDenied", NOT_ALLOWED))
        done = trial.write()
        first = trial.check(done)
        assert (done.code, first.lost, trial.waves()) == (4, rig.number, 0), done.err
        (cause,) = first.errors
        assert NOT_ALLOWED in cause
        assert f"no function can run: {cause}" in done.err
        took_s = trial.detect_s("lost")
        proxy.rule = passes
        return trial.finish(fault, f"exit code 4, {counts_text(first)}" + resumed(trial), took_s)


EXPIRED = s3_refusal(400, "ExpiredToken")
NOT_INVOKED = Refusal(
    403,
    b'{"message": "The security token included in the request is expired"}',
    {"x-amzn-ErrorType": "ExpiredTokenException", "Content-Type": "application/json"},
)


def of_the_driver(method: str, path: str) -> bool:
    """Whether only the driver makes such a request."""
    return method == "GET" and ("list-type=2" in path or "/records/" in path)


def expired_a_while(rig: Rig, fault: str) -> Result:
    """The driver's credentials are refused for two seconds, by both services."""
    with lambda_proxy(rig) as invoking, proxy_of(rig.store.endpoint_url) as proxy:
        trial = rig.trial("expired-a-while")
        trial.endpoint_url = proxy.url
        if invoking is not None:
            environment = {**trial.sbench.environment, "AWS_ENDPOINT_URL_LAMBDA": invoking[0]}
            trial = Trial(rig, trial.name, type(trial.sbench)(trial.sbench.directory, environment))
            trial.endpoint_url = proxy.url
        trial.workers_url = rig.store.endpoint_url
        proxy.rule = expires(EXPIRED, of_the_driver, after=1, s=2.0)
        done = trial.write()
        assert proxy.refused > 0
        summary = trial.check(done)
        assert (done.code, summary.ok) == (0, rig.number), done.err + done.out
        assert "note: the control prefix could not be read for a while" in done.err
        if invoking is not None:
            assert "credentials were refused" in done.err
        return trial.finish(fault, counts_text(summary), None)


@contextmanager
def lambda_proxy(rig: Rig) -> Iterator[tuple[str] | None]:
    """Refuse invocations for a second, where it is our own code that makes them."""
    if rig.executor != "lambda" or rig.plain is None:
        yield None
        return
    with proxy_of(rig.plain.url) as proxy:
        proxy.rule = expires(NOT_INVOKED, lambda _, path: "/invocations" in path, after=2, s=1.0)
        # With the host's token.
        yield (f"{proxy.url}{urlsplit(rig.plain.url).path}",)


def expired_for_ever(rig: Rig, fault: str) -> Result:
    """The driver's credentials are refused until somebody brings others, and resumes."""
    with proxy_of(rig.store.endpoint_url) as proxy:
        trial = rig.trial("expired-for-ever")
        trial.endpoint_url = proxy.url
        trial.workers_url = rig.store.endpoint_url
        proxy.rule = expires(EXPIRED, of_the_driver, after=2, s=HOUR_S)
        began_ns = monotonic_ns()
        done = trial.write(timeout_s=4)
        took_s = (monotonic_ns() - began_ns) / NS_PER_S
        assert done.code == 4, done.err
        assert "the control prefix cannot be read" in done.err
        assert "sbench resume" in done.err
        proxy.rule = lambda _, __: None
        words = counts_text(trial.check()) if trial.path.exists() else "nothing saved"
        return trial.finish(fault, f"exit code 4, {words}" + resumed(trial), took_s)


def workers_expired(rig: Rig, fault: str) -> Result:
    """The credentials of local functions are refused from some object on."""
    with proxy_of(rig.store.endpoint_url) as proxy:
        trial = rig.trial("expired-workers")
        trial.endpoint_url = proxy.url
        puts = partial(_is_put, below=trial.prefixes[0])
        proxy.rule = expires(EXPIRED, puts, after=10, s=HOUR_S)
        done = trial.write()
        summary = trial.check(done)
        assert done.code == 6
        assert set(summary.errors) == {"access_denied"}
        assert summary.failed > 0
        proxy.rule = lambda _, __: None
        return trial.finish(fault, counts_text(summary), trial.detect_s("failed"))


def _is_put(method: str, path: str, *, below: str) -> bool:
    return method == "PUT" and below in path


# Faults of the driver


def killed(rig: Rig, fault: str, *, kills: int = KILLS, seed: int = 1) -> Result:
    """The driver is killed with -9 at random moments and resumed."""
    draw = random.Random(seed)
    delays_s = [draw.uniform(0, 1.5) for _ in range(kills)]
    moments = {
        f"kill-{seed}-{number}": partial(_after, delay_s) for number, delay_s in enumerate(delays_s)
    }
    return _all_killed(rig, fault, moments)


Driver = subprocess.Popen[bytes]
Moment = Callable[[Trial], bool]
PHASES: Final[Mapping[str, Moment]] = {
    "launching": lambda _: True,
    "running": lambda trial: any("/claims/0" in key for key in trial.objects()),
    "delivered": lambda trial: any("/records/" in key for key in trial.objects()),
    "collecting": lambda trial: trial.received() > 0,
}
"""Phases of a driver, and what shows that it is in one."""


def killed_in_each_phase(rig: Rig, phases: Sequence[str]) -> Result:
    """Kill and resume the driver once in each phase: fewer kills than at random, all different."""
    waits = {name: partial(_until_or_end, PHASES[name]) for name in phases}
    return _all_killed(rig, f"driver killed with -9, {' and '.join(phases)}", waits)


def _after(delay_s: float, _: Trial, __: Driver) -> None:
    threading.Event().wait(delay_s)


def _until_or_end(moment: Moment, trial: Trial, driver: Driver) -> None:
    until(lambda: moment(trial) or driver.poll() is not None)
    assert driver.poll() is None, "the driver was through before it could be killed"


def _all_killed(
    rig: Rig, fault: str, moments: Mapping[str, Callable[[Trial, Driver], None]]
) -> Result:
    with ThreadPoolExecutor(rig.concurrency) as threads:
        attempts = [
            threads.submit(_killed_once, rig, name, moment) for name, moment in moments.items()
        ]
        results = [done.result() for done in attempts]
    return Result(
        fault=fault,
        executor=rig.executor,
        outcome=f"{len(results)} of {len(results)} runs complete after resume",
        recovered=sum(result.recovered for result in results),
        requested=sum(result.requested for result in results),
        detect_s=max(result.detect_s or 0 for result in results),
        orphans=sum(result.orphans for result in results),
    )


def _killed_once(rig: Rig, name: str, moment: Callable[[Trial, Driver], None]) -> Result:
    with proxy_of(rig.store.endpoint_url) as proxy:
        trial = rig.trial(name)
        trial.endpoint_url = proxy.url
        # Starting each of Lithops' environments takes a second of CPU time.
        trial.requested = rig.number if rig.executor == "lithops" else 2 * rig.number
        # The last record comes after the kill: no driver is through before it.
        proxy.rule = refuses_records(HOLD, trial.requested - 1)
        flags = ("--number", trial.requested, "--concurrency", trial.requested // 2)
        with trial.started(*flags, "--deadline", 300) as driver:
            until(lambda: (trial.path / "run.json").exists() or driver.poll() is not None)
            assert (trial.path / "run.json").exists(), trial.errors.read_text()
            # The end of the block kills it.
            moment(trial, driver)
        proxy.rule = passes
        trial.check()
        began_ns = monotonic_ns()
        resume_job(trial.path)
        took_s = (monotonic_ns() - began_ns) / NS_PER_S
        summary = trial.check()
        assert summary.ok == trial.requested, summary.errors
        return trial.finish("", counts_text(summary), took_s)


def interrupted(rig: Rig, fault: str) -> Result:
    """Ctrl-C while functions write, and ``sbench clean`` immediately: it waits for them."""
    trial = rig.trial("interrupted")
    # None is through before all have begun; and all write little.
    with trial.started("--duration", DEADLINE_S - 2, "--rate", rig.number) as driver:
        until(lambda: sum("/claims/0" in key for key in trial.objects()) == rig.number)
        # The same effect as Ctrl-C, which background jobs of a shell ignore.
        driver.send_signal(signal.SIGTERM)
        assert driver.wait(PATIENCE_S) == INTERRUPTED
    before = summarize(load_run(trial.path))
    left = trial.clean()
    # Any process that still ran would have written again by now.
    threading.Event().wait(3)
    after = summarize(load_run(trial.path))
    return Result(
        fault=fault,
        executor=rig.executor,
        outcome=f"{counts_text(before)}; cleaned up: {counts_text(after)}",
        recovered=after.ok + after.failed,
        requested=after.requested,
        detect_s=None,
        orphans=left + len(trial.left()),
    )


def disk_full(rig: Rig, fault: str) -> Result:
    """No file of the driver can grow beyond 8 KiB."""
    trial = rig.trial("disk-full")
    # Python would keep compiled modules that it could not write whole (gh-126606).
    done = trial.write(prefix=f"export PYTHONDONTWRITEBYTECODE=1; ulimit -f {SHELL_KIB}")
    assert done.code == 8, done.err
    assert "the disk is full" in done.err
    report = done.json
    assert report["ok"] == report["requested"] == rig.number
    first = trial.check()
    assert first.lost > 0, "the disk did not take all"
    words = f"report: {rig.number} ok, saved: {first.ok}" + resumed(trial)
    return trial.finish(fault, words, None)


OWN_HOST: Final = (refused, walled, cut, twice, late, dropped)
"""Cells that need a host with faults of their own."""
