"""``sbench scale``."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.analysis.requirements import require_scipy
from serverless_bench.cli.commands.ab import series_options
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.flags.options import FOLDER, choose_format, harmless, new_name, option
from serverless_bench.cli.job import Prepared
from serverless_bench.cli.output.pages import require_pages
from serverless_bench.cli.output.terminal import note, say
from serverless_bench.cli.task import (
    COMMANDS,
    OWN_FLAGS,
    CutOff,
    check_side_by_side,
    flags_of_job,
    job_parameters,
    prepare_task,
    run_directory,
    run_task,
    store_kept_up,
)
from serverless_bench.errors import UsageError
from serverless_bench.units import format_count, format_rate

if TYPE_CHECKING:
    from serverless_bench.analysis.samples import MeasuredRun

_DECIDED: Final = OWN_FLAGS | {"number", "concurrency", "seed"}
"""Parameters of write and read that this command has itself."""
_VARIES: Final = frozenset({"invocations", "concurrency", "bytes"})
"""Settings that differ from one number of functions to the next."""
_INCOMPLETE: Final = frozenset({ExitCode.INCOMPLETE, ExitCode.CORRUPT, ExitCode.WITHHELD})
"""Codes of runs that came to their end and still cannot stand for their number."""


@click.command("scale")
@click.argument("job", type=click.Choice(sorted(COMMANDS, reverse=True)), default="write")
@harmless("--numbers", default="1,10,30,100,300", help="Functions at once.")
@harmless("--repeats", type=int, default=3, help="Runs of each number.")
@harmless("--predict", type=int, help="Also say what so many functions would get.")
@option(
    "--report",
    type=FOLDER,
    help="Run nothing; fit the runs in this directory.",
)
@series_options
@choose_format("text", "json", "markdown", "html")
@click.pass_context
def command(
    context: click.Context,
    /,
    job: str,
    numbers: str,
    repeats: int,
    predict: int | None,
    report: Path | None,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Run a write or a read with more and more functions at once, and fit two laws.

    Runs come in random order, each number once before any comes again. All other flags are
    those of the job. See docs/compare.md for the laws.
    """
    require_scipy()
    require_pages(flags["format"])
    from serverless_bench.analysis.samples import check_comparable, run_directories, sample_of
    from serverless_bench.cli.output.fits import fit, show

    quiet = flags["format"] != "text"
    if report is not None:
        runs, planned = _usable(run_directories(report)), len(run_directories(report))
        root = report
    else:
        wanted = _parse_numbers(numbers)
        if repeats < 1:
            raise UsageError(f"--repeats must be at least 1, got {repeats}")
        task = _task(context, job, flags)
        root = flags["run_dir"] / new_name("scale", flags["name"])
        order = _random_order(wanted, repeats, flags["seed"])
        runs = list(_measure(task, root, order, keep=flags["keep"], quiet=quiet))
        planned = len(order)
    sample = sample_of(runs, label=str(root), directory=root)
    check_comparable([sample], allowed=_VARIES)
    show(
        fit(runs, seed=flags["seed"]),
        predict=predict,
        style=flags["format"],
        simulated=sample.simulated,
    )
    return ExitCode.OK if len(runs) == planned else ExitCode.INCOMPLETE


command.params.extend(job_parameters(COMMANDS, _DECIDED))


def _task(context: click.Context, job: str, flags: dict[str, Any]) -> Prepared:
    """Return what to run, with the flags that are this job's.

    Raises
    ------
    UsageError
        If a flag is wrong, or one of the other job is given.
    """
    own = flags_of_job(context, COMMANDS, job, flags, _DECIDED)
    check_side_by_side(flags)
    return prepare_task(job, own | {"seed": flags["seed"], "concurrency": 1})


def _parse_numbers(text: str) -> list[int]:
    try:
        numbers = sorted({int(word) for word in text.split(",")})
    except ValueError:
        numbers = []
    if len(numbers) < 3 or numbers[0] < 1:
        raise UsageError(
            f"--numbers {text!r} are not three different numbers of functions",
            hint="better six: --numbers 1,3,10,30,100,300",
        )
    return numbers


def _random_order(numbers: Sequence[int], repeats: int, seed: int) -> list[tuple[int, int]]:
    """Return (number, repeat): each number once in random order, then again, and so on."""
    import numpy as np

    rng = np.random.default_rng(seed)
    return [(int(n), turn) for turn in range(1, repeats + 1) for n in rng.permutation(numbers)]


def _measure(
    task: Prepared, root: Path, order: Sequence[tuple[int, int]], *, keep: bool, quiet: bool
) -> "Iterator[MeasuredRun]":
    """Run the task with each number of functions and yield the runs that count."""
    smallest = min(number for number, _ in order)
    with store_kept_up(needed=task.embedded):
        # A store that has just started is slow.
        with run_directory(root / "warm-up" / "1", keep=keep) as directory:
            run_task(task, directory, number=smallest, concurrency=smallest)
        for done, (number, turn) in enumerate(order, 1):
            with run_directory(root / f"{number}-{turn}", keep=keep) as directory:
                try:
                    run_task(task, directory, number=number, concurrency=number)
                except CutOff as exc:
                    if exc.exit_code not in _INCOMPLETE:
                        raise
            found = _usable([directory])
            for run in found:
                rate = format_rate(run.summary.whole_bytes_per_s)
                at_once = format_count(number, "function")
                say(f"run {done} of {len(order)}: {at_once}, {rate}  {directory}", err=quiet)
            yield from found


def _usable(directories: Iterable[Path]) -> "list[MeasuredRun]":
    """Return the runs that can stand for their number, and name the others."""
    from serverless_bench.analysis.samples import measured_run
    from serverless_bench.rundir.run import load_run

    runs = []
    for directory in directories:
        try:
            runs.append(measured_run(load_run(directory, detail=False)))
        except UsageError as exc:
            note([f"left out: {exc}"])
    return runs
