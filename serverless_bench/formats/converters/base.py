"""What converters share: reading YAML so that nothing in it is passed over in silence."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from serverless_bench.errors import UsageError
from serverless_bench.job.sizes import size_text
from serverless_bench.job.transfer import MAX_PART_BYTES, MIN_PART_BYTES
from serverless_bench.settings.job_file import JobFile, Kind, Setting, Stage
from serverless_bench.units import format_size, parse_duration, parse_size

_LONG_S: Final = 600.0
"""Runs above this need a later deadline than the 900 s that a function has."""
_SECRET: Final = re.compile(r"secret|password|token|credential|access.?key|env\b", re.IGNORECASE)
_SHOWN: Final = 80
"""Characters of a value that a note shows."""
_SPACES: Final = re.compile(r"[^A-Za-z0-9._-]+")


Settings = dict[str, Setting | None]
"""Of a stage or a target; None leaves one out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A job file, and what of the original it does not say."""

    job: JobFile
    notes: tuple[str, ...]
    """One line each."""


class Converter(Protocol):
    """Turns one tool's configuration into a job file."""

    def __call__(self, path: Path, *, threads: int) -> Converted:
        """Return the job of a file.

        Parameters
        ----------
        path
            The configuration.
        threads
            How many of the operations that it wants in flight one function takes.

        Raises
        ------
        UsageError
            If the file is not that tool's, or asks for what cannot be had here at all.
        PluginError
            If PyYAML is not installed.
        """


class Fields:
    """A mapping of a configuration, flat, that knows what has been looked at.

    Parameters
    ----------
    path
        The file, for messages.
    data
        The mapping.
    where
        Goes before every key in a message.
    """

    def __init__(self, path: Path, data: Mapping[str, Any], where: str = "") -> None:
        self._path = path
        self._where = where
        self._left = dict(_flat(data, where))

    def has(self, key: str) -> bool:
        """Tell whether something is set that nobody has asked for yet."""
        return self._where + key in self._left

    def take(self, key: str, default: Any = None) -> Any:  # noqa: ANN401 - whatever YAML has
        """Return what is set at a key, and take note that somebody has asked."""
        return self._left.pop(self._where + key, default)

    def take_if(self, key: str, value: object) -> bool:
        """Tell whether a key has a value, and take it only then."""
        return self._left.get(self._where + key) == value and self.take(key) == value

    def number(self, key: str, default: float) -> float:
        """Return a number that is not negative.

        Raises
        ------
        UsageError
            If it is something else.
        """
        value = self.take(key, default)
        # sai3-bench allows separators: count: "64,032,768".
        plain = re.sub(r"[,_ ]", "", value) if isinstance(value, str) else value
        try:
            found = float("nan" if isinstance(plain, bool) else plain)
        except (TypeError, ValueError):
            found = -1.0
        if not 0 <= found < float("inf"):
            raise self.wrong(key, value, "a number")
        return found

    def listed(self, key: str) -> list[Any]:
        """Return a list, empty if there is none.

        Raises
        ------
        UsageError
            If it is something else.
        """
        value = self.take(key) or []
        if not isinstance(value, list):
            raise self.wrong(key, value, "a list")
        return value

    def count(self, key: str, default: int) -> int:
        """Return a whole number from 1 on.

        Raises
        ------
        UsageError
            If it is something else.
        """
        value = self.number(key, default)
        if value < 1 or value != int(value):
            raise self.wrong(key, f"{value:g}", "a whole number from 1 on")
        return int(value)

    def flag(self, key: str) -> bool:
        """Return whether something is switched on.

        Raises
        ------
        UsageError
            If it is neither true nor false.
        """
        value = self.take(key, False)  # noqa: FBT003 - the value without one
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def size(self, key: str, default: int) -> int:
        """Return a size in bytes.

        Raises
        ------
        UsageError
            If it is none.
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
            If it is none, or nothing.
        """
        value = self.take(key, default)
        with suppress(UsageError):
            if seconds := parse_duration(key, str(value)):
                return seconds
        raise self.wrong(key, value, "a duration, as in 90s or 5m")

    def wrong(self, key: str, value: object, what: str) -> UsageError:
        """Return the error for a value that is not what it should be."""
        return UsageError(f"{self._path}: {self._where}{key} is {value!r}, not {what}")

    def refused(self, what: str, *, hint: str = "") -> UsageError:
        """Return the error for a file that cannot be converted."""
        place = f"{self._where.rstrip('.')}: " if self._where else ""
        return UsageError(f"{self._path}: {place}{what}", hint=hint)

    def rest(self, idle: Mapping[str, object] | None = None) -> Iterator[str]:
        """Yield one line for everything that nobody has asked for.

        Parameters
        ----------
        idle
            Values that change nothing, by key, and are left out, as false, zero, nothing
            and empty text are.
        """
        for key, value in self._left.items():
            if value and value != (idle or {}).get(key.removeprefix(self._where)):
                text = "a secret" if _SECRET.search(key) else repr(value)
                shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
                yield f"{key}: {shown} has no equivalent and is left out"


def in_flight(operations: int, threads: int) -> Settings:
    """Return the settings that keep so many operations in flight, begun together."""
    number = -(-operations // threads)
    return {
        "number": number,
        "concurrency": number,
        "threads": min(threads, operations) if threads > 1 else None,
        "gate": 1.0 if number > 1 else None,
    }


def lasting(duration_s: float) -> Settings:
    """Return the settings for a run that lasts so long."""
    # What comes before it, as making the objects, takes time as well.
    deadline_s = 2 * duration_s + _LONG_S
    return {"duration": duration_s, "deadline": deadline_s if duration_s > _LONG_S else None}


def shares(objects: int, operations: int, threads: int) -> int:
    """Return how many objects each function has, so that all have ``objects`` together."""
    return max(threads, -(-objects // -(-operations // threads)))


def part_size(size_bytes: int, what: str) -> tuple[Settings, tuple[str, ...]]:
    """Return the setting for parts or ranges of a size, and a note if it is another one."""
    size = min(MAX_PART_BYTES, max(MIN_PART_BYTES, size_bytes))
    note = f"{what}: {size_bytes} bytes become {format_size(size)}; parts here have 5 MiB to 5 GiB"
    return {"part-size": size_text(size)}, () if size == size_bytes else (note,)


def weights(mix: Mapping[str, float]) -> str:
    """Return a mix as the flag takes it."""
    return ",".join(f"{name}={weight:g}" for name, weight in mix.items() if weight > 0)


def stage_of(name: str, workload: str, settings: Settings) -> Stage:
    """Return a stage with the settings that there are."""
    return Stage(name=name, kind=Kind.EXECUTE, workload=workload, settings=_there(settings))


def job_of(
    path: Path, stage: Stage, *, target: Settings, clean: bool, notes: Iterable[str]
) -> Converted:
    """Return a job file of one stage, and a cleanup if the original has one."""
    stages = (stage, Stage(name="cleanup", kind=Kind.CLEANUP)) if clean else (stage,)
    name = _SPACES.sub("-", path.stem).strip("-._")[:64] or "converted"
    job = JobFile(name=name, target=_there(target), stages=stages, path=path)
    return Converted(job=job, notes=tuple(notes))


def _there(settings: Settings) -> dict[str, Setting]:
    return {name: value for name, value in settings.items() if value is not None}


def _flat(data: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{where}{key}.")
        elif value is not None:
            yield f"{where}{key}", value
