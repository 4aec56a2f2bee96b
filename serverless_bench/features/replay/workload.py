"""Replay the requests of a log with their original timing, on objects of the run's own.

Every object is below the run's own folder. Those that exist before the log writes them are
prepared, with the sizes that the log shows; a copy has a source of its own, also prepared.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Any, Final

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import parse_duration
from serverless_bench.features.replay.load import ReplayLoad
from serverless_bench.features.replay.schedule import ReplaySchedule, Row, deal, unpack
from serverless_bench.job.abilities import Completing, Dealt, ReadsFiles, Tallied, Tally, Untimed
from serverless_bench.job.operations import OperationKind, OperationSpec
from serverless_bench.job.workload import Load, Stream, Trait, Workload, check_has

if TYPE_CHECKING:
    from serverless_bench.job.spec import InvocationSpec, JobSpec

MAX_PART: Final = 960_000
"""Longest part of a schedule: an asynchronous event has 1 MB at most (AWS Lambda developer guide,
"Lambda quotas")."""
_LEAST_SECRET: Final = 16
_MAX_SECRET: Final = 1 << 16
_SOURCE: Final = 1 << 127
"""Bit of a name in which the source of a copy differs from it."""
_GENERATIONS: Final = 1 << 16


class Replay(Workload, Tallied, Dealt, ReadsFiles, Completing, Untimed):
    """The operations of ``load.log``; an object belongs to one function."""

    settings = ("threads", "prefix")
    traits = Trait.CREATES_OBJECTS | Trait.RECEIVES_RESULTS
    load_type = ReplayLoad
    default_number = 4

    def with_files(
        self,
        flags: Mapping[str, Any],
        opened: Callable[[object], AbstractContextManager[IO[str]]],
    ) -> tuple[Mapping[str, Any], Sequence[str]]:
        """Return the flags with the schedule of the log in place of the path."""
        from serverless_bench.features.replay.log import read_log

        secret, gap = None, flags.get("max_gap")
        if (path := flags.get("secret_file")) is not None:
            with opened(path) as file:
                secret = file.read(_MAX_SECRET).strip().encode(errors="surrogateescape")
            if len(secret) < _LEAST_SECRET:
                raise UsageError(
                    f"the secret has {len(secret)} bytes, at least {_LEAST_SECRET} are needed",
                    hint="openssl rand -hex 32 > FILE makes one",
                )
        # A job file has text.
        gap = None if gap is None else parse_duration(f"{gap}")
        with opened(flags["log"]) as lines:
            schedule, notes = read_log(
                lines, secret=secret, max_gap=gap, keep=not flags.get("plans")
            )
        return {**flags, "log": schedule.pack()}, notes

    def kinds(self, load: Load) -> Mapping[OperationKind, float]:
        """Return the kinds of the log's operations, and of their preparation."""
        schedule = _schedule(load)
        made = {OperationKind.PUT: 0.0} if schedule.made[0] else {}
        return made | {kind: float(count) for kind, count, _ in schedule.totals}

    def tally(self, load: Load) -> Tally:
        """Return the totals of the schedule."""
        schedule = _schedule(load)
        return Tally(
            schedule.made, schedule.totals, schedule.lasts_us / 1e6 / ReplayLoad.narrow(load).speed
        )

    def dealt(self, load: Load, index: int, number: int) -> Load:
        """Return the load of a function, with a part of the schedule."""
        load = ReplayLoad.narrow(load)
        return replace(load, log=deal(load.log or "", number)[index])

    def completed(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields with a start that several functions share: instants count from it."""
        if values["number"] == 1:
            return values
        options = values["options"]
        return values | {"options": options | {"barrier": options.get("barrier") or 1.0}}

    def check(self, job: "JobSpec") -> None:
        """Check that the schedule alone decides what happens, and that each part fits."""
        check_has(job, "log")
        self.check_untimed(job, "replay: the log decides")
        if job.number > job.concurrency:
            raise UsageError(
                f"the {job.number:,} functions of a replay run at the same time,"
                f" got `concurrency` {job.concurrency:,}",
                hint=f"`number` {job.concurrency}, or a higher `concurrency`",
                field="concurrency",
            )
        lasts_s = self.tally(job.load).seconds
        if _schedule(job.load).rows and lasts_s > job.deadline:
            raise UsageError(
                f"the replay lasts {lasts_s:,.0f} s, functions stop after {job.deadline:,.0f} s",
                hint="raise `deadline` or `speed`, cut gaps, or replay a part of the log",
                field="deadline",
            )
        longest = max(map(len, deal(ReplayLoad.narrow(job.load).log or "", job.number)))
        if longest > MAX_PART:
            raise UsageError(
                f"a function would get {longest:,} bytes of the schedule, and {MAX_PART:,} fit"
                " into an event",
                hint="raise `number`, or replay a part of the log",
                field="number",
            )

    def keys(self, invocation: "InvocationSpec") -> Iterator[str]:
        """Yield the keys of all operations but listings."""
        threads, streams = range(invocation.load.threads), (self.prepare, self.operations)
        specs = (spec for t in threads for stream in streams for spec in stream(invocation, t))
        yield from dict.fromkeys(s.key for s in specs if s.kind is not OperationKind.LIST)

    def prepare(self, invocation: "InvocationSpec", thread: int) -> Stream:
        """Yield the puts of a thread's share of the objects that have to exist."""
        schedule, threads = _schedule(invocation.load), invocation.load.threads
        objects = [(number, 0) for number in schedule.prepared]
        objects += [(number, _SOURCE) for number in schedule.copied()]
        for number, bit in objects[thread::threads]:
            key = _key(invocation, schedule, number, bit)
            yield OperationSpec(kind=OperationKind.PUT, key=key, size=schedule.sizes[number])

    def operations(self, invocation: "InvocationSpec", thread: int = 0) -> Stream:
        """Yield the operations of a thread at their instants, with the expected bytes."""
        schedule = _schedule(invocation.load)
        writes, copies = Counter(schedule.prepared), set[int]()
        unknown = set[int]()
        for row in schedule.of_thread(thread, invocation.load.threads):
            spec, number = _operation(invocation, schedule, row), row.object
            writes[number] += row.kind is OperationKind.PUT
            if row.kind is OperationKind.COPY:
                copies.add(number)
            elif row.kind is OperationKind.PUT:
                copies.discard(number)
            elif number in unknown:
                spec.size = None
            if number in copies:
                spec.content = _key(invocation, schedule, number, _SOURCE)
            else:
                spec.generation = max(0, writes[number] - 1) % _GENERATIONS
            ok = yield spec
            if row.kind.creates:
                # After a failed write, the store may hold these bytes or not.
                (unknown.add if ok is False else unknown.discard)(number)


def _schedule(load: Load) -> ReplaySchedule:
    return unpack(ReplayLoad.narrow(load).log or "")


def _operation(invocation: "InvocationSpec", schedule: ReplaySchedule, row: Row) -> OperationSpec:
    """Return the operation of a row, without the content."""
    number, is_missing = row.object, row.length < 0
    spec = OperationSpec(
        kind=row.kind,
        key=_key(invocation, schedule, number, is_missing=is_missing),
        size=None if number < 0 or is_missing else schedule.sizes[number],
        due_ns=round(row.due_us * 1000 / ReplayLoad.narrow(invocation.load).speed),
        is_missing=is_missing,
    )
    if row.length > 0:
        spec.offset, spec.length = row.offset, row.length
    if row.kind is OperationKind.COPY:
        spec.keys = (_key(invocation, schedule, number, _SOURCE),)
    return spec


def _key(
    invocation: "InvocationSpec",
    schedule: ReplaySchedule,
    number: int,
    bit: int = 0,
    *,
    is_missing: bool = False,
) -> str:
    """Return the key of an object, without a size if it does not exist; of -1, the folder."""
    folder = f"{invocation.target.prefix}{invocation.run_id}/replay/{invocation.launch}/"
    if number < 0:
        return folder
    end = "" if is_missing else f".{schedule.sizes[number]}"
    return f"{folder}{schedule.names[number] ^ bit:032x}{end}"


WORKLOAD = Replay()
