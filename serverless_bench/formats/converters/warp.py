"""Converter of configurations for ``warp run`` (MinIO warp, ``cli/run.go`` and ``yml-samples``).

warp keeps a number of operations in flight from a single program. Here, the same number of
functions run operations in sequence, unless ``threads`` puts more of them into a function.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

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
from serverless_bench.job.sizes import parse_sizes, size_text
from serverless_bench.settings.job_file import Stage
from serverless_bench.units import MIB, format_size

_DURATION_S: Final = 300.0
_CONCURRENT: Final = 20
_BUCKET: Final = "warp-benchmark-bucket"
"""Defaults in ``cli/benchmark.go`` and ``cli/flags.go`` of warp."""
_SECTIONS: Final = ("io", "remote", "params", "advanced")
"""Sections with keys that count as top-level keys (``parseDoc`` in ``cli/run.go``)."""
_IDLE: Final[Mapping[str, object]] = {
    "host-select": "weighed",
    "sndbuf": 32768,
    "rcvbuf": 32768,
    "autoterm.dur": "10s",
    "autoterm.pct": 7.5,
    "obj.generator": "random",
    "obj.versions": 1,
    "bucket": _BUCKET,
    "signature": "S3V4",
}
"""Defaults of warp and of the samples, which need no equivalent."""
_UPLOAD_PART_BYTES: Final = 16 * MIB
"""Size above which minio-go, used by warp, uploads in parts (its ``minPartSize``)."""
_PUT_OBJECTS: Final = 100
"""Number of objects of each function that only writes."""
_RANGE: Final = re.compile(r"\{(\d{1,9})\.\.\.(\d{1,9})\}")
_MAX_HOSTS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Benchmark:
    """A benchmark of warp, with the defaults."""

    mix: Mapping[str, float]
    """Weights of operations; empty for the benchmark that only writes."""
    objects: int = 2500
    size: str = "10MiB"
    note: str = ""


_BENCHMARKS: Final[Mapping[str, _Benchmark]] = {
    "mixed": _Benchmark(mix={"get": 45, "head": 30, "put": 15, "delete": 10}),
    "get": _Benchmark(mix={"get": 1}),
    "put": _Benchmark(
        mix={},
        note=f"put: warp writes new keys all the time; here each function has {_PUT_OBJECTS}"
        " places, and writes them over and over",
    ),
    "delete": _Benchmark(
        mix={"delete_many": 1},
        objects=25_000,
        size="1KiB",
        note="delete: warp ends when all objects are gone; here a function without objects"
        " writes one",
    ),
    "list": _Benchmark(
        mix={"list": 1},
        objects=10_000,
        size="1KB",
        note="list: warp lists the objects of each thread; here each listing begins at the"
        " prefix of all",
    ),
    "stat": _Benchmark(mix={"head": 1}, objects=10_000, size="1KB"),
}
"""Defaults in ``mixed.go``, ``get.go``, ``put.go``, ``delete.go``, ``list.go`` and ``stat.go``."""


def convert(path: Path, *, threads: int) -> Converted:
    """Return the job of a YAML file for ``warp run``; see ``Converter``."""
    document = load_yaml(path)
    body = document.get("warp")
    if not isinstance(body, dict):
        raise UsageError(
            f"{path} has no 'warp' at the top", hint="a file for `warp run` starts with warp:"
        )
    fields = Fields(path, _raised(body))
    if fields.take("api") != "v1":
        raise UsageError(f"{path}: warp.api must be v1")
    name = fields.take("benchmark")
    if not isinstance(name, str) or name not in _BENCHMARKS:
        raise UsageError(
            f"{path}: warp's benchmark {name!r} has no equivalent",
            hint=f"supported are {', '.join(_BENCHMARKS)}",
        )
    notes: list[str] = []
    target = _target(fields, notes)
    stage = _stage(name, fields, threads, notes)
    kept = fields.flag("no-clear") | fields.flag("noclear") | fields.flag("keep-data")
    notes.append("warp empties the bucket before and after; here only own objects are deleted")
    notes += fields.rest(_IDLE)
    return job_of(path, stage, target=target, clean=not kept, notes=notes)


def _raised(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body with the keys of its sections moved to the top, as warp sees them."""
    raised: dict[str, Any] = {}
    for key, value in body.items():
        if key in _SECTIONS and isinstance(value, dict):
            raised |= _raised(value)
        else:
            raised[str(key)] = value
    return raised


def _stage(name: str, fields: Fields, threads: int, notes: list[str]) -> Stage:
    benchmark = _BENCHMARKS[name]
    if benchmark.note:
        notes.append(benchmark.note)
    instances = len(_listed(fields.take("warp-client")))
    if instances:
        notes.append(f"warp-client: {instances} instances become as many times the functions")
    operations = fields.count("concurrent", _CONCURRENT) * max(1, instances)
    is_write = not benchmark.mix
    settings: Settings = {
        **in_flight(operations, threads),
        "objects": max(_PUT_OBJECTS, threads)
        if is_write
        else shares(fields.count("objects", benchmark.objects), operations, threads),
        **_sizes(fields, benchmark, notes),
        **lasting(fields.seconds("duration", _DURATION_S)),
        "mix": None if is_write else weights(_mix(name, fields, notes)),
        **_ranges(name, fields, notes),
    }
    if fields.has("rps-limit") and (rate := fields.number("rps-limit", 0)):
        settings["rate"] = rate * max(1, instances)
        notes.append("rps-limit: warp sends less when the store is slow; --rate goes on sending")
    if not fields.flag("no-prefix") | fields.flag("noprefix"):
        settings["layout"] = f"sharded:{operations}"
    return stage_of(name, "write" if is_write else "mixed", settings)


