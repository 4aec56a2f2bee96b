"""What settings stand for in a specification: their texts read, their units converted."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from serverless_bench.errors import UsageError
from serverless_bench.job.defaults import DEFAULT_MB, DEFAULT_MIX
from serverless_bench.job.load import ArraySpec, Load
from serverless_bench.job.operations import MIXED
from serverless_bench.job.sizes import parse_sizes
from serverless_bench.job.transfer import Transfer
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import open_workload
from serverless_bench.settings.job import JobSettings
from serverless_bench.units import KIB, MIB, is_bare, parse_size

_MAX_DIGITS: Final = 18
"""Of a length of an array: 64 bits hold it."""


def transfer_of(settings: JobSettings) -> Transfer:
    """Return how objects are moved and checked."""
    return Transfer(
        connections=settings.connections,
        part_size=_bytes(settings.part_mb, MIB),
        block_size=round(settings.block_kib * KIB),
        verify=settings.verify,
        retries=settings.retries,
        timeout=settings.timeout,
        min_split_size=_bytes(settings.min_split_mb, MIB),
        stat=settings.stat,
    )


def load_of(settings: JobSettings) -> Load:
    """Return what the settings say of a function's operations."""
    about = open_workload(settings.workload).about
    return Load(
        threads=settings.threads,
        rate=settings.rate,
        arrivals=settings.arrivals,
        # The text that the functions get needs no file.
        sizes=None if settings.sizes is None else str(parse_sizes(settings.sizes)),
        layout=settings.layout,
        compressibility=settings.compressibility,
        duplication=settings.duplication,
        mix=_mix(settings.mix) if about == "mix" else (),
        operations=settings.operations,
        split=settings.split,
        range_size=round(settings.range_kib * KIB),
        pattern=settings.pattern if about == "pattern" else None,
        backoff=settings.backoff,
        array=array_of(settings) if about == "array" else None,
        code=settings.code,
    )


def array_of(settings: JobSettings) -> ArraySpec:
    """Return the array that a library writes, appends to or reads."""
    if settings.operation is None:
        raise wrong("operation", "is missing", hint='as in operation = "write"')
    return ArraySpec(
        operation=settings.operation,
        shape=_lengths("shape", settings.shape),
        chunks=_lengths("chunks", settings.chunks),
        shards=None if settings.shards is None else _lengths("shards", settings.shards),
        path=None if settings.path is None else str(Path(settings.path).absolute()),
        library_option=tuple(
            (name.replace("-", "_"), value)
            for name, value in named_values("library_option", settings.library_option)
        ),
        library=settings.library,
        driver=settings.driver,
        dtype=settings.dtype,
        codec=settings.codec,
        source=settings.source,
    )


def object_bytes_of(settings: JobSettings) -> int | None:
    """Return the bytes of a new object; None if they are drawn, or if none is made."""
    given = (settings.mb, settings.size, settings.sizes)
    workload = open_workload(settings.workload)
    if "size" not in workload.settings or not (workload.needs_size or any(given)):
        return None
    if settings.sizes is None:
        return object_size(settings.mb, settings.size)
    if settings.mb is not None or settings.size is not None:
        raise UsageError("`sizes` comes in place of `mb` and `size`", hint="give one of them")
    return None


def object_size(mb: int | None, size: str | None) -> int:
    """Return the bytes of an object.

    Raises
    ------
    UsageError
        If both settings are given, or the one that is given names no size.
    """
    if mb is not None and size is not None:
        raise UsageError("`mb` and `size` both give the size of an object", hint="use one")
    if size is not None:
        if is_bare(size) and float(size) < KIB:
            raise wrong(
                "size",
                f"{size} has no unit",
                hint=f"`size` {size}MiB, or `size` {size}B for bytes",
            )
        return parse_size(size)
    mb = DEFAULT_MB if mb is None else mb
    if mb < 1:
        raise wrong("mb", f"must be at least 1, got {mb}", hint="`size` takes smaller ones")
    return mb * MIB


def named_values(
    setting: str, given: str | Sequence[str] | Mapping[str, str | int | float | bool]
) -> tuple[tuple[str, str], ...]:
    """Return the values of a setting of several ``NAME=VALUE``, in the order given."""
    if isinstance(given, Mapping):
        # TOML and Python have true, where the libraries' options are texts.
        return tuple(
            (name, str(value).lower() if isinstance(value, bool) else str(value))
            for name, value in given.items()
        )
    found: dict[str, str] = {}
    for text in (given,) if isinstance(given, str) else given:
        name, _, value = text.partition("=")
        if not name or not value:
            missing = "value" if name else "name"
            raise wrong(
                setting,
                f"{text!r} is not NAME=VALUE: it has no {missing}",
                hint=f"as in `{setting}` NAME=VALUE",
            )
        if name in found:
            raise wrong(setting, f"gives {name} twice", hint="give it once")
        found[name] = value
    return tuple(found.items())


def _mix(mix: str | Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return the weights by kind of operation."""
    known, found = {kind.value for kind in MIXED}, {}
    text = mix if isinstance(mix, str) else ",".join(f"{n}={w}" for n, w in mix.items())
    for piece in text.split(","):
        name, _, weight = (part.strip() for part in piece.partition("="))
        try:
            value = float(weight)
        except ValueError:
            value = -1.0
        if name not in known or name in found or not 0 <= value < float("inf"):
            raise wrong(
                "mix",
                f"{text!r}: {piece!r} is no kind and its weight",
                hint=f"as in {DEFAULT_MIX}; kinds: {', '.join(sorted(known))}, each once",
            )
        found[name] = value
    if not sum(found.values()):
        raise wrong("mix", f"{text!r} has no weight above 0")
    return tuple((name, weight) for name, weight in found.items() if weight)


def _lengths(name: str, lengths: str | tuple[int, ...]) -> tuple[int, ...]:
    if not isinstance(lengths, str):
        return lengths
    parts = [part.strip() for part in lengths.split(",")]
    if not all(part.isdecimal() and len(part) <= _MAX_DIGITS for part in parts):
        raise wrong(name, f"{lengths!r} is no shape", hint="write it as in 4096,4096")
    return tuple(map(int, parts))


def _bytes(count: float | None, unit: int) -> int | None:
    return None if count is None else round(count * unit)
