"""Converter of configurations of sai3-bench (its ``src/config.rs`` and ``docs/CONFIG_SYNTAX.md``).

Its workload is a list of operations with weights, each with a separate set of objects. Here all
kinds share the objects of a function, so the sizes of these sets become a single distribution.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.formats.converters.base import (
    Converted,
    Fields,
    Settings,
    in_flight,
    job_of,
    lasting,
    part_size,
    shares,
    sized,
    stage_of,
    weights,
)
from serverless_bench.formats.converters.reading import load_yaml
from serverless_bench.job.keys import MAX_COMPRESSIBILITY, MAX_DUPLICATION
from serverless_bench.job.sizes import Fixed, parse_sizes, size_text
from serverless_bench.settings.job_file import Stage
from serverless_bench.units import MIB

_DURATION_S: Final = 60.0
_CONCURRENCY: Final = 16
_SIZE: Final = MIB
_CHUNK: Final = 64 * MIB
_RANGES: Final = 16
_MIN_SPLIT: Final = 16 * MIB
_RETRIES: Final = 3
"""Defaults in ``src/constants.rs`` of sai3-bench."""
_MAX_DEPTH: Final = 16
_MAX_WIDTH: Final = 10**9
"""Levels of a directory tree, and folders or files in a folder."""
_KINDS: Final = {"get": "get", "put": "put", "list": "list", "stat": "head", "delete": "delete"}
_ARRIVALS: Final = {"exponential": "poisson", "uniform": "uniform", "deterministic": "uniform"}
_IDLE: Final[Mapping[str, object]] = {
    "fill": "random",
    "page_cache_mode": "auto",
    "processing_mode": "multi_runtime",
    "prepare.prepare_strategy": "sequential",
    "prepare.cleanup_mode": "tolerant",
    "enable_metadata_cache": True,
    "cache_checkpoint_interval_secs": 300,
}
"""Defaults of sai3-bench, which need no equivalent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """A set of similar objects: prepared objects, or the objects of a put."""

    weight: float
    """Number of objects, or weight of the operation."""
    sizes: str
    compressibility: float
    duplication: float


def convert(path: Path, *, threads: int) -> Converted:
    """Return the job of a YAML file for ``sai3-bench run``; see ``Converter``."""
    document = load_yaml(path)
    workload = document.pop("workload", None)
    if not isinstance(workload, list) or not workload:
        raise UsageError(
            f"{path} has no 'workload' with operations",
            hint="a file for `sai3-bench run` lists them under workload:",
        )
    notes: list[str] = []
    fields = Fields(path, document)
    listed = fields.listed("prepare.ensure_objects")
    operations = [_table(path, f"workload.{n}.", table) for n, table in enumerate(workload)]
    prepared = [_table(path, f"prepare.{n}.", table) for n, table in enumerate(listed)]
    target = _target(fields, notes)
    stage = _stage(fields, operations, prepared, threads, notes)
    clean = fields.flag("prepare.cleanup")
    if clean:
        notes.append("prepare.cleanup: objects of puts are deleted, too; sai3-bench keeps them")
    for table in (fields, *operations, *prepared):
        notes += table.rest(_IDLE)
    return job_of(path, stage, target=target, clean=clean, notes=notes)


def _table(path: Path, where: str, table: object) -> Fields:
    if not isinstance(table, dict):
        raise UsageError(f"{path}: {where.rstrip('.')} is {table!r}, not a mapping")
    return Fields(path, table, where)


def _stage(
    fields: Fields,
    operations: Sequence[Fields],
    prepared: Sequence[Fields],
    threads: int,
    notes: list[str],
) -> Stage:
    mix, written = _mix(fields, operations, notes)
    sets = _prepared(fields, prepared, notes)
    at_once = _in_flight(fields, notes)
    total = sum(table.weight for table in sets)
    if sets and written and _same(sets) != _same(written):
        notes.append("workload: puts write objects like the prepared ones here")
    elif not sets and set(mix) - {"put"}:
        notes.append("prepare: no object is prepared there, one object per function here")
    shards = round(fields.number("prepare.key_prefix_shards", 0))
    settings: Settings = {
        **in_flight(at_once, threads),
        "objects": shares(round(total) or 1, at_once, threads),
        **_payload(sets or written, notes),
        "layout": f"sharded:{shards}" if shards else None,
        "retries": round(fields.number("error_handling.max_retries", _RETRIES))
        if fields.flag("error_handling.retry_on_error")
        else None,
    }
    if fields.take_if("duration", "0s") or fields.take_if("duration", 0):
        if not sets:
            raise fields.refused("duration is 0, and prepare has no objects")
        notes.append("duration: 0 means prepare alone, so the workload is left out")
        return stage_of("prepare", "write", settings)
    settings |= {
        **lasting(fields.seconds("duration", _DURATION_S)),
        "mix": weights(mix),
        **_rate(fields),
        **_ranges(fields, notes),
    }
    if "put" in mix and not fields.flag("dynamic_put_pool"):
        notes.append("dynamic_put_pool: gets may hit objects of puts, as if it were true")
    return stage_of("workload", "mixed", settings)


