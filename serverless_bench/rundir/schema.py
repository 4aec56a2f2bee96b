"""Validation of run directories apart from records: types, ranges and characters.

Code that reads a validated run directory relies on these constraints; see ``received`` for
records.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.base.units import format_count, format_seconds
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.types import check_text

T = TypeVar("T")
LIMIT: Final = 1 << 62
"""Exclusive limit of times, sizes and counts; their differences fit into 64 bits."""
MAX_ID: Final = 200
_MAX_DEPTH: Final = 20
_HINT: Final = "the file was changed, or was written by another version of sbench"

Count = Annotated[int, msgspec.Meta(ge=0, lt=LIMIT)]
Counts = dict[str, Count]
"""Times and counts by name, in lines with no other content: a driver is active or resumes a run,
its machine was suspended, or ``sbench clean`` starts to delete the objects."""
Requests = dict[Annotated[str, msgspec.Meta(max_length=64)], Count]
Sha256 = Annotated[str, msgspec.Meta(min_length=64, max_length=64)]


class _ClientLine(msgspec.Struct):
    attempts: str = ""
    progress: str = ""
    shows: list[str] = []


class _Provenance(msgspec.Struct):
    client: _ClientLine = msgspec.field(default_factory=_ClientLine)
    polled: bool = False


class _ProbedFunctionLine(msgspec.Struct):
    billed_ms: Count
    memory_mib: Count | None
    requests: dict[str, Requests]


class _ProbeLine(msgspec.Struct):
    functions: list[_ProbedFunctionLine]


class FileState(msgspec.Struct):
    """State of a file as recorded in a stage of a run; see ``digests``."""

    bytes: Count
    lines: Count
    sha256: Sha256


Files = dict[Literal["ledger.txt", "keys.txt", "records.jsonl"], FileState]


class _Header(msgspec.Struct):
    run_id: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID)]
    created_ns: Count
    job: dict[str, Any]
    provenance: _Provenance
    files: Files
    sha256: Sha256
    probe: _ProbeLine | None = None
    limits: dict[str, Any] | None = None
    simulated: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID)] | None = None


class _BarrierReport(msgspec.Struct):
    expected: Count
    announced: Count
    batches: Count
    opened_ns: Count
    waited_s: float


class Stability(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a run with ``until_stable``; metrics/figures.toml defines each field."""

    asked: float
    reached: bool
    after_s: float | None
    of: Annotated[str, msgspec.Meta(max_length=16)]
    mean_per_s: float | None
    low_per_s: float | None
    high_per_s: float | None
    half_width: float | None
    trend: float | None
    block_s: float | None
    blocks: Count
    looks: Count
    looked_s: float | None = None
    """None in runs of version 0.1."""


class Neighbours(msgspec.Struct, frozen=True, kw_only=True):
    """Load on the embedded store by other commands; metrics/figures.toml defines each field."""

    commands: Count
    shared_s: Annotated[float, msgspec.Meta(ge=0, lt=LIMIT)]

    @property
    def remark(self) -> str:
        """Text about them in reports and in ``sbench check``."""
        return (
            f"{format_count(self.commands, 'other command')} loaded the embedded store for"
            f" {format_seconds(self.shared_s)} of this run:"
            " its results only show the remaining capacity of the store"
        )


SignalName = Literal["Ctrl-C", "SIGTERM", "SIGHUP", "sbench stop", "cost limit"]


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """Cause of the early end of a run; metrics/figures.toml defines each field."""

    by: SignalName
    after_s: Annotated[float, msgspec.Meta(ge=0, lt=LIMIT)]

    @property
    def remark(self) -> str:
        """Text about it in reports."""
        return f"stopped by {self.by} after {format_seconds(self.after_s)}"


class End(msgspec.Struct):
    """Content of the final line of a driver."""

    files: Files
    ended_ns: Count = 0
    probes: list[tuple[Count, Count, Count]] = []
    probed: list[_ProbedFunctionLine] = []
    requests: Requests = {}
    store_requests: Requests = {}
    barrier: _BarrierReport | None = None
    stability: Stability | None = None
    neighbours: Neighbours | None = None
    stopped: Stopped | None = None


class WaveLine(msgspec.Struct):
    """Content of the line that precedes a relaunch."""

    number: Count
    created_ns: Count
    count: Count
    files: Files


def check_header(path: Path, header: Mapping[str, Any]) -> JobSpec:
    """Validate ``run.json``, and return the job.

    Raises
    ------
    ArchiveError
        If a value is missing, or has an invalid type, range or character; it names the field.
    """
    try:
        check(header, _Header)
        for name in ("run_id", "provenance", "probe", "limits", "simulated"):
            _check_plain(name, header.get(name), 0)
        return _job(header["job"])
    except (TypeError, ValueError) as exc:
        raise ArchiveError(f"{path}: {exc}", hint=_HINT) from None
    except UsageError as exc:
        raise ArchiveError(f"{path}: {exc}", hint=exc.hint or _HINT) from None


def check(data: object, kind: type[T], read: Callable[..., T] = msgspec.convert) -> T:
    """Return data converted to ``kind`` by ``read``.

    Raises
    ------
    ValueError
        If they do not match; it names the field.
    """
    try:
        return read(data, type=kind)
    except msgspec.ValidationError as exc:
        text, _, where = str(exc).partition(" - at ")
        field = where.strip("`").removeprefix("$").removeprefix(".")
        raise ValueError(f"`{field}`: {text}" if field else text) from None


def _check_plain(name: str, value: object, depth: int) -> None:
    """Reject text that cannot be printed, and values that are nested too deeply."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"`{name[:MAX_ID]}` is nested too deeply")
    if isinstance(value, str):
        check_text(name, value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            check_text(name, key)
            _check_plain(f"{name}.{key}", item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_plain(name, item, depth + 1)


def _job(data: Mapping[str, Any]) -> JobSpec:
    """Return the job that was converted to ``data`` by ``to_json``."""
    job = JobSpec.from_json(data)
    for name, value in job.options.items():
        # No installed feature may have checked it.
        _check_plain(f"job.{name}", value, 0)
    if job.load.code is not None:
        raise ValueError("`job.load.code` must be null: code in a run directory is not run")
    if job.load.sizes is not None:
        from serverless_bench.job.sizes import parse_sizes

        parse_sizes(job.load.sizes)
    for url in (job.target.endpoint_url, *job.endpoints):
        # The address itself is checked before the first request.
        _ = urlsplit(url).port
    return job
