"""``sbench history``."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import ArchiveError, UsageError
from serverless_bench.cli.flags.options import (
    FILE,
    FOLDER,
    TOLERANCE,
    choose_format,
    group,
    new_name,
    option,
    run_dir_option,
)
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.output.terminal import ExitCode, Group, aside, say, sections, show, width
from serverless_bench.cli.process import load_numpy
from serverless_bench.features.ab.command import series_options
from serverless_bench.features.compare.command import runs_named

if TYPE_CHECKING:
    from serverless_bench.features.compare.samples import MeasuredRun
    from serverless_bench.features.history.showing import HistoryCheck

_CODES: Final = {
    "passed": ExitCode.OK,
    "regressed": ExitCode.SLOWER,
    "undecided": ExitCode.UNDECIDED,
}
_history_option = option(
    "--history",
    type=FOLDER,
    default=Path(".sbench-history"),
    help="Directory of the history, which belongs in git.",
)
_machine_option = option(
    "--machine",
    default="",
    help="Name of this machine, if others have the same system and number of CPUs.",
)
_runs_argument = click.argument("runs", nargs=-1, type=RunName(), metavar="[RUN]...")


_check_options = group(
    option("--old", metavar="COMMAND", help="Command that makes a run of the old version."),
    option("--new", metavar="COMMAND", help="Command that makes a run of the new version."),
    option("--blocks", type=int, default=6, help="With --old and --new: runs of each."),
    option(
        "--warm-up-blocks",
        type=int,
        default=1,
        help="With --old and --new: blocks at the start that are not compared.",
    ),
    option("--allow", multiple=True, help="Setting that may differ; repeatable."),
    series_options,
    _history_option,
    _machine_option,
    option(
        "--against",
        metavar="KEY",
        help="Key of recorded runs to compare with.  [default: the key of the new runs]",
    ),
    option(
        "--metric",
        multiple=True,
        help="Metric to check, same as in sbench compare; repeatable."
        "  [default: throughput_bytes_per_s, ops_per_s, latency_s.p99]",
        show_default=False,
    ),
    option("--tolerance", type=TOLERANCE, default="5%", help="Smallest loss that matters."),
    option("--power", type=TOLERANCE, default="10%", help="Loss to report the power for."),
    option("--summary", type=FILE, help="File to add a summary in Markdown to."),
    choose_format("text", "json", "markdown"),
)


@click.group("history", cls=Group)
def command() -> None:
    """Record runs in a folder for git, and check new runs for regressions.

    See "History" in the documentation for the guarantees of the verdicts.
    """


@command.command("add")
@_runs_argument
@run_dir_option
@_history_option
@_machine_option
@option("--label", default="", help="Name of the version that was run, such as a commit.")
@option("--restart", is_flag=True, help="Let future checks ignore older runs.")
def add_command(
    runs: tuple[str, ...],
    run_dir: Path,
    history: Path,
    machine: str,
    label: str,
    *,
    restart: bool,
) -> None:
    """Record runs; the default is the latest run.

    RUN is the name or the directory of a run, or a directory of runs. All runs are checked before
    the first is recorded: runs that lost functions or fail their self-checks are not recorded.
    """
    directories = _directories(runs, run_dir)
    from serverless_bench.features.history.check import history_add

    added = history_add(directories, history, machine=machine, label=label, restart=restart)
    say(
        *(
            f"{'recorded' if is_new else 'recorded before, left unchanged'}: {path}"
            for path, is_new in added.items()
        )
    )


@command.command("ls")
@click.argument("key", required=False)
@_history_option
@choose_format("text", "json", "jsonl", "markdown")
def ls_command(key: str | None, history: Path, **flags: str) -> None:
    """List the keys of the history, or the metrics and runs of a key.

    KEY is a key or a part of a key.
    """
    from serverless_bench.features.history.folder import History

    kept = History(history)
    keys = kept.keys() if key is None else [kept.find(key)]
    load_numpy()
    from serverless_bench.features.history.showing import Series, details, overview

    series = [Series(key=name, runs=tuple(runs)) for name in keys if (runs := kept.runs(name))]
    if not series:
        raise ArchiveError(f"there is no run in {history}", hint="sbench history add RUN")
    style = flags["format"]
    if key is None:
        show(style, [entry.to_json() for entry in series], overview(series, style, width()))
    else:
        show(style, series[0].to_json(), details(series[0], style, width()))


@sections(
    {
        "Series": "blocks warm-up-blocks metric tolerance power allow",
        "History": "old new history machine against summary",
    }
)
@command.command("check")
@_runs_argument
@_check_options
def check_command(
    runs: tuple[str, ...],
    tolerance: float,
    power: float,
    summary: Path | None,
    **flags: Any,
) -> int:
    """Check whether new runs are as good as old ones: passed, regressed or undecided.

    --old and --new are commands that make a run; they run in turns. Without them, compare RUN...
    (names, directories, or directories of runs) with the recorded runs.
    """
    from serverless_bench.cli.job import check_writable

    check_writable("--summary", summary)
    interleaved = flags["old"] is not None or flags["new"] is not None
    if interleaved and (runs or flags["against"]):
        raise UsageError(
            "--old and --new make new runs; do not combine them with RUN or --against",
            hint="leave --old and --new out to compare RUN with recorded runs",
        )
    directories = [] if interleaved else _directories(runs, flags["run_dir"])
    load_numpy()
    from serverless_bench.features.history.check import history_check
    from serverless_bench.features.history.judging import DEFAULT_FIGURES

    about = {
        "metrics": tuple(dict.fromkeys(flags["metric"])) or DEFAULT_FIGURES,
        "machine": flags["machine"],
        "tolerance": tolerance,
        "power": power,
    }
    if interleaved:
        result = _interleaved(flags, about)
    else:
        result = history_check(directories, flags["history"], against=flags["against"], **about)
    style = flags["format"]
    show(style, result.to_json(), result.lines(style, width()))
    if summary is not None:
        _append(summary, result.lines("markdown"))
    return _CODES[result.verdict.value]


def _interleaved(flags: Mapping[str, Any], about: dict[str, Any]) -> "HistoryCheck":
    from serverless_bench.features.compare.report import format_metric
    from serverless_bench.features.compare.task import listener
    from serverless_bench.features.history.check import history_check_interleaved

    def figures(run: "MeasuredRun") -> str:
        return ", ".join(format_metric(name, run.metric(name)) for name in about["metrics"])

    return history_check_interleaved(
        flags["old"] or "",
        flags["new"] or "",
        flags["run_dir"] / new_name("history", flags["name"]),
        **about,
        **{name: flags[name] for name in ("blocks", "warm_up_blocks", "allow", "seed", "keep")},
        on_run=lambda turn, run: aside(f"{turn} {figures(run)}  {run.path}"),
        listener=listener(),
    )


def _append(path: Path, lines: Sequence[str]) -> None:
    from serverless_bench.rundir.files import failing, open_file

    with failing(f"cannot write {path}"), open_file(path, "ab") as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def _directories(names: Sequence[str], run_dir: Path) -> list[Path]:
    """Return the run directories of these names without duplicates; default: the latest run."""
    if not names:
        return [the_run(None, run_dir)]
    parents = [runs_named(name, run_dir) for name in names]
    from serverless_bench.features.compare.samples import run_directories

    return [*dict.fromkeys(chain.from_iterable(map(run_directories, parents)))]
