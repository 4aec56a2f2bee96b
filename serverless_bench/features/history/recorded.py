"""The file of a recorded run: the data that makes it comparable, and its metrics."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from math import isfinite
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.errors import UsageError
from serverless_bench.features.compare.samples import flattened, measured_run
from serverless_bench.features.history.folder import KEY
from serverless_bench.job.endpoint import is_here, zone_of
from serverless_bench.job.operations import OperationKind
from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.types import check_text
from serverless_bench.rundir.run import Run
from serverless_bench.rundir.schema import check

SCHEMA: Final = 1
FIGURES: Final = (
    "ops_per_s",
    "throughput_bytes_per_s",
    "steady_bytes_per_s",
    "peak_1s_bytes_per_s",
    "peak_5s_bytes_per_s",
    "per_function_bytes_per_s.p50",
    "elapsed_s",
    "makespan_s",
    *(f"completion_s.{p}" for p in ("p50", "p90", "p99", "max")),
    *(f"{name}.{p}" for name in ("latency_s", "ttfb_s", "ack_s") for p in ("p50", "p99")),
    "cpu_s_per_gib",
    "peak_rss_bytes",
    *(f"{kind}.{metric}" for kind in OperationKind for metric in ("ops_per_s", "p50", "p99")),
)
"""Metrics that are recorded if a run has them."""
MAX_LABEL: Final = 100

_DIGITS: Final = 7
"""Significant digits of a metric: more precise than any clock, and reproducible in text."""
_MAY_CHANGE: Final = re.compile(
    r"(?:name|seed|network_rate|deadline|start_timeout|barrier_timeout|endpoints|control"
    r"|transfer\.timeout|load\.code|target\.(?:bucket|prefix|endpoint_url|store))(?:\..*)?"
)
"""Settings that do not change the job; the location of the store is in `_store`."""
_ALWAYS: Final = frozenset({"workload", "executor", "number", "target.client"})
"""Settings that are part of the key even if they have their defaults."""
_SHOWN: Final = (
    *("workload", "target.client", "executor", "number", "objects", "size", "load.threads"),
    *("duration", "load.rate"),
)
"""Settings shown by name in the file; the key covers all settings."""
_ARCHITECTURES: Final = frozenset(
    {"aarch64", "AMD64", "arm64", "i686", "ppc64le", "riscv64", "s390x", "x86_64"}
)

_Word = Annotated[str, msgspec.Meta(max_length=200)]
_Name = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Number = Annotated[float, msgspec.Meta(ge=0, lt=1e21)]
_Figure = Annotated[float, msgspec.Meta(gt=1e-9, lt=1e15)]


class RecordedRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run of a history, as stored in its file."""

    schema: int
    run_id: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    created_ns: Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
    """Start time, on the driver's clock."""
    key: Annotated[str, msgspec.Meta(max_length=200)]
    """Identifier shared by comparable runs."""
    job: dict[_Name, _Word | _Count | _Number | None]
    machine: dict[_Name, _Word | _Count | _Number | None]
    versions: dict[_Name, _Word]
    """Versions under test, which may vary between runs."""
    bytes: _Count | None
    """Bytes transferred; None if they depend on the duration."""
    figures: Annotated[dict[_Name, _Figure], msgspec.Meta(min_length=1)]
    label: Annotated[str, msgspec.Meta(max_length=MAX_LABEL)] = ""
    """User's name for the tested version."""
    restart: bool = False
    """Whether checks ignore all earlier runs."""

    @property
    def file_name(self) -> str:
        """Name of the file, which is unique, so that branches do not conflict."""
        return f"{utc_stamp(self.created_ns)}-{_digest(self.run_id)}.json"

    def to_text(self) -> str:
        """Return the text of the file, which is deterministic."""
        return json.dumps(msgspec.to_builtins(self), indent=1, sort_keys=True) + "\n"


def record(run: Run, *, machine: str = "", label: str = "") -> RecordedRun:
    """Return the record of a run for a history.

    Parameters
    ----------
    run
        A valid, completed run.
    machine
        Name of the machine, if another has the same system and number of CPUs.
    label
        See the field.

    Raises
    ------
    UsageError
        If its results are not valid for its configuration, or it has none.
    """
    for name, text in (("machine", machine), ("label", label)):
        check_text(name, text, most=MAX_LABEL)
    measured = measured_run(run)
    if measured.summary.simulated is not None:
        raise UsageError(f"{run.path} was simulated: its results are not measurements")
    figures = {}
    for name in FIGURES:
        try:
            value = measured.metric(name)
        except UsageError:
            continue
        if isfinite(value):
            figures[name] = float(f"{value:.{_DIGITS}g}")
    if not figures:
        raise UsageError(f"{run.path} has no metric to record")
    job, about = run.job, _machine(run.provenance, machine)
    settings, store = dict(flattened(job.to_json())), _store(job.target)
    place = {"machine": about, "store": store, "endpoints": len(job.endpoints)}
    recorded = RecordedRun(
        schema=SCHEMA,
        run_id=run.run_id,
        created_ns=run.created_ns,
        key=_key(job, {**_counting(job), **place}),
        job={**{name.rpartition(".")[2]: settings[name] for name in _SHOWN}, "store": store},
        machine=about,
        versions=_versions(run.provenance, job),
        bytes=None if job.duration is not None or job.load.is_drawn else measured.summary.bytes,
        figures=figures,
        label=label,
    )
    try:
        return parse(recorded.to_text().encode())
    except ValueError as exc:
        # The run directory may come from another user, or from a plugin with an invalid name.
        raise UsageError(f"{run.path} cannot be recorded: {exc}") from None


