"""Common parts of converters: access to YAML that reports all unused entries."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from serverless_bench.errors import UsageError
from serverless_bench.job.sizes import Sizes, size_text
from serverless_bench.job.transfer import MAX_PART_BYTES, MIN_PART_BYTES
from serverless_bench.settings.job_file import JobFile, Kind, Setting, Stage
from serverless_bench.units import format_size, parse_duration, parse_size

_LONG_S: Final = 600.0
"""Runs above this need a later deadline than the 900 s that a function has."""
_SECRET: Final = re.compile(r"secret|password|token|credential|access.?key|env\b", re.IGNORECASE)
_SHOWN: Final = 80
"""Maximum length of a value in a note."""
_SPACES: Final = re.compile(r"[^A-Za-z0-9._-]+")


Settings = dict[str, Setting | None]
"""Settings of a stage or a target; None omits a setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A job file, and notes on the parts of the original that it lacks."""

    job: JobFile
    notes: tuple[str, ...]
    """Notes, one line each."""


class Converter(Protocol):
    """A function that converts a tool's configuration into a job file."""

    def __call__(self, path: Path, *, threads: int) -> Converted:
        """Return the job of a file.

        Parameters
        ----------
        path
            The configuration.
        threads
            Number of operations in flight per function.

        Raises
        ------
        UsageError
            If the file is not a configuration of the tool, or has an essential part without
            equivalent.
        PluginError
            If PyYAML is not installed.
        """


