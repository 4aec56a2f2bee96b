"""What happened: the values that come back from workers.

Two clocks appear here. Instants in ``InvocationRecord`` and below are the worker's;
``submitted_ns`` and ``collected_ns`` in ``Outcome`` are the driver's. Nothing is
corrected: correction is a reduction.

As JSON a list of rows is one table of columns (``{"start_ns": [1, 2], ...}``), which is
a third of the size and loads into arrays without an object per row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Final, TypeAlias

from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.access import Access
from serverless_bench.rundir.rows import column, to_columns


class FoundBytes(StrEnum):
    """What was there instead of the right bytes."""

    ZEROS = "zeros"
    OTHER_OFFSET = "other_offset"
    """Bytes of the same object that belong somewhere else in it."""
    OTHER_GENERATION = "other_generation"
    """Bytes that this object had before, or will have."""
    OTHER_OBJECT = "other_object"
    UNKNOWN = "unknown"
    """Bytes that sbench did not write, or too few of them to tell."""
    MISSING = "missing"
    """Nothing came: the object ends before its size, as a rule."""
    EXTRA = "extra"
    """The object goes on after its size."""


class Shown(StrEnum):
    """What a client may let us see of a request; figures that need more are null."""

    CONNECTION = "connection"
    """Where the request went, and whether it had to open a connection."""
    ACKNOWLEDGED = "acknowledged"
    """How much of a put the store's kernel has; and the last byte's instant, where it is known."""
    FIRST_BYTE = "first_byte"
    """The instant at which the first byte of a body was here."""
    CONTENT_RANGE = "content_range"
    """The header of the answer to a range, which says how large the object is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRange:
    """One range of an object that is not what was written."""

    operation: int
    """``OperationRecord.index``."""
    key: str
    """Of the object."""
    offset: int
    length: int
    bad_bytes: int
    """Bytes of the range that differ; some may agree by chance."""
    found: FoundBytes
    found_key_hash: str | None = None
    """Whose bytes were there: ``keystream.hash_key`` in hexadecimal; None if unknown."""
    found_generation: int | None = None
    found_offset: int | None = None
    """Where in that object the first of them belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One HTTP attempt."""

    operation: int
    """``OperationRecord.index``."""
    request: str
    """put, get, head, list, delete, delete_many or copy; of an upload in parts create_multipart,
    upload_part, complete_multipart or abort_multipart; of an array create_array, write_array,
    append_array or read_array."""
    part: int
    """Part or range number, from 1; 0 when the request is for the whole object."""
    number: int
    """0 for the first attempt of this request, then 1, 2, ..."""
    start_ns: int
    end_ns: int
    wait_ns: int
    """Pause before this attempt, because of the one before it."""
    status: int | None
    """HTTP status; None when there was no answer."""
    error: str | None
    """``OperationError.code``; None when the attempt succeeded."""
    detail: str | None
    """The store's message for the error."""
    request_id: str | None
    host_id: str | None
    remote: str | None
    """Address and port that the connection went to; None if there was none, or it was not shown."""
    reused: bool
    """Whether the connection had carried an earlier request; False if that is not shown."""
    bytes: int
    """Bytes of the body that this attempt moved; of an upload that failed those that the store's
    kernel acknowledged, if the client shows that."""
    answered_ns: int | None = None
    """When the head of the answer was here; None when there was none."""
    date_s: int | None = None
    """The answer's ``Date``, in whole seconds since the epoch by the store's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A stretch of an operation in which bytes moved at an even rate."""

    operation: int
    """``OperationRecord.index``."""
    step_ns: int
    """Length; an operation's steps follow one another from its start."""
    step_bytes: int
    """Bytes moved; an operation's steps add up to its ``bytes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """One measured operation on one object, successful or not."""

    index: int
    kind: OperationKind
    key: str
    size: int | None
    """Bytes that the object should have; None for an object that sbench did not write."""
    start_ns: int
    end_ns: int
    first_byte_ns: int | None
    """When the first byte of the object arrived; None for writes, and if the client does not show
    it (``Shown``)."""
    last_byte_sent_ns: int | None
    """When the store's kernel had the last byte of the object, or, of one that goes out at once,
    when it went out; None for reads, and if it is not known."""
    bytes: int
    """Bytes moved by the attempts that succeeded."""
    verified_bytes: int
    """Bytes that were compared with the keystream and agreed."""
    bad_bytes: int
    """Bytes that were compared and differed, or were missing, or too many."""
    bad_ranges: int
    """How many ranges those bytes make; at most ``verify.MAX_BAD_RANGES`` are listed."""
    payload_ns: int
    """Time inside the operation that went into making or comparing bytes."""
    error: str | None
    """``OperationError.code``; None when the operation succeeded."""
    warmup: bool = False
    """Whether it ran before the measurement proper; a report leaves such operations out."""
    offset: int = 0
    """Where a range began."""
    generation: int = 0
    """Which bytes were written, or expected: how often the object had been overwritten."""
    count: int = 1
    """Keys that it concerned: more or fewer than one for a listing or a deletion of many."""
    intended_ns: int | None = None
    """When it should have begun, in an open loop; None in a closed one."""


OperationRow: TypeAlias = tuple[
    OperationKind,
    str,
    int | None,
    int,
    int,
    int | None,
    int | None,
    int,
    int,
    int,
    int,
    int,
    str | None,
    bool,
    int,
    int,
    int,
    int | None,
]
"""The fields of an ``OperationRecord`` after its number."""
START_NS: Final = 3
END_NS: Final = 4
ERROR: Final = 12
"""Places of fields in such a row."""
AttemptRow: TypeAlias = tuple[
    str,
    int,
    int,
    int,
    int,
    int,
    int | None,
    str | None,
    str | None,
    str | None,
    str | None,
    str | None,
    bool,
    int,
    int | None,
    int | None,
]
"""The fields of an ``Attempt`` after its operation."""
StepRow: TypeAlias = tuple[int, int]
"""The fields of a ``Step`` after its operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a library used during one operation that was watched."""

    operation: int
    """``OperationRecord.index``."""
    rss_before_bytes: int | None
    """Resident set when the operation began; None where it cannot be read."""
    rss_peak_bytes: int | None
    """Largest resident set during the operation."""
    threads_peak: int | None
    """Most threads at once."""
    cpu_user_s: float
    cpu_sys_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    """Operations of an open loop that were due and never begun, at even distances."""

    first_ns: int
    """When the first of them was due."""
    last_ns: int
    """When the last of them was; as ``first_ns`` if it is one."""
    count: int
    until_ns: int
    """When the time was over, or a thread was free after that: until then, at least, each
    of them had waited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationRecord:
    """One function call that came back."""

    run_id: str
    index: int
    launch: int
    """0, and one more each time the driver launches this index again."""
    worker_id: str
    """Names the execution environment; invocations that share one ran in sequence."""
    cold_start: bool
    """Whether this was the first invocation of its execution environment."""
    version: str
    """Of this package, in the worker."""
    python: str
    start_ns: int
    end_ns: int
    wall_start_ns: int
    wall_end_ns: int
    """The wall clock at both ends: unlike ``end_ns - start_ns`` it shows a clock step."""
    cpu_user_s: float
    cpu_sys_s: float
    """From when the client was there to the end, the warm-up included."""
    max_rss_bytes: int
    """Peak resident set of the worker process so far."""
    operations: Sequence[OperationRecord] = ()
    attempts: Sequence[Attempt] = ()
    steps: Sequence[Step] = ()
    bad_ranges: Sequence[BadRange] = ()
    usages: Sequence[Usage] = ()
    error: str | None = None
    """Why the body stopped before its last operation; None when it did not."""
    run_wait_ns: int | None = None
    """Time in which threads could have run and had no processor, the sum over all threads;
    None if unknown."""
    cpus: int | None = None
    """Processors that the worker may use."""
    memory_mib: int | None = None
    """What a cloud function was given; None where there is no such limit."""
    generator_bytes_per_s: int | None = None
    """How fast this worker makes the bytes of an object, measured before its first one."""
    gate_wait_ns: int | None = None
    """How long it waited for the common start; None without a gate."""
    gate_late: bool = False
    """Whether the others had been started when it arrived."""
    delivery: str | None = None
    """Names the delivery of the event that this record is of; None if calls need no queue."""
    duplicate: bool = False
    """Whether another delivery had claimed the launch: nothing was done then."""
    born_ns: int | None = None
    """When its process began to load code, on the wall clock; None in a fork of another one."""
    import_ns: int | None = None
    """How long that took; None as above."""
    interpreter_ns: int | None = None
    """User time of the threads that run Python; None if unknown."""
    lock_probes: int | None = None
    """How often a thread looked whether the interpreter's lock is free; None with one thread."""
    lock_delayed: int | None = None
    """How often it had to wait."""
    machine: str | None = None
    """Kind of processor, as ``x86_64`` or ``aarch64``; None if unknown."""
    accesses: Sequence[Access] = ()
    """Of keys that functions share, in the order in which an operation made them."""
    overdue: Sequence[Overdue] = ()
    """What was due in an open loop and never begun; a few rows, however much it is."""
    gate_puts: int | None = None
    """Billed requests to announce itself at the gate. None without a gate, and if it ended
    before it came there."""
    gate_gets: int | None = None
    """The same: how often it asked for the start."""
    control_puts: int | None = None
    """Billed requests below the control prefix: its claim, and one for this record, whose
    further attempts cannot stand in it. None without a control prefix."""
    control_gets: int | None = None
    """The same: looks at the claim of somebody else."""
    measured_cpu_ns: int | None = None
    """User and system time from the first measured operation to the end; None if unknown."""

    @property
    def ok(self) -> bool:
        """Whether everything that was asked for happened."""
        return self.error is None and not any(column(self.operations, "error"))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able value with one table of columns per kind of row."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {name: to_columns(kind, values[name]) for name, kind in TABLES.items()}


TABLES: Mapping[str, type] = {
    "operations": OperationRecord,
    "attempts": Attempt,
    "steps": Step,
    "bad_ranges": BadRange,
    "usages": Usage,
    "accesses": Access,
    "overdue": Overdue,
}
"""Every table of an ``InvocationRecord`` and the type of its rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """One function call that never came back: another type, so that nobody averages it."""

    index: int
    launch: int
    cause: str
    never_began: bool = False
    """Whether it is certain that no worker did, or can still do, anything for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the driver knows about one function call."""

    submitted_ns: int
    collected_ns: int
    """When the record arrived, or when the driver gave up."""
    result: InvocationRecord | Lost
    refusals: int = 0
    """How often its launch was refused (throttled, connection lost) before it was accepted."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-able value."""
        if isinstance(self.result, Lost):
            result = {"lost": asdict(self.result)}
        else:
            result = {"record": self.result.to_json()}
        return {
            "submitted_ns": self.submitted_ns,
            "collected_ns": self.collected_ns,
            "refusals": self.refusals,
            **result,
        }
