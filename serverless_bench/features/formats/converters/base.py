"""Types that all converters share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from serverless_bench.features.stages.job_file import JobFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """A job file, and notes on its differences from the original."""

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
            If the file is not a configuration of the tool, or has a field without equivalent.
        PluginError
            If PyYAML is not installed.
        """