def with_restart(runs: Sequence[RecordedRun]) -> list[RecordedRun]:
    """Return the runs, with a restart at the oldest run of each key."""
    first = {run.key: run for run in sorted(runs, key=lambda run: -run.created_ns)}
    return [
        msgspec.structs.replace(run, restart=True) if run is first[run.key] else run for run in runs
    ]


def _counting(job: JobSpec) -> dict[str, Any]:
    """Return the settings that define a job.

    Settings with their default values are omitted, so that a setting added in a later version does
    not change the keys of older runs.
    """
    default_job = DescribedJob(workload="write", target=Target(bucket="any"), number=1)
    defaults = dict(flattened(default_job.to_json()))
    return {
        name: value
        for name, value in flattened(job.to_json())
        if not _MAY_CHANGE.fullmatch(name)
        and (name in _ALWAYS or name not in defaults or value != defaults[name])
    }


def _key(job: JobSpec, counting: Mapping[str, Any]) -> str:
    named = "-".join((job.workload, job.target.client, job.executor)).lower()
    readable = re.sub(r"[^a-z0-9]+", "-", named).strip("-")[:100] or "run"
    return f"{readable}-{_digest(json.dumps(counting, sort_keys=True, default=str))}"


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:12]


def _store(target: Target) -> str:
    """Return a description of the store without its port, bucket or credentials."""
    directory = " directory bucket" if zone_of(target.bucket) else ""
    if target.store is not None:
        return f"{target.store} here"
    if not target.endpoint_url:
        return f"{target.protocol} {target.region}".strip() + directory
    parts = urlsplit(target.endpoint_url)
    host = parts.hostname or ""
    return f"{target.protocol} {parts.scheme} {'here' if is_here(host) else host}"[:150] + directory


def _machine(provenance: Mapping[str, Any], name: str) -> dict[str, str | float | None]:
    """Return properties that distinguish machines and survive system updates."""
    words = str(provenance.get("platform") or "").split("-")
    system = " ".join((words[0][:32], *(word for word in words if word in _ARCHITECTURES)))
    cpus = provenance.get("cpus")
    return {
        "cpus": cpus if isinstance(cpus, int) else None,
        "system": system or None,
        **({"name": name} if name else {}),
    }


def _versions(provenance: Mapping[str, Any], job: JobSpec) -> dict[str, str]:
    """Return the most relevant versions."""
    libraries = provenance.get("libraries")
    library = job.load.library or job.target.client
    versions = {
        "sbench": provenance.get("sbench"),
        "git_commit": provenance.get("git_commit"),
        "python": provenance.get("python"),
        library: libraries.get(library) if isinstance(libraries, Mapping) else None,
    }
    return {name: version[:64] for name, version in versions.items() if isinstance(version, str)}


def parse(text: bytes) -> RecordedRun:
    """Return the run stored in a file of a history.

    Raises
    ------
    ValueError
        If the file is not valid; it gives the reason and names the field.
    """
    try:
        data = msgspec.json.decode(text)
        if (
            isinstance(data, dict)
            and isinstance(data.get("schema"), int)
            and data["schema"] > SCHEMA
        ):
            raise ValueError("it was written by a newer sbench; upgrade this one")
        run = check(data, RecordedRun)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise ValueError(f"it is not JSON: {exc}") from None
    if not KEY.fullmatch(run.key):
        raise ValueError("`key` is not a valid key")
    if not run.figures.keys() & set(FIGURES):
        raise ValueError("`figures` has no known metric")
    for name, value in _texts(run):
        if not value.isprintable():
            raise ValueError(f"`{name}` has characters that cannot be printed")
    return run


def _texts(run: RecordedRun) -> Iterator[tuple[str, str]]:
    yield from (("run_id", run.run_id), ("label", run.label))
    for part in (run.job, run.machine, run.versions):
        yield from ((name, value) for name, value in part.items() if isinstance(value, str))
