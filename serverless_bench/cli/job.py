"""Shared code of the commands that run a job: from flags to a job, from a job to a report."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.user_files import refusing
from serverless_bench.cli.flags.after_run import AFTER_RUN
from serverless_bench.cli.flags.of_jobs import job_options, report_options
from serverless_bench.cli.flags.options import group
from serverless_bench.cli.output.terminal import complain, note, say
from serverless_bench.cli.process import load_numpy
from serverless_bench.driver.policy import Style
from serverless_bench.job.abilities import ReadsFiles, RunsCode
from serverless_bench.job.workload import open_workload
from serverless_bench.report import FOR_TERMINALS, Reporter, open_reporter, write_report

if TYPE_CHECKING:
    from serverless_bench.driver.checked_job import CheckedJob
    from serverless_bench.driver.task import CostLimit, Task
    from serverless_bench.job.spec import JobSpec
    from serverless_bench.job.target import Target
    from serverless_bench.rundir.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Flags of a command that are not settings of the job, by parameter name."""

    run_dir: Path
    format: str | None
    """Name of the reporter; None for no report."""
    key_file: Path | None = None
    """File to write the keys to."""
    max_cost: float | None = None
    prices: Path | None = None
    progress: Style = "auto"
    more: Mapping[str, Any] = field(default_factory=dict)
    """Values of flags for further results, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Job with checked flags, before the store is started."""

    checked: "CheckedJob"
    output: Output
    cost: "CostLimit"
    reporter: Reporter | None

    def task(self) -> "Task":
        """Return the job as a task that can run repeatedly."""
        _load_numpy(self.job)
        from serverless_bench.driver.task import Task

        return Task(
            job=self.job,
            keys=self.keys,
            place=self.checked.placed,
            cost=self.cost,
            progress=self.output.progress,
        )

    @property
    def job(self) -> "JobSpec":
        """Job with the address from the flags in the target."""
        return self.checked.job

    @property
    def keys(self) -> Sequence[str]:
        """Keys of the objects to read."""
        return self.checked.keys

    @property
    def directory(self) -> Path:
        """The run directory."""
        return self.output.run_dir / self.job.name

    @property
    def quiet(self) -> bool:
        """Whether standard output is reserved for the report."""
        return self.output.format not in FOR_TERMINALS


def prepare(workload: str, flags: Mapping[str, Any], keys: Sequence[str] | None = None) -> Prepared:
    """Check the flags of a command before it starts a store or functions.

    Parameters
    ----------
    workload
        Same as in ``JobSpec``.
    flags
        Settings of the job and fields of ``Output``, by parameter name.
    keys
        Keys of the objects to read, which replace the keys from the flags.

    Raises
    ------
    UsageError
        If a flag is invalid.
    PluginError
        If a client, executor or reporter is unknown, or its library is not installed.
    """
    from serverless_bench.driver.checked_job import check_job
    from serverless_bench.job.settings import setting_names

    declared = open_workload(workload)
    if isinstance(declared, RunsCode):
        function = TOOLS.load("load-function")(flags["code"])
        flags = {**flags, "code": TOOLS.load("pack-function")(function)}
    if isinstance(declared, ReadsFiles):
        flags, notes = declared.with_files(flags, open_text)
        note(notes)
    output = _output(flags)
    settings = {name: flags[name] for name in setting_names(workload) if name in flags}
    if output.format is not None and settings.get("name"):
        from serverless_bench.rundir.listing import refuse_used

        refuse_used(output.run_dir / settings["name"])
    paths = {name: str(value) for name, value in settings.items() if isinstance(value, Path)}
    checked_job = check_job({**settings, **paths, "workload": workload}, keys)
    if "key_file" in settings and not (
        declared.source and not declared.reads(checked_job.job.load)
    ):
        # The setting of a job that reads: the keys of the objects to read.
        output = replace(output, key_file=None)
    check_writable("--key-file", output.key_file)
    # Import libraries only now, so that the message for an invalid flag does not wait for them.
    from serverless_bench.driver.task import CostLimit

    cost = CostLimit()
    if output.max_cost is not None or output.prices is not None:
        check_limit = TOOLS.load("cost-limit")
        cost = check_limit(checked_job.job.executor, max_cost=output.max_cost, prices=output.prices)
    reporter = None
    if output.format is not None:
        _load_numpy(checked_job.job)
        reporter = open_reporter(output.format)
    for name, value in output.more.items():
        AFTER_RUN.load(name).check(value, checked_job.job)
    return Prepared(
        checked=checked_job,
        output=output,
        cost=cost,
        reporter=reporter,
    )


