"""A command of the user's that makes one run."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT
from typing import Final

from serverless_bench.analysis.samples import MeasuredRun, measured_run
from serverless_bench.errors import UsageError
from serverless_bench.rundir.run import load_run
from serverless_bench.series.runs import JobSeries
from serverless_bench.series.task import CutOff

_HINT: Final = "a command is like '.venv/bin/sbench write --number 4', and leaves --run-dir to us"


def words_of(command: str, name: str) -> tuple[str, ...]:
    """Return the words of a command.

    Parameters
    ----------
    command
        As a shell would read it; nothing in it is expanded.
    name
        What an error calls it.

    Raises
    ------
    UsageError
        If it has none, or a quotation without an end.
    """
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise UsageError(f"{name} is no command: {exc}", hint=_HINT) from None
    if not words:
        raise UsageError(f"{name} is missing", hint=_HINT)
    return tuple(words)


def run_command(series: JobSeries, command: Sequence[str], folder: Path) -> MeasuredRun:
    """Run a command, and return the run that it made below the folder.

    Its objects are deleted unless they are kept.

    Raises
    ------
    UsageError
        If it cannot be started, fails without a run, or makes another number of runs than one.
    CutOff
        If its run did not come to a good end.
    """
    before = _runs(folder)
    try:
        code, last = _started(command, folder)
        made = sorted(_runs(folder) - before)
        if code > 0 and len(made) == 1:
            raise CutOff(made[0], code)
        if code:
            raise UsageError(f"{shlex.join(command)} ended with exit code {code}: {last}")
        if len(made) != 1:
            raise UsageError(
                f"{shlex.join(command)} made {len(made)} runs in {folder}, and is to make one",
                hint="it finds the directory in SBENCH_RUN_DIR; " + _HINT,
            )
        return measured_run(load_run(made[0], detail=False))
    finally:
        for directory in _runs(folder) - before:
            series.delete(directory)


def _runs(folder: Path) -> set[Path]:
    return {header.parent for header in folder.glob("*/run.json")}


def _started(command: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run a command to its end; return its exit code and the last line of its standard error."""
    environment = {**os.environ, "SBENCH_RUN_DIR": str(folder.absolute())}
    # Ours, if anybody's: runs that come one after the other cannot have one name.
    environment.pop("SBENCH_NAME", None)
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as exc:
        raise UsageError(f"cannot start {command[0]}: {exc.strerror}", hint=_HINT) from exc
    with process:
        try:
            stderr = process.communicate()[1]
        except BaseException:
            # A run that is interrupted saves what it has.
            process.send_signal(SIGINT)
            process.wait()
            raise
    lines = [line for line in stderr.splitlines() if line.strip()]
    return process.returncode, (lines or ["it said nothing"])[-1][:500]
