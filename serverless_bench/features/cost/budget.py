"""Limit the cost of a job: reject a job that exceeds the limit, and stop a job that reaches it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Final, cast

from serverless_bench.base.clock import monotonic_ns, repeated
from serverless_bench.base.errors import CostError, ExecutorError, UsageError
from serverless_bench.base.units import NS_PER_S
from serverless_bench.driver.task import CostLimit
from serverless_bench.executors.base import OnOutcome, RunProgress
from serverless_bench.features.aws.account import read_function
from serverless_bench.features.aws.options import FunctionOptions, region_of_functions
from serverless_bench.features.cost.bill import outcome_usage
from serverless_bench.features.cost.expected import at_most, expected, probe_at_most, until_now
from serverless_bench.features.cost.limits import VCPU_MIB, CostConditions
from serverless_bench.features.cost.places import regions
from serverless_bench.features.cost.prices import needed_prices, price, price_note
from serverless_bench.features.live.board import BoardTotals
from serverless_bench.features.remote.options import RemoteOptions, progress_age_s
from serverless_bench.features.remote.stop import longest_stop_s
from serverless_bench.job.planned_objects import mean_declared
from serverless_bench.job.spec import JobSpec
from serverless_bench.rundir.record import Lost, Outcome
from serverless_bench.rundir.schema import Stopped
from serverless_bench.worker.board import RUN_OVER

_LEAST_DEADLINE_S: Final = 5.0
_ROOM: Final = 2.0
"""Ratio of the recommended deadline to the expected duration of a function."""
_LOOK_S: Final = 0.5
"""Interval between estimates of the cost so far."""


class Budget:
    """Enforces the cost limit of a job before the start and during the run.

    Finished functions are counted with their actual bill. If the functions show progress,
    those that run are counted with an estimate of their cost so far, and with a reserve for the
    time until a stop takes effect: the run is stopped when both together reach the limit. Other
    functions can run until their deadline. The number of concurrent functions is limited so that
    the limit holds even then.

    Parameters
    ----------
    job
        Complete job to run.
    flags
        Cost limit, which must be set.
    keys
        Objects to read.

    Raises
    ------
    CostError
        If the job is expected to exceed the limit, or could exceed it with all the functions
        that run concurrently.
    UsageError
        If the size of the objects to read is unknown, or there are no prices for their location.
    """

    def __init__(self, job: JobSpec, flags: CostLimit, keys: Sequence[str] = ()) -> None:
        if flags.limit is None:
            raise ValueError("there is no limit")
        self._job = job
        self._limit = flags.limit - flags.spent
        self._earlier = flags.spent
        self._prices = needed_prices(job, flags.prices)
        region = next(iter(regions(job)), self._prices.region)
        if flags.prices is None and region != self._prices.region:
            raise UsageError(
                f"`max_cost` needs prices of {region}; they have not been fetched from AWS",
                hint=f"sbench aws prices --region {region} does, or `prices` {self._prices.region}",
            )
        self._setting = _setting_of(job, keys)
        foreseen = expected(job, self._setting)
        self._probe = price(probe_at_most(job, self._setting), self._prices).total
        """Highest possible cost of probing the functions before the launch."""
        self._steers = job.control is not None and RemoteOptions.from_work(job).progress_objects
        self._most = self._most_of(job)
        self._reserve = self._most
        """Highest possible cost of a running function from now until it has finished."""
        if self._steers:
            # The estimate of the requests is that old.
            end_s = progress_age_s(job.number) + longest_stop_s(job)
            self._reserve = min(self._most, self._most_of(replace(job, deadline=end_s)))
        most = self._most * job.number
        self.estimate = price(foreseen.usage, self._prices).total if foreseen else most
        """Expected cost of the job without storage. For a function of the user, whose requests are
        unknown, the highest possible cost.
        """
        self.spent = 0.0
        """Bill of the functions that have ended."""
        self._ended_requests = 0.0
        """Of it, requests and bytes."""
        self._arrived = 0
        self._done: set[int] = set()
        self._running_s = 0.0
        """Sum of the times since the launches of the running functions."""
        self._begin_ns = self._looked_ns = monotonic_ns()
        self._lock = Lock()
        self.problem: CostError | None = None
        """Cause of a stop."""
        self._check(None if foreseen is None else foreseen.function_s)

    @property
    def at_most(self) -> float:
        """Highest possible cost of the job, including the probe of the functions."""
        return self._probe + self._most * self._job.number

    @property
    def foreseen(self) -> float:
        """Expected cost of the job, including the probe of the functions."""
        return self._probe + self.estimate

    @property
    def billed(self) -> float:
        """Bill of the functions that have ended, plus the highest possible cost of the probe."""
        return self._probe + self.spent

    @contextmanager
    def watching(self, live: RunProgress) -> Iterator[OnOutcome]:
        """Yield a callback for outcomes, as ``watch`` does, and enforce the limit meanwhile."""
        on_outcome = self.watch(live, lambda _: None)
        looks = repeated(partial(self._enforce, live), _LOOK_S, name="cost so far")
        with looks if self._steers else nullcontext():
            yield on_outcome

    def watch(self, live: RunProgress, then: OnOutcome) -> OnOutcome:
        """Return a callback for outcomes that calls ``then``.

        It sets ``live.limit`` to the number of functions that may run concurrently. When that
        number is zero, or when the bill of the functions that have ended, plus an estimate for the
        running functions, exceeds the limit, it stops the run; if the functions cannot be stopped,
        it raises ``CostError``.
        """

        def on_outcome(outcome: Outcome) -> None:
            then(outcome)
            self._count(outcome)
            self._enforce(live)
            if self.problem is not None and not self._steers:
                raise self.problem

        self._begin_ns = self._looked_ns = monotonic_ns()
        live.limit = max(0, int((self._limit - self._probe) / self._each))
        return on_outcome

    def _count(self, outcome: Outcome) -> None:
        """Count a finished function with its bill."""
        result = outcome.result
        memory, architecture = self._setting.memory_mib, self._setting.architecture
        usage = outcome_usage(outcome, self._job, memory_mib=memory, architecture=architecture)
        with self._lock:
            self._arrived += 1
            if not (isinstance(result, Lost) and result.not_started):
                self._done.add(result.index)
            if isinstance(result, Lost) or not result.duplicate:
                self._running_s -= (outcome.collected_ns - outcome.submitted_ns) / NS_PER_S
            self.spent += price(usage, self._prices).total
            requests = replace(usage, gb_s=0.0, invocations=0, log_bytes=0)
            self._ended_requests += price(requests, self._prices).total

    def _enforce(self, live: RunProgress) -> None:
        """Limit the number of running functions, and stop the run if it reaches the limit."""
        with self._lock:
            flying = max(live.in_flight, live.started - self._arrived)
            now_ns = monotonic_ns()
            self._running_s += flying * (now_ns - self._looked_ns) / NS_PER_S
            self._looked_ns = now_ns
            left = self._limit - self._probe - self.spent
            live.limit = max(0, int(left / self._each))
            over = -left
            over += self._running_at_most(live, flying) if self._steers else flying * self._mean
            waiting = len(self._done) + flying < self._job.number
            if over > 0:
                committed = self._prices.money(self._limit + over)
                about = "up to" if self._steers else "about"
                self._stop(live, f"with the {flying} under way {about} {committed}")
            elif waiting and not flying and not live.limit:
                self._stop(live, f"and one more could come to {self._prices.money(self._each)}")

    @property
    def _mean(self) -> float:
        """Expected cost of a function."""
        foreseen = self.estimate / self._job.number
        return max(foreseen, self.spent / self._arrived) if self._arrived else foreseen

    @property
    def _each(self) -> float:
        """Cost that must be left for each running function, so that it can end by itself."""
        return min(self._most, self._mean + self._reserve) if self._steers else self._most

    def _running_at_most(self, live: RunProgress, flying: int) -> float:
        """Return the cost of the functions that run if they are stopped now."""
        if not flying:
            return 0.0
        function_s = max(0.0, self._running_s) / flying
        totals = cast("BoardTotals | None", live.totals())
        if totals is None:
            cost = flying * self._most_of(replace(self._job, deadline=max(_LOOK_S, function_s)))
        else:
            usage = partial(until_now, self._job, self._setting, flying, function_s)
            sent = totals.bytes["put"]
            moved = (sent, totals.moved - sent)
            whole = usage(requests=(totals.puts, totals.gets), moved=moved)
            # The totals include finished functions.
            of_running = price(whole, self._prices).total - self._ended_requests
            cost = max(of_running, price(usage(), self._prices).total)
        return min(flying * self._most, cost + flying * self._reserve)

    def _stop(self, live: RunProgress, why: str) -> None:
        if self.problem is not None:
            return
        self.problem = CostError(
            f"stopped: {self._arrived} functions cost {self._prices.money(self.spent)}, {why},"
            f" more than {self.limit_text}",
            hint="the report has the results so far"
            + "; running functions are billed, too" * (not self._steers),
        )
        if self._steers:
            after_s = (monotonic_ns() - self._begin_ns) / NS_PER_S
            live.stopped = Stopped(by="cost limit", after_s=after_s)
            live.stop(RUN_OVER)

    def _check(self, function_s: float | None) -> None:
        limit = f"{self.limit_text}; nothing was started"
        if function_s is not None and self.foreseen > self._limit:
            about = self._prices.money(self.foreseen)
            raise CostError(
                f"this job would cost about {about}, more than {limit}",
                hint="sbench plan shows the cost of each part",
            )
        job = self._job
        out = job.max_concurrency
        worst = self._probe + out * self._each
        if worst > self._limit:
            foreseen = f"is expected to cost {self._prices.money(self.estimate)}, but "
            about = "" if function_s is None else foreseen
            if self._each < self._most:
                when = f"until a stop had ended its {out} concurrent functions"
            else:
                when = f"if the {out} concurrent functions ran to the {job.deadline:g} s `deadline`"
            raise CostError(
                f"this job {about}could cost {self._prices.money(worst)} {when}, more than {limit}",
                hint=self._advice(out, function_s),
            )

    def _advice(self, out: int, function_s: float | None) -> str:
        """Return advice: a deadline that keeps the limit and suffices for the functions, if any."""
        enough_s = max(_LEAST_DEADLINE_S, _ROOM * (function_s or 0.0))
        short, shorter = (self._most_of(replace(self._job, deadline=s)) for s in (2.0, 1.0))
        per_s = short - shorter
        limit_each = (self._limit - self._probe) / out
        most_s = (limit_each - shorter) / per_s + 1.0 if per_s > 0 else 0.0
        if most_s < enough_s or most_s > self._job.deadline:
            return "allow more, or run fewer concurrently: `number`, `concurrency`"
        step = 10 ** (len(str(int(most_s))) - 1) // 2 or 1
        return (
            f"`deadline` {int(most_s) // step * step} bounds it: a function that is not through"
            " by then stops by itself"
        )

    def _most_of(self, job: JobSpec) -> float:
        return price(at_most(job, self._setting), self._prices).total

    def money(self, amount: float) -> str:
        """Return an amount in the currency of the prices."""
        return self._prices.money(amount)

    @property
    def limit_text(self) -> str:
        """The limit as text."""
        earlier = (
            f", of which {self._prices.money(self._earlier)} is spent" if self._earlier else ""
        )
        limit = self._prices.money(self._limit + self._earlier)
        return f"`max_cost` {limit}{earlier}{price_note(self._prices, self._job)}"


def _setting_of(job: JobSpec, keys: Sequence[str]) -> CostConditions:
    """Return what is known about the functions and the objects that they read.

    Memory and architecture are the user's settings, or those of the function, or the more expensive
    alternative.

    Raises
    ------
    UsageError
        If the size of the objects to read is unknown.
    """
    options, timeout_s = FunctionOptions.from_work(job), None
    memory, architecture = options.memory, options.arch
    if options.function and (memory is None or architecture is None):
        with suppress(ExecutorError):
            setup = read_function(options.function[0], region=region_of_functions(job))
            memory, architecture = memory or setup.memory_mib, architecture or setup.architecture
            timeout_s = float(setup.timeout_s)
    size = None
    if job.reads_given:
        size = mean_declared(keys)
        if size is None:
            raise UsageError(
                "the cost of reading these objects is unknown, because their keys do not"
                " contain their size",
                hint="leave `max_cost` out; sbench plan write, with their size, is a guide",
            )
    return CostConditions(
        memory_mib=memory or VCPU_MIB,
        architecture=architecture or "x86_64",
        object_bytes=size,
        timeout_s=timeout_s,
    )