def _in_flight(fields: Fields, notes: list[str]) -> int:
    agents = fields.listed("distributed.agents")
    if agents:
        notes.append(
            f"distributed: {len(agents)} agents multiply the number of functions; settings of"
            " a single agent are left out"
        )
    return fields.count("concurrency", _CONCURRENCY) * max(1, len(agents))


def _mix(
    fields: Fields, operations: Iterable[Fields], notes: list[str]
) -> tuple[dict[str, float], list[_Set]]:
    """Return the joint weights of all kinds, and the objects that their puts write."""
    mix: dict[str, float] = {}
    written = []
    paths: dict[str, set[str]] = {}
    for operation in operations:
        name, place = operation.take("op"), str(operation.take("path", ""))
        weight = operation.number("weight", 0)
        kind = _KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            notes.append(f"workload: op {name!r} of weight {weight:g} has no equivalent, left out")
            continue
        mix[kind] = mix.get(kind, 0) + weight
        paths.setdefault(kind, set()).add(place)
        if kind == "put":
            written.append(_alike(operation, weight, "object_size", notes))
    if not any(mix.values()):
        raise fields.refused(
            "no operation of this workload has an equivalent here",
            hint=f"converted are {', '.join(_KINDS)}, of a weight above 0",
        )
    for kind, paths_of_kind in paths.items():
        if len(paths_of_kind) > 1:
            notes.append(
                f"workload: {len(paths_of_kind)} paths of {kind} become one set of objects"
            )
    return mix, written


def _prepared(fields: Fields, prepared: Sequence[Fields], notes: list[str]) -> list[_Set]:
    """Return the sets of objects; a set without any stands for the files of a directory tree."""
    tree = _files(fields)
    if tree:
        notes.append(f"prepare.directory_structure: its {tree} files are objects of the functions")
    sizes = _sizes(fields, "prepare.file_size")
    sets = []
    for table in prepared:
        table.take("base_uri")
        number = table.count("count", 1, least=0) or tree
        sets.append(_alike(table, number, "min_size", notes, sizes=sizes))
    return [table for table in sets if table.weight]


def _files(fields: Fields) -> int:
    """Return the number of files in a directory tree: in the last level, or in all."""
    tree = "prepare.directory_structure"
    width, depth, files = (
        fields.count(f"{tree}.{key}", 0, least=0) for key in ("width", "depth", "files_per_dir")
    )
    if depth > _MAX_DEPTH or max(width, files) > _MAX_WIDTH:
        raise fields.refused(f"{tree} has more files than a job may have objects")
    has_all = fields.take(f"{tree}.distribution", "bottom") == "all"
    return files * sum(int(width**level) for level in range(1 if has_all else depth, depth + 1))


def _alike(
    fields: Fields, weight: float, fixed: str, notes: list[str], *, sizes: str | None = None
) -> _Set:
    """Return a set of objects.

    Parameters
    ----------
    fixed
        Key of the size of objects without a distribution.
    sizes
        Distribution of objects without either.
    """
    own = _sizes(fields, "size_spec") or _sizes(fields, "size_distribution")
    sizes = own or (None if fields.has(fixed) else sizes)
    if sizes is None:
        if fixed == "object_size" and not fields.has(fixed):
            notes.append(f"workload: a put has no {fixed}; it writes 1 MiB here")
        low = fields.size(fixed, _SIZE)
        high = fields.size("max_size", low)
        sizes = f"uniform:{low}:{high}" if low < high else f"{high}"
    try:
        sizes = str(parse_sizes(sizes))
    except UsageError as exc:
        raise fields.refused(str(exc), hint=exc.hint) from exc
    return _Set(
        weight=weight,
        sizes=sizes,
        compressibility=_factor(fields, "compress_factor", MAX_COMPRESSIBILITY, notes),
        duplication=_factor(fields, "dedup_factor", MAX_DUPLICATION, notes),
    )


def _factor(fields: Fields, key: str, most: float, notes: list[str]) -> float:
    factor = fields.number(key, 1)
    if factor > most:
        notes.append(f"{key}: {factor:g} becomes {most:g}, the most there is here")
    return max(1.0, min(factor, most))


def _sizes(fields: Fields, key: str) -> str | None:
    """Return the distribution below a key, or None."""
    if fields.has(key):
        return str(fields.size(key, _SIZE))
    kind = fields.take(f"{key}.type", fields.take(f"{key}.dist"))
    if kind is None:
        return None

    def size(name: str, default: int) -> int:
        return fields.size(f"{key}.{name}", default)

    match kind:
        case "fixed":
            return f"{size('size', _SIZE)}"
        case "uniform":
            return f"uniform:{size('min', 1024)}:{size('max', MIB)}"
        case "lognormal":
            mean = size("mean", MIB)
            # Its distribution is unbounded, but a bound is required; 1000 means is beyond all
            # samples.
            return (
                f"lognormal:{mean}:{size('std_dev', mean)}:{size('min', 1)}:"
                f"{size('max', 1000 * mean)}"
            )
        case _:
            raise fields.wrong(f"{key}.type", kind, "fixed, uniform or lognormal")


