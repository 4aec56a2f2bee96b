"""Records of function calls: the values that workers return.

Two clocks appear here. The times in ``InvocationRecord`` and below are read from the worker's
clock, ``submitted_ns`` and ``collected_ns`` in ``Outcome`` from the driver's. They are stored
uncorrected; the analysis corrects them.

In JSON, a list of rows is stored as one table of columns (``{"start_ns": [1, 2], ...}``). This
takes a third of the space and loads into arrays without creating an object per row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Final, TypeAlias

from serverless_bench.job.operations import OperationKind
from serverless_bench.rundir.rows import Access, column, to_columns


class FoundBytes(StrEnum):
    """Classification of the bytes read instead of the expected bytes."""

    ZEROS = "zeros"
    OTHER_OFFSET = "other_offset"
    """Bytes of the same object from a different offset."""
    OTHER_GENERATION = "other_generation"
    """Bytes of an earlier or a later version of this object."""
    OTHER_OBJECT = "other_object"
    UNKNOWN = "unknown"
    """Bytes that sbench did not write, or too few bytes to classify."""
    MISSING = "missing"
    """No bytes arrived; usually the object is shorter than its recorded size."""
    EXTRA = "extra"
    """The object is longer than its recorded size."""


class Shown(StrEnum):
    """Details of a request that a client may expose; metrics that need other details are null."""

    CONNECTION = "connection"
    """Address that the request was sent to, and whether it opened a new connection."""
    ACKNOWLEDGED = "acknowledged"
    """Bytes of a put that the store's kernel has received, and the time of the last if known."""
    FIRST_BYTE = "first_byte"
    """Time at which the first byte of a body arrived."""
    CONTENT_RANGE = "content_range"
    """Response header of a range request that contains the object's size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRange:
    """A range of an object in which bytes differ from the bytes written."""

    operation: int
    """``OperationRecord.index``."""
    key: str
    """Key of the object."""
    offset: int
    length: int
    bad_bytes: int
    """Number of bytes in the range that differ; some bytes may match by chance."""
    found: FoundBytes
    found_key_hash: str | None = None
    """``keystream.hash_key`` of the object that the bytes belong to, in hexadecimal; None if
    unknown."""
    found_generation: int | None = None
    found_offset: int | None = None
    """Offset in that object to which the first of the bytes belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One HTTP attempt."""

    operation: int
    """``OperationRecord.index``."""
    request: str
    """put, get, head, list, list_versions, delete, delete_many or copy; for multipart uploads
    create_multipart, upload_part, complete_multipart or abort_multipart; for arrays create_array,
    write_array, append_array or read_array."""
    part: int
    """Part or range number, starting at 1; 0 if the request covers the full object."""
    number: int
    """0 for the first attempt of this request, then 1, 2, ..."""
    start_ns: int
    end_ns: int
    wait_ns: int
    """Backoff before this attempt, caused by the previous attempt."""
    status: int | None
    """HTTP status; None if there was no response."""
    error: str | None
    """``OperationError.code``; None if the attempt succeeded."""
    detail: str | None
    """The store's message for the error."""
    request_id: str | None
    host_id: str | None
    remote: str | None
    """Address and port of the connection; None if there was none or the client hides it."""
    reused: bool
    """Whether the connection had carried an earlier request; False if the client hides it."""
    bytes: int
    """Body bytes that this attempt transferred. For a failed upload, the bytes that the store's
    kernel acknowledged, if the client exposes them."""
    answered_ns: int | None = None
    """Time at which the response headers arrived; None if there was no response."""
    date_s: int | None = None
    """``Date`` header of the response, in seconds since the epoch on the store's clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An interval of an operation during which bytes were transferred at a constant rate."""

    operation: int
    """``OperationRecord.index``."""
    step_ns: int
    """Duration; the steps of an operation are contiguous and start when the operation starts."""
    step_bytes: int
    """Bytes transferred; the steps of an operation add up to its ``bytes``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """One measured operation on an object, successful or not.

    Its thread is not recorded: with several threads, operations are in the order of their starts.
    """

    index: int
    kind: OperationKind
    key: str
    size: int | None
    """Expected size of the object; None for an object that sbench did not write."""
    start_ns: int
    end_ns: int
    first_byte_ns: int | None
    """Time at which the first byte of the object arrived; None for writes, and if the client does
    not expose it (``Shown``)."""
    last_byte_sent_ns: int | None
    """Time at which the store's kernel had received the last byte of the object; for an object
    that is sent in one call, the time at which it was sent. None for reads, and if unknown."""
    bytes: int
    """Bytes transferred by successful attempts."""
    verified_bytes: int
    """Bytes that were compared with the keystream and matched."""
    bad_bytes: int
    """Bytes that were compared and did not match, were missing or were in excess."""
    bad_ranges: int
    """Number of ranges that these bytes form; at most ``verify.MAX_BAD_RANGES`` are listed."""
    payload_ns: int
    """Time within the operation spent generating or comparing bytes."""
    error: str | None
    """``OperationError.code``; None if the operation succeeded."""
    warmup: bool = False
    """Whether the operation ran during warm-up; reports exclude such operations."""
    offset: int = 0
    """Start of a range, in bytes."""
    generation: int = 0
    """Version of the bytes written or expected: the number of times the object was overwritten."""
    count: int = 1
    """Number of keys involved; differs from 1 only for a listing or a bulk deletion."""
    intended_ns: int | None = None
    """Scheduled start time in an open loop; None in a closed loop."""


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
"""Positions of fields in an ``OperationRow``."""
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
    """Resources that a library used during an operation that was monitored."""

    operation: int
    """``OperationRecord.index``."""
    rss_before_bytes: int | None
    """Resident set size at the start of the operation; None if it cannot be read."""
    rss_peak_bytes: int | None
    """Largest resident set size during the operation."""
    threads_peak: int | None
    """Largest number of threads at the same time."""
    cpu_user_s: float
    cpu_sys_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Evenly spaced operations of an open loop that became due but never started."""

    first_ns: int
    """Time at which the first operation was due."""
    last_ns: int
    """Time at which the last operation was due; equal to ``first_ns`` for a single operation."""
    count: int
    until_ns: int
    """End of the measurement, or the time at which a thread became free after it. Each of the
    operations waited at least until then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InvocationRecord:
    """Result of a function call that returned."""

    run_id: str
    index: int
    launch: int
    """0 for the first launch; the driver adds 1 each time it relaunches this index."""
    worker_id: str
    """Identifier of the execution environment; invocations that share it ran sequentially."""
    cold_start: bool
    """Whether this was the first invocation in its execution environment."""
    version: str
    """Version of this package in the worker."""
    python: str
    start_ns: int
    end_ns: int
    wall_start_ns: int
    wall_end_ns: int
    """Wall-clock time at the end. Unlike ``end_ns - start_ns``, the two wall-clock times reveal a
    clock step."""
    cpu_user_s: float
    cpu_sys_s: float
    """CPU time from the creation of the client to the end, including the warm-up."""
    max_rss_bytes: int
    """Peak resident set size of the worker process until now."""
    operations: Sequence[OperationRecord] = ()
    attempts: Sequence[Attempt] = ()
    steps: Sequence[Step] = ()
    bad_ranges: Sequence[BadRange] = ()
    usages: Sequence[Usage] = ()
    error: str | None = None
    """Reason for stopping before the last operation; None if the function completed."""
    run_wait_ns: int | None = None
    """Time for which runnable threads had no CPU, summed over all threads; None if
    unknown."""
    cpus: int | None = None
    """Number of CPUs available to the worker."""
    memory_mib: int | None = None
    """Memory limit of a cloud function; None where there is no such limit."""
    generator_bytes_per_s: int | None = None
    """Rate at which this worker generates object bytes, measured before its first operation."""
    barrier_wait_ns: int | None = None
    """Time spent waiting for the common start; None without a barrier."""
    barrier_late: bool = False
    """Whether the worker arrived after the barrier had opened."""
    delivery: str | None = None
    """Identifier of the event delivery that led to this record; None if calls use no queue."""
    duplicate: bool = False
    """Whether another delivery had claimed the launch; the worker does no work in this case."""
    born_ns: int | None = None
    """Wall-clock time at which the process started loading code; None in a forked process."""
    import_ns: int | None = None
    """Duration of loading code; None in a forked process."""
    interpreter_ns: int | None = None
    """User time of the threads that run Python; None if unknown."""
    lock_probes: int | None = None
    """Number of times a thread checked the interpreter lock; None with a single thread."""
    lock_delayed: int | None = None
    """Number of these checks that had to wait."""
    machine: str | None = None
    """CPU architecture, such as ``x86_64`` or ``aarch64``; None if unknown."""
    accesses: Sequence[Access] = ()
    """Accesses to shared keys, in the order in which an operation made them."""
    dropped: Sequence[Dropped] = ()
    """Dropped operations of an open loop, in a small number of rows."""
    barrier_puts: int | None = None
    """Billed requests for announcing itself at the barrier. None without a barrier, and if the
    worker stopped before it arrived there."""
    barrier_gets: int | None = None
    """Billed requests for polling the barrier; None in the same cases."""
    control_puts: int | None = None
    """Billed requests below the control prefix: its claim, and one for this record, which cannot
    contain its own retries. None without a control prefix."""
    control_gets: int | None = None
    """Billed requests for reading claims of other deliveries, and for looks for a stop; None in the
    same case."""
    measured_cpu_ns: int | None = None
    """User and system time from the first measured operation to the end; None if unknown."""
    tax_ns: int | None = None
    """CPU time that ``sbench why`` burnt in blocks with the change ``CPU``; None in
    other runs, as for the following fields."""
    tax_of_ns: int | None = None
    """CPU time of the function in these blocks, including the tax."""
    hold_ns: int | None = None
    """Time for which the interpreter lock was held in blocks with the change ``lock``."""
    hold_of_ns: int | None = None
    """Duration of these blocks."""
    extra_operations: int | None = None
    """Operations of the additional thread in blocks with the change ``thread``."""

    @property
    def ok(self) -> bool:
        """Whether the function completed and all its operations succeeded."""
        return self.error is None and not any(column(self.operations, "error"))

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable value with one table of columns per row type."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {name: to_columns(kind, values[name]) for name, kind in TABLES.items()}


TABLES: Mapping[str, type] = {
    "operations": OperationRecord,
    "attempts": Attempt,
    "steps": Step,
    "bad_ranges": BadRange,
    "usages": Usage,
    "accesses": Access,
    "dropped": Dropped,
}
"""Tables of an ``InvocationRecord`` and their row types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A function call that did not return; a separate type keeps it out of averages."""

    index: int
    launch: int
    cause: str
    not_started: bool = False
    """Whether it is certain that no worker has done or can still do any work for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The driver's view of one function call."""

    submitted_ns: int
    collected_ns: int
    """Time at which the record arrived or the driver gave up."""
    result: InvocationRecord | Lost
    refusals: int = 0
    """Number of times its launch was rejected (throttled, connection lost) before it succeeded."""

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable value."""
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