@contextmanager
def open_text(path: object) -> Iterator[IO[str]]:
    """Yield the text of a user's file, or standard input if the path is ``-``."""
    with (
        refusing(Path(str(path))),
        click.open_file(str(path), encoding="utf-8", errors="surrogateescape") as file,
    ):
        yield file


def _load_numpy(job: "JobSpec") -> None:
    """Import NumPy without threads, unless the user's function in this process may use them."""
    from serverless_bench.executors import info_of

    if not isinstance(job.declared, RunsCode) or not info_of(job.executor).in_process:
        load_numpy()


def _output(flags: Mapping[str, Any]) -> Output:
    """Return the checked output flags."""
    from serverless_bench.job.setting_schema import checked, converted

    given = {name: flags[name] for name in Output.__slots__ if name in flags}
    asked = {name: flags[name] for name in AFTER_RUN if flags.get(name) is not None}
    more = {name: converted(AFTER_RUN.load(name).kind, name, asked[name]) for name in asked}
    return Output(
        **{name: checked(Output, name, value) for name, value in given.items()},
        more={name: value for name, value in more.items() if value},
    )


def job_command(
    workload: str,
    text: str,
    *more: Callable[[Any], Any],
    further_results: bool = True,
    **what: str,
) -> click.Command:
    """Return a command that runs a workload and reports on it.

    Parameters
    ----------
    workload
        Name of the workload and of the command.
    text
        Help text of the command.
    more
        Decorators for flags and arguments in addition to the flags of the job.
    further_results
        Whether the command has the flags of features for further results of a run.
    what
        Help texts of flags, same as for ``of_jobs.settings``.
    """

    @click.command(workload, help=text)
    @group(*more, *([report_options] if further_results else []))
    @job_options(workload, **what)
    def command(**flags: Any) -> int:
        return run(prepare(workload, flags))

    return command


def run(prepared: Prepared) -> int:
    """Run a job on the target, report on it, write the keys, and return the exit code."""
    with prepared.checked.open_target() as target:
        result, exit_code = perform(prepared, target)
    if prepared.output.key_file is not None:
        from serverless_bench.rundir.files import write_key_file

        write_key_file(prepared.output.key_file, result.keys())
    return exit_code


def perform(prepared: Prepared, target: "Target") -> "tuple[Run, int]":
    """Run a job and report on it; print the run directory before the job starts.

    Returns
    -------
    Run, int
        The run and the exit code.
    """
    from serverless_bench.driver.task import Listener, make_run
    from serverless_bench.metrics.summary import summarize
    from serverless_bench.report.pace import dropped

    job, keys, output = prepared.checked.at(target), prepared.keys, prepared.output

    def name_directory() -> None:
        if prepared.reporter is not None:
            say(f"run directory: {prepared.directory}", err=prepared.quiet)

    listener = Listener(note=note, begin=name_directory)
    run, problem = make_run(prepared.task(), job, prepared.directory, listener)
    summary = summarize(run, prices=prepared.cost.prices)
    if prepared.reporter is not None:
        write_report(prepared.reporter, summary, run, sys.stdout)
        sys.stdout.flush()
        note(dropped(summary) if prepared.quiet else ())
    for name, value in output.more.items():
        if line := AFTER_RUN.load(name).make(value, run, keys, summary, is_whole=problem is None):
            say(line, err=prepared.quiet)
    return run, summary.exit_code() if problem is None else complain(problem)


def check_writable(flag: str, path: Path | None) -> None:
    """Check that a file can be written, before the run rather than after it.

    Raises
    ------
    UsageError
        If the directory of the file does not exist or is not writable, or the path is a link.
    """
    if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {flag} {path}", hint="name a file in a writable directory")
    from serverless_bench.rundir.files import STREAMS

    is_odd = path is not None and (path.is_symlink() or (path.exists() and not path.is_file()))
    if is_odd and not str(path).startswith(STREAMS):
        raise UsageError(f"cannot write {flag} {path}: it is no regular file", hint="name a file")