def _mix(name: str, fields: Fields, notes: list[str]) -> Mapping[str, float]:
    benchmark = _BENCHMARKS[name]
    if name == "delete" and (batch := fields.count("batch", 100)) != 10:
        notes.append(f"batch: {batch} keys at once; delete_many takes 10 here")
    if name != "mixed":
        return benchmark.mix
    keys_of_warp = {"get": "get", "head": "stat", "put": "put", "delete": "delete"}
    mix = {
        kind: fields.number(f"distribution.{warp_key}", benchmark.mix[kind])
        for kind, warp_key in keys_of_warp.items()
    }
    if not any(mix.values()):
        raise fields.wrong("distribution", 0, "a distribution: all weights are 0")
    return mix


def _ranges(name: str, fields: Fields, notes: list[str]) -> Settings:
    """Return the settings for random ranges; without range-size, warp also draws their length."""
    if name != "get":
        return {}
    ranges = fields.flag("range")
    if fields.has("range-size"):
        size = fields.size("range-size", MIB)
        return {"mix": "get_range=1", "range-size": size_text(size)}
    if ranges:
        notes.append("range: warp draws offset and length; here the length is always 1 MiB")
        return {"mix": "get_range=1"}
    return {}


def _sizes(fields: Fields, benchmark: _Benchmark, notes: list[str]) -> Settings:
    """Return the settings for sizes: SIZE, MIN,MAX, or SIZE:WEIGHT,SIZE:WEIGHT."""
    text = str(fields.take("obj.size", benchmark.size)).replace(" ", "")
    random = fields.flag("obj.rand-size") | fields.flag("obj.randsize")
    bounds = text.split(",")
    try:
        if ":" in text:
            form = _histogram(text)
            notes.append("obj.size: warp draws from the whole of each range; here its middle")
        elif not random or len(bounds) > 2:
            # Without --obj.randsize, MIN,MAX means MAX (getSize of pkg/generator/options.go).
            form = bounds[-1] if len(bounds) == 2 else text
        else:
            high = parse_sizes(bounds[-1]).maximum()
            low = parse_sizes(bounds[0]).maximum() if len(bounds) > 1 else max(128, high // 256)
            form = f"loguniform:{min(low, high)}:{high}"
        sizes = parse_sizes(form)
    except UsageError as exc:
        raise fields.wrong("obj.size", text, "a size, MIN,MAX or SIZE:WEIGHT,...") from exc
    if random and len(bounds) == 1:
        notes.append(
            "obj.rand-size: obj.size is the largest size, as in warp's README; newer versions"
            " take it as the average"
        )
    parts: Settings = {}
    if parted := fields.has("obj.part-size"):
        parts, part_notes = part_size(fields.size("obj.part-size", MIB), "obj.part-size")
        notes += part_notes
    whole = fields.flag("disable-multipart") or parted
    if not whole and sizes.maximum() > _UPLOAD_PART_BYTES:
        notes.append(
            f"objects above {format_size(_UPLOAD_PART_BYTES)}: warp uploads them in parts; here"
            " they go whole, part-size splits uploads and downloads"
        )
    return {**sized(sizes), **parts}


def _histogram(text: str) -> str:
    """Return warp's SIZE:WEIGHT,... as buckets.

    A size is the end of a range that starts at the next smaller size (``Poll`` of
    ``jfsmig/prng/histogram``), so that the middle of the range has the same mean.
    """
    bars = [bar.partition(":") for bar in text.split(",")]
    below, pairs = 0, []
    for size, weight in sorted((parse_sizes(size).maximum(), weight) for size, _, weight in bars):
        pairs.append(f"{max(1, (below + size) // 2)}={weight}")
        below = size
    return f"buckets:{','.join(pairs)}"


def _target(fields: Fields, notes: list[str]) -> Settings:
    secrets = [fields.take(key) for key in ("access-key", "secret-key", "session-token")]
    if any(secrets):
        notes.append("access-key, secret-key: put them into AWS_ACCESS_KEY_ID and so on")
    scheme = "https" if fields.flag("tls") else "http"
    all_hosts = chain.from_iterable(_expanded(host) for host in _listed(fields.take("host")))
    hosts = list(islice(all_hosts, _MAX_HOSTS + 1))
    if len(hosts) > _MAX_HOSTS:
        raise fields.refused(f"host: there are more than {_MAX_HOSTS} of them")
    bucket = fields.take("bucket") or (_BUCKET if hosts else None)
    notes.append(
        "bucket: it has to be there already"
        if bucket
        else "no host: the job runs against the embedded store"
    )
    region, prefix = fields.take("region"), fields.take("prefix")
    if fields.flag("insecure"):
        notes.append("insecure: certificates are always checked; AWS_CA_BUNDLE names your own")
    return {
        "bucket": str(bucket) if bucket else None,
        "endpoint-url": ",".join(f"{scheme}://{host}" for host in hosts) or None,
        "region": str(region) if region else None,
        "prefix": f"{str(prefix).strip('/')}/" if prefix else None,
    }


def _listed(value: object) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [part.strip() for item in values if item for part in str(item).split(",")]


def _expanded(host: str) -> Iterator[str]:
    """Yield the hosts in a range such as ``10.0.0.{1...10}:9000``."""
    match = _RANGE.search(host)
    if match is None:
        yield host
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        digits = f"{number:0{len(first)}}" if first.startswith("0") else str(number)
        yield from _expanded(host[: match.start()] + digits + host[match.end() :])