class Fields:
    """A flat mapping of a configuration that tracks which entries have been used.

    Parameters
    ----------
    path
        The file, for messages.
    data
        The mapping.
    where
        Prefix of all keys in messages.
    """

    def __init__(self, path: Path, data: Mapping[str, Any], where: str = "") -> None:
        self._path = path
        self._where = where
        self._left = dict(_flat(data, where))

    def has(self, key: str) -> bool:
        """Return whether an entry is set that has not been used yet."""
        return self._where + key in self._left

    def take(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - whatever YAML has
        """Return the value of a key, and mark it as used."""
        return self._left.pop(self._where + key, default)

    def take_if(self, key: str, value: object) -> bool:
        """Return whether a key has a value, and mark it as used only in this case."""
        return self._left.get(self._where + key) == value and self.take(key) == value

    def number(self, key: str, default: float) -> float:
        """Return a number that is not negative.

        Raises
        ------
        UsageError
            If the value is not such a number.
        """
        value = self.take(key, default)
        # sai3-bench allows separators: count: "64,032,768".
        plain = re.sub(r"[,_ ]", "", value) if isinstance(value, str) else value
        try:
            number = float("nan" if isinstance(plain, bool) else plain)
        except (TypeError, ValueError):
            number = -1.0
        if not 0 <= number < float("inf"):
            raise self.wrong(key, value, "a number")
        return number

    def listed(self, key: str) -> list[Any]:
        """Return a list, empty if the key is not set.

        Raises
        ------
        UsageError
            If the value is not a list.
        """
        value = self.take(key) or []
        if not isinstance(value, list):
            raise self.wrong(key, value, "a list")
        return value

    def count(self, key: str, default: int, *, least: int = 1) -> int:
        """Return a whole number from ``least`` on.

        Raises
        ------
        UsageError
            If the value is not such a number.
        """
        value = self.number(key, default)
        if value < least or value != int(value):
            raise self.wrong(key, f"{value:g}", f"a whole number from {least} on")
        return int(value)

    def flag(self, key: str) -> bool:
        """Return whether an option is on.

        Raises
        ------
        UsageError
            If the value is neither true nor false.
        """
        value = self.take(key, False)  # noqa: FBT003 - the default
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def size(self, key: str, default: int) -> int:
        """Return a size in bytes.

        Raises
        ------
        UsageError
            If the value is not a size.
        """
        value = self.take(key, default)
        try:
            return parse_size(str(value))
        except UsageError as exc:
            raise self.wrong(key, value, "a size") from exc

    def seconds(self, key: str, default: float) -> float:
        """Return a duration in seconds.

        Raises
        ------
        UsageError
            If the value is not a duration, or is 0.
        """
        value = self.take(key, default)
        with suppress(UsageError):
            if seconds := parse_duration(str(value)):
                return seconds
        raise self.wrong(key, value, "a duration, as in 90s or 5m")

    def wrong(self, key: str, value: object, expected: str) -> UsageError:
        """Return the error for an invalid value."""
        return UsageError(f"{self._path}: {self._where}{key} is {value!r}, not {expected}")

    def refused(self, problem: str, *, hint: str = "") -> UsageError:
        """Return the error for a file that cannot be converted."""
        place = f"{self._where.rstrip('.')}: " if self._where else ""
        return UsageError(f"{self._path}: {place}{problem}", hint=hint)

    def rest(self, idle: Mapping[str, object] | None = None) -> Iterator[str]:
        """Yield a line for each unused entry.

        Parameters
        ----------
        idle
            Values without effect, by key, which are omitted, like false, zero, null and empty text.
        """
        for key, value in self._left.items():
            if value and value != (idle or {}).get(key.removeprefix(self._where)):
                text = "a secret" if _SECRET.search(key) else repr(value)
                shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
                yield f"{key}: {shown} has no equivalent and is dropped"


def in_flight(operations: int, threads: int) -> Settings:
    """Return the settings for a number of operations in flight that start together."""
    number = -(-operations // threads)
    return {
        "number": number,
        "concurrency": number,
        "threads": min(threads, operations) if threads > 1 else None,
        "gate": 1.0 if number > 1 else None,
    }


def lasting(duration_s: float) -> Settings:
    """Return the settings for a run with this duration."""
    # Preceding work, such as creating the objects, also takes time.
    deadline_s = 2 * duration_s + _LONG_S
    return {"duration": duration_s, "deadline": deadline_s if duration_s > _LONG_S else None}


def shares(objects: int, operations: int, threads: int) -> int:
    """Return the number of objects per function for ``objects`` in total."""
    return max(threads, -(-objects // -(-operations // threads)))


def sized(sizes: Sizes) -> Settings:
    """Return the setting for sizes: a distribution, or a single size."""
    text = str(sizes)
    return {"sizes" if ":" in text else "size": text}


def part_size(size_bytes: int, key: str) -> tuple[Settings, tuple[str, ...]]:
    """Return the setting for parts or ranges of a size, and a note if the size is adjusted."""
    size = min(MAX_PART_BYTES, max(MIN_PART_BYTES, size_bytes))
    note = f"{key}: {size_bytes} bytes become {format_size(size)}; parts here have 5 MiB to 5 GiB"
    return {"part-size": size_text(size)}, () if size == size_bytes else (note,)


def weights(mix: Mapping[str, float]) -> str:
    """Return a mix in the format of the flag."""
    return ",".join(f"{name}={weight:g}" for name, weight in mix.items() if weight > 0)


def stage_of(name: str, workload: str, settings: Settings) -> Stage:
    """Return a stage with the settings that are not None."""
    return Stage(name=name, kind=Kind.EXECUTE, workload=workload, settings=_without_none(settings))


def job_of(
    path: Path, stage: Stage, *, target: Settings, clean: bool, notes: Iterable[str]
) -> Converted:
    """Return a job file with a stage, and with a cleanup if the original has one."""
    stages = (stage, Stage(name="cleanup", kind=Kind.CLEANUP)) if clean else (stage,)
    name = _SPACES.sub("-", path.stem).strip("-._")[:64] or "converted"
    job = JobFile(name=name, target=_without_none(target), stages=stages, path=path)
    return Converted(job=job, notes=tuple(notes))


def _without_none(settings: Settings) -> dict[str, Setting]:
    return {name: value for name, value in settings.items() if value is not None}


def _flat(data: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{where}{key}.")
        elif value is not None:
            yield f"{where}{key}", value
