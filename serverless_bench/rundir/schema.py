"""What a run directory may say besides its records: types, ranges, characters.

Whoever reads one may rely on it from here on; see ``received`` for records.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

import msgspec

from serverless_bench.errors import ArchiveError, UsageError
from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.types import check_text, described
from serverless_bench.units import format_count, format_seconds

T = TypeVar("T")
LIMIT: Final = 1 << 62
"""Above all instants, sizes and counts: what two of them are apart fits into 64 bits."""
MAX_ID: Final = 200
_MAX_DEPTH: Final = 20
_HINT: Final = "sbench did not write it so: the file was changed, or is of another version"

Count = Annotated[int, msgspec.Meta(ge=0, lt=LIMIT)]
Counts = dict[str, Count]
"""Instants and counts by name, of a line that says no more: that a driver is at work, or goes on
with a run, when its machine was suspended, or that the objects are deleted from now on."""
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
    """What a stage of a run says of a file; see ``digests``."""

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


class _Gate(msgspec.Struct):
    expected: Count
    announced: Count
    batches: Count
    opened_ns: Count
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stability:
    """How a run went that was to end when it was stable; analysis/figures.toml has each figure."""

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
    """None in runs of 0.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Who shared the embedded store; analysis/figures.toml defines each figure."""

    commands: Count
    shared_s: Annotated[float, msgspec.Meta(ge=0, lt=LIMIT)]

    @property
    def remark(self) -> str:
        """What reports and ``sbench check`` say of them."""
        return (
            f"{format_count(self.commands, 'other command')} loaded the embedded store for"
            f" {format_seconds(self.shared_s)} of this run:"
            " its figures are of what was left of the store"
        )


class End(msgspec.Struct):
    """What the line says that a driver writes last."""

    files: Files
    ended_ns: Count = 0
    probes: list[tuple[Count, Count, Count]] = []
    probed: list[_ProbedFunctionLine] = []
    requests: Requests = {}
    store_requests: Requests = {}
    gate: _Gate | None = None
    stability: Stability | None = None
    neighbours: Neighbours | None = None


class WaveLine(msgspec.Struct):
    """What the line says that comes before what is launched again."""

    number: Count
    created_ns: Count
    count: Count
    files: Files


def check_header(path: Path, header: Mapping[str, Any]) -> JobSpec:
    """Check what ``run.json`` says, and return its job.

    Raises
    ------
    ArchiveError
        If a value is missing, or of another type, range or characters; it names the field.
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
    """Return data as what a class describes; ``read`` makes that of them.

    Raises
    ------
    ValueError
        If it is not; it names the field.
    """
    try:
        return read(data, type=kind)
    except msgspec.ValidationError as exc:
        text, _, where = str(exc).partition(" - at ")
        field = where.strip("`").removeprefix("$").removeprefix(".")
        raise ValueError(f"`{field}`: {text}" if field else text) from None


def _check_plain(name: str, value: object, depth: int) -> None:
    """Refuse texts that cannot be shown, and what is nested without an end."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"`{name[:MAX_ID]}` is nested too deeply")
    if isinstance(value, str):
        check_text(name, value)
    elif isinstance(value, Mapping):
        for key, each in value.items():
            check_text(name, key)
            _check_plain(f"{name}.{key}", each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            _check_plain(name, each, depth + 1)


def _job(data: Mapping[str, Any]) -> JobSpec:
    """Return the job that ``asdict`` made ``data`` from."""
    job = described(DescribedJob, data, "job")
    if job.load.code is not None:
        raise ValueError("`job.load.code` must be null: a run directory has no code to run")
    if job.load.sizes is not None:
        if job.load.sizes.startswith("listing:"):
            raise ValueError("`job.load.sizes` names a file, and is to be what was read there")
        from serverless_bench.job.sizes import parse_sizes  # noqa: PLC0415 - few jobs have any

        parse_sizes(job.load.sizes)
    for url in (job.target.endpoint_url, *job.endpoints):
        # Whether it is one that could be asked is seen where it is asked.
        _ = urlsplit(url).port
    return job
