"""``sbench run``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.errors import INTERRUPTED, SbenchError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import format_count
from serverless_bench.cli.flags.of_jobs import common_options, settings
from serverless_bench.cli.flags.options import (
    FILE,
    check_one_document,
    new_name,
    option,
)
from serverless_bench.cli.job import prepare, run
from serverless_bench.cli.output.terminal import ExitCode, aside, complain, note, say
from serverless_bench.features.stages.job_file import JobFile, Kind, Stage, load_job_file
from serverless_bench.features.stages.series import check_unused, keep_store
from serverless_bench.job.workload import PACED

if TYPE_CHECKING:
    from serverless_bench.features.stages.prepared import PreparedStage

_REPORTED: Final = (ExitCode.INCOMPLETE, ExitCode.WITHHELD, ExitCode.CORRUPT)
"""Exit codes of completed runs with problems, the worst last."""


@click.command("run")
@click.argument("file", type=FILE, metavar="FILE.toml")
@option("--dry-run", is_flag=True, help="Show what would run, without running it.")
@option("--prefix", help="Prefix of all new keys.")
@settings(*PACED)
@common_options
def command(file: Path, *, dry_run: bool, **flags: Any) -> int:
    """Run the stages of a job file in order, each with a run directory.

    Flags on the command line override the file. A cleanup stage deletes only the objects that
    earlier stages wrote; it also runs if an earlier stage failed.
    """
    from serverless_bench.features.stages.prepared import given_flags, steps_of
    from serverless_bench.report import FOR_TERMINALS

    style = flags["format"]
    check_one_document(style)
    job = load_job_file(file)
    steps = steps_of(job, given_flags(click.get_current_context()), style=style)
    if dry_run:
        TOOLS.load("outlook")(job, steps, style)
        return ExitCode.OK
    root = flags["run_dir"] / new_name("run", flags["name"] or f"{job.name}-{utc_stamp()}")
    check_unused(root)
    with keep_store(needed=any(step.prepared.job.target.store for step in steps.values())):
        return _Progress(job, steps, root, quiet=style not in FOR_TERMINALS).run()


@dataclass(slots=True)
class _Progress:
    """Execution of the stages of a job file."""

    job: JobFile
    steps: "Mapping[str, PreparedStage]"
    root: Path
    quiet: bool = field(kw_only=True)
    """Whether standard output is reserved for the reports."""
    codes: list[int] = field(default_factory=list)
    failed: str = ""
    """Name of the first failed stage, after which only cleanups run."""
    cleaned: int = 0
    """Number of the last cleanup stage; the objects of earlier stages are deleted."""

    def run(self) -> int:
        """Run all stages and return the worst exit code."""
        for number, stage in enumerate(self.job.stages, start=1):
            cleanup = stage.kind is Kind.CLEANUP
            if self.failed and not cleanup:
                aside(f"{stage.where} is skipped: stage {self.failed!r} failed")
                continue
            title = f"stage {number} of {len(self.job.stages)}: {stage.title}"
            if cleanup and self.failed:
                title += f", although stage {self.failed!r} failed"
            say(*([""] if number > 1 else []), title, err=self.quiet)
            step = self.steps.get(stage.name)
            act = partial(self._perform, step) if step else partial(self._clean, number)
            self._survive(stage, act)
        self._note_kept_objects()
        return worst(self.codes)

    def _survive(self, stage: Stage, act: Callable[[], int]) -> None:
        """Run a stage, and catch its errors so that the cleanups still run."""
        # A run with a withheld headline has still written its objects, and after a stage that
        # only executes, even a run with problems need not stop the stages that follow.
        allowed: tuple[int, ...] = (ExitCode.OK, ExitCode.WITHHELD)
        if stage.kind is Kind.EXECUTE:
            allowed = (ExitCode.OK, *_REPORTED)
        try:
            code = act()
        except SbenchError as exc:
            code, allowed = complain(exc, f"{stage.where}: "), ()
        except KeyboardInterrupt:
            aside(f"sbench: {stage.where}: interrupted")
            code, allowed = INTERRUPTED, ()
        self.codes.append(code)
        if stage.kind is not Kind.CLEANUP and code not in allowed:
            self.failed = self.failed or stage.name

    def _perform(self, step: "PreparedStage") -> int:
        from serverless_bench.driver.checked_job import read_keys

        source = self.steps.get(step.stage.keys or "")
        keys = None if source is None else read_keys(self.root / source.folder / "keys.txt")
        flags = {**step.flags, "run_dir": self.root, "name": step.folder}
        return run(prepare(step.prepared.job.workload, flags, keys))

    def _clean(self, until: int) -> int:
        """Delete the objects of the stages before number ``until``."""
        from serverless_bench.driver.clean import clean

        code = ExitCode.OK
        for step in self._written(until):
            cleaned = clean(self.root / step.folder, on_message=aside)
            if cleaned.wrote_nothing:
                continue
            say(
                f"deleted {format_count(cleaned.deleted.objects, 'object')} of {step.stage.where}",
                err=self.quiet,
            )
            aside(*cleaned.complaints())
            if not cleaned.complete:
                code = ExitCode.INCOMPLETE
        self.cleaned = until
        return code

    def _written(self, until: int) -> "Iterator[PreparedStage]":
        before = (step for step in self.steps.values() if step.number < until)
        yield from (step for step in before if (self.root / step.folder / "run.json").exists())

    def _note_kept_objects(self) -> None:
        from serverless_bench.rundir.listing import as_argument
        from serverless_bench.rundir.run import load_run

        for step in self._written(len(self.job.stages) + 1):
            run = load_run(self.root / step.folder, detail=False)
            if step.number >= self.cleaned and (run.ledger() or run.job.load.folder is not None):
                name = as_argument(run.path)
                note([f"objects of {step.stage.where} are kept; sbench clean {name}"])


def worst(codes: Sequence[int]) -> int:
    """Return the worst exit code, as docs/exit-codes.md defines it."""
    # Errors that cut a stage short take precedence over problems in a report.
    whole = (ExitCode.OK, *_REPORTED)
    short = [code for code in codes if code not in whole]
    return max(short) if short else max(codes, key=whole.index, default=ExitCode.OK)
