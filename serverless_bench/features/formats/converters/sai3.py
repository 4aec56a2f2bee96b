"""Converter of configurations of sai3-bench (its ``src/config.rs`` and ``docs/CONFIG_SYNTAX.md``).

It takes the fields for a comparison of gets: target, duration, concurrency, range engine,
and operations with paths and weights. A file with any other field is refused, because it would
become another job.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

from serverless_bench.base.errors import UsageError, check_known
from serverless_bench.base.units import MIB, parse_duration, parse_size
from serverless_bench.features.formats.converters.base import Converted
from serverless_bench.features.formats.converters.reading import load_yaml
from serverless_bench.features.stages.job_file import JobFile, Kind, Stage
from serverless_bench.job.setting_schema import Setting, checked, located
from serverless_bench.job.sizes import size_text
from serverless_bench.job.target import MAX_PART_BYTES, MIN_PART_BYTES
from serverless_bench.job.types import wrong

_KINDS: Final = {"get": "get", "list": "list", "stat": "head", "delete": "delete"}
_HOST_OR_BUCKET: Final = re.compile(r"\d.*|.*\..*\..*|(?:minio|ceph|localhost).*")
"""Names without a port that s3dlio, used by sai3-bench, takes for a host."""
_LONG_S: Final = 600.0
"""Runs above this need a later deadline than the 900 s that a function has."""


@dataclass
class _Operation:
    """An entry of ``workload``."""

    op: Literal["get", "list", "stat", "delete"]
    weight: float
    path: str = ""


@dataclass
class _RangeEngine:
    """Whether and how objects are read in concurrent ranges, after a request for their size."""

    enabled: bool = False
    chunk_size: str | int = 64 * MIB
    min_split_size: str | int = 16 * MIB
    max_concurrent_ranges: int = 16
    range_timeout_secs: float = 0.0


@dataclass
class _Configuration:
    """The file, with defaults of ``src/constants.rs``."""

    target: str
    workload: list[dict[str, Any]]
    duration: str | int | float = 60.0
    concurrency: int = 16
    range_engine: dict[str, Any] | None = None


def convert(path: Path, *, threads: int) -> Converted:
    """Return the job of a YAML file for ``sai3-bench run``; see ``Converter``."""
    document = load_yaml(path)
    if "workload" not in document:
        raise UsageError(
            f"{path} has no 'workload' with operations",
            hint="a file for `sai3-bench run` lists them under workload:",
        )
    with located(str(path)):
        file = _read(_Configuration, document)
        operations = []
        for number, table in enumerate(file.workload):
            with located(f"workload.{number}"):
                operations.append(_read(_Operation, table))
        mix, folder = _mix(operations)
        target, notes = _target(file.target, folder)
        with located("range_engine"):
            ranges = _ranges(_read(_RangeEngine, file.range_engine or {}))
        duration_s = parse_duration(str(file.duration))
        if duration_s <= 0 or file.concurrency < 1:
            raise UsageError("duration and concurrency must be above 0")
    number = -(-file.concurrency // threads)
    settings = {
        "number": number,
        "concurrency": number,
        "threads": min(threads, file.concurrency),
        "barrier": 1.0,
        "objects": threads,
        "size": "1MiB",
        "duration": duration_s,
        # Creating the objects takes time, too.
        "deadline": max(900.0, 2 * duration_s + _LONG_S),
        "mix": ",".join(f"{kind}={weight:g}" for kind, weight in mix.items()),
        **ranges,
    }
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:64] or "converted"
    stage = Stage(name="workload", kind=Kind.EXECUTE, workload="mixed", settings=settings)
    return Converted(job=JobFile(name=name, target=target, stages=(stage,), path=path), notes=notes)


def _read(kind: type[Any], table: object) -> Any:
    """Return a table of the file as one of the classes above, and refuse all other fields."""
    if not isinstance(table, Mapping):
        raise UsageError(f"{table!r} is not a mapping")
    names = [field.name for field in fields(kind)]
    check_known(map(str, table), names, "sbench has no equivalent of", otherwise=", ".join(names))
    for field in fields(kind):
        if field.default is MISSING and field.name not in table:
            raise wrong(field.name, "is missing")
    return kind(**{name: checked(kind, name, value) for name, value in table.items()})


def _mix(operations: list[_Operation]) -> tuple[Mapping[str, float], str]:
    """Return the weights of all kinds, and the folder of their objects."""
    mix = dict[str, float]()
    folders = {operation.path.removesuffix("*") for operation in operations}
    for operation in operations:
        if not 0 <= operation.weight < float("inf"):
            raise wrong("weight", f"must be a number from 0 on, got {operation.weight}")
        kind = _KINDS[operation.op]
        mix[kind] = mix.get(kind, 0) + operation.weight
    if not any(mix.values()):
        raise UsageError("workload has no operation of a weight above 0")
    (folder, *others) = sorted(folders)
    if others or "*" in folder or (folder and not folder.endswith("/")):
        raise UsageError(
            f"path must be the same folder in all operations, got {', '.join(sorted(folders))}",
            hint="objects of a job have one prefix; convert a file with one folder, as in data/*",
        )
    return {kind: weight for kind, weight in mix.items() if weight}, folder


def _ranges(engine: _RangeEngine) -> dict[str, Setting]:
    if not engine.enabled:
        return {}
    with located("chunk_size"):
        chunk = parse_size(str(engine.chunk_size))
        if not MIN_PART_BYTES <= chunk <= MAX_PART_BYTES:
            raise UsageError(f"must be from 5 MiB to 5 GiB, got {engine.chunk_size}")
    with located("min_split_size"):
        least = parse_size(str(engine.min_split_size))
    timeout = {"timeout": engine.range_timeout_secs} if engine.range_timeout_secs else {}
    return {
        "part-size": size_text(chunk),
        "connections": engine.max_concurrent_ranges,
        "min-split-size": size_text(least),
        "stat": "each",
        **timeout,
    }


def _target(uri: str, folder: str) -> tuple[dict[str, Setting], tuple[str, ...]]:
    """Return the target of ``s3://[host:port/]bucket/prefix/``, and notes."""
    notes = ["objects: sai3-bench reads those of the bucket; functions here make one of 1 MiB each"]
    target = dict[str, Setting]()
    match = re.fullmatch(r"(s3|gs)://([^/]+)/?(.*)", uri)
    scheme, bucket, path = match.groups() if match else ("", "", "")
    if scheme == "gs":
        bucket = f"gs://{bucket}"
    elif ":" in bucket:
        target["endpoint-url"] = f"http://{bucket}"
        notes.append(f"target: {bucket} is taken to speak http; write https if it does not")
        bucket, _, path = path.partition("/")
    elif _HOST_OR_BUCKET.fullmatch(bucket):
        raise UsageError(
            f"target: {bucket} may be a host or a bucket",
            hint=f"give the port of a host, as in s3://{bucket}:80/{path}",
        )
    if not bucket:
        raise wrong("target", f"must be s3://bucket/prefix/ or gs://bucket/prefix/, got {uri!r}")
    prefix = "/".join(part.strip("/") for part in (path, folder) if part.strip("/"))
    return {**target, "bucket": bucket, **({"prefix": f"{prefix}/"} if prefix else {})}, (*notes,)