def _payload(sets: Sequence[_Set], notes: list[str]) -> Settings:
    """Return the settings for the sizes and bytes of all sets together."""
    if not sets:
        return sized(parse_sizes(f"{_SIZE}"))
    factors: Settings = {}
    for name in ("compressibility", "duplication"):
        values = list(dict.fromkeys(getattr(objects, name) for objects in sets))
        if len(values) > 1:
            values_text = ", ".join(f"{value:g}" for value in values)
            notes.append(f"{name} of {values_text}: the first one holds for all objects")
        factors[name] = values[0] if values[0] > 1 else None
    if len(_same(sets)) == 1:
        text = sets[0].sizes
    else:
        pairs = [(parse_sizes(objects.sizes), objects.weight) for objects in sets]
        if not all(isinstance(sizes, Fixed) for sizes, _ in pairs):
            notes.append("sizes: of several distributions, the mean of each")
        buckets = ",".join(f"{round(sizes.mean())}={weight:g}" for sizes, weight in pairs)
        text = str(parse_sizes(f"buckets:{buckets}"))
    return {**sized(parse_sizes(text)), **factors}


def _same(sets: Iterable[_Set]) -> set[str]:
    return {objects.sizes for objects in sets}


def _rate(fields: Fields) -> Settings:
    """Return the settings of an open loop; 0 and max mean a closed loop."""
    distribution = fields.take("io_rate.distribution", "exponential")
    if fields.take_if("io_rate.iops", "max"):
        return {}
    rate = fields.number("io_rate.iops", 0)
    if not rate:
        return {}
    if not isinstance(distribution, str) or distribution not in _ARRIVALS:
        raise fields.wrong("io_rate.distribution", distribution, f"one of {', '.join(_ARRIVALS)}")
    return {"rate": rate, "arrivals": _ARRIVALS[distribution]}


def _ranges(fields: Fields, notes: list[str]) -> Settings:
    """Return the settings of the range engine, which requests each object's size first."""
    enabled = fields.flag("range_engine.enabled")
    chunk = fields.size("range_engine.chunk_size", _CHUNK)
    ranges = fields.count("range_engine.max_concurrent_ranges", _RANGES)
    least = fields.size("range_engine.min_split_size", _MIN_SPLIT)
    timeout = fields.number("range_engine.range_timeout_secs", 0)
    before = fields.flag("pre_stat_and_cache") | fields.flag("range_engine.pre_stat_and_cache")
    if not enabled:
        return {"stat": "before" if before else None}
    parts, part_notes = part_size(chunk, "range_engine.chunk_size")
    notes += (*part_notes, "range_engine: part-size and connections hold for uploads, too")
    return {
        **parts,
        "connections": ranges,
        "min-split-size": size_text(least),
        "stat": "before" if before else "each",
        "timeout": timeout or None,
    }


def _target(fields: Fields, notes: list[str]) -> Settings:
    endpoints = fields.listed("multi_endpoint.endpoints")
    if (strategy := fields.take("multi_endpoint.strategy", "round_robin")) != "round_robin":
        notes.append(f"multi_endpoint.strategy: {strategy!r}; functions take turns here")
    base = fields.take("target") or next(iter(endpoints), None)
    if base is None:
        notes.append("no target: the job runs against the embedded store")
        return {}
    if not str(base).startswith("s3://"):
        notes.append(f"target: {base} is not on S3; name a --bucket, or try the embedded store")
        return {}
    host, bucket, prefix = _located(str(base))
    if not bucket:
        raise fields.wrong("target", base, "a bucket, as in s3://bucket/prefix/")
    hosts = [
        endpoint_host for endpoint in endpoints if (endpoint_host := _located(str(endpoint))[0])
    ] or [host]
    if hosts[0]:
        notes.append(f"target: {hosts[0]} is taken to speak http; write https if it does not")
    return {
        "bucket": bucket,
        "endpoint-url": ",".join(f"http://{endpoint_host}" for endpoint_host in hosts)
        if hosts[0]
        else None,
        "prefix": f"{prefix}/" if prefix else None,
    }


def _located(uri: str) -> tuple[str, str, str]:
    """Return host, bucket and prefix of ``s3://[host:port/]bucket/prefix/``."""
    first, _, path = uri.removeprefix("s3://").partition("/")
    if ":" not in first:
        return "", first, path.strip("/")
    bucket, _, prefix = path.strip("/").partition("/")
    return first, bucket, prefix
