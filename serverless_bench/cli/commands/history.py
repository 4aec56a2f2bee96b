"""``sbench history``."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.cli.commands.ab import series_options
from serverless_bench.cli.exit_codes import ExitCode
from serverless_bench.cli.flags.options import (
    FILE,
    FOLDER,
    Share,
    choose_format,
    group,
    harmless,
    new_name,
    option,
    run_dir_option,
)
from serverless_bench.cli.lookup import RunName
from serverless_bench.cli.numerics import load_numpy
from serverless_bench.cli.output.help import Group
from serverless_bench.cli.output.terminal import aside, say, show
from serverless_bench.errors import ArchiveError, UsageError
from serverless_bench.statistics.verdict import require_scipy

if TYPE_CHECKING:
    from serverless_bench.analysis.samples import MeasuredRun
    from serverless_bench.history.showing import HistoryCheck

_CODES: Final = {
    "passed": ExitCode.OK,
    "regressed": ExitCode.SLOWER,
    "undecided": ExitCode.UNDECIDED,
}
_history_option = option(
    "--history",
    type=FOLDER,
    default=Path(".sbench-history"),
    help="Directory of the history, to be kept in git.",
)
_machine_option = harmless(
    "--machine",
    default="",
    help="Name of this machine, where several have one system and as many processors.",
)
_format_option = choose_format("text", "json", "markdown")
_runs_argument = click.argument("runs", nargs=-1, type=RunName(), metavar="[RUN]...")


_check_options = group(
    option(
        "--old", metavar="COMMAND", help="Makes a run of the old version, as with sbench write."
    ),
    option("--new", metavar="COMMAND", help="Makes a run of the new version."),
    harmless("--blocks", type=int, default=6, help="With --old and --new: runs of each."),
    harmless(
        "--warm-up-blocks",
        type=int,
        default=1,
        help="The same: blocks that come first and do not count.",
    ),
    harmless("--allow", multiple=True, help="Setting that may differ all the same; repeatable."),
    series_options,
    _history_option,
    _machine_option,
    harmless(
        "--against", metavar="KEY", help="Recorded runs to compare with; those alike without it."
    ),
    harmless(
        "--metric",
        multiple=True,
        help="Figure to check, as sbench compare takes it; repeatable."
        "  [default: whole_bytes_per_s, t99_s]",
        show_default=False,
    ),
    harmless("--tolerance", type=Share(), default="5%", help="Loss from which on it matters."),
    harmless("--power", type=Share(), default="10%", help="Loss to say the power for."),
    option("--summary", type=FILE, help="File to add a summary in Markdown to."),
    _format_option,
)


@click.group("history", cls=Group)
def command() -> None:
    """Record runs in a folder that lives in git, and check that new ones are as good.

    docs/history.md has what the verdicts promise.
    """


@command.command("add")
@_runs_argument
@run_dir_option
@_history_option
@_machine_option
@harmless("--label", default="", help="What to call the version that was run, such as a commit.")
@option("--restart", is_flag=True, help="Checks shall not look at older runs any more.")
def add_command(
    runs: tuple[str, ...],
    run_dir: Path,
    history: Path,
    machine: str,
    label: str,
    *,
    restart: bool,
) -> None:
    """Record runs; the latest one if none is named.

    RUN is a run's name, its directory, or a directory of several. All are looked at before one is
    recorded: a run that lost functions, or fails its self-checks, stands for nothing.
    """
    load_numpy()
    from serverless_bench.history.check import history_add

    directories = _directories(runs, run_dir)
    added = history_add(directories, history, machine=machine, label=label, restart=restart)
    say(
        *(
            f"{'recorded' if is_new else 'was there already, and stays as it was'}: {path}"
            for path, is_new in added.items()
        )
    )


@command.command("show")
@click.argument("key", required=False)
@_history_option
@_format_option
def show_command(key: str | None, history: Path, **flags: str) -> None:
    """Show what is recorded: a line for each key, or the figures and runs of one.

    KEY is a key or a part of one.
    """
    load_numpy()
    from serverless_bench.history.folder import History
    from serverless_bench.history.showing import Series, details, overview

    kept = History(history)
    keys = kept.keys() if key is None else [kept.find(key)]
    found = [Series(key=one, runs=tuple(runs)) for one in keys if (runs := kept.runs(one))]
    if not found:
        raise ArchiveError(f"there is no run in {history}", hint="sbench history add RUN")
    style = flags["format"]
    if key is None:
        show(style, [one.to_json() for one in found], overview(found, style))
    else:
        show(style, found[0].to_json(), details(found[0], style))


@command.command("check")
@_runs_argument
@_check_options
def check_command(
    runs: tuple[str, ...],
    tolerance: float,
    power: float,
    summary: Path | None,
    **flags: Any,  # noqa: ANN401 - the shared groups of flags
) -> int:
    """Say whether new runs are as good as old ones: passed, regressed or undecided.

    With --old and --new, two commands that each make one run, both are run in turns. Without
    them, RUN... (a name, a directory, or one of several) are held against what is recorded.
    """
    require_scipy()
    load_numpy()
    from serverless_bench.cli.job import check_writable
    from serverless_bench.history.check import history_check
    from serverless_bench.history.judging import DEFAULT_FIGURES

    check_writable("--summary", summary)
    about = {
        "metrics": tuple(dict.fromkeys(flags["metric"])) or DEFAULT_FIGURES,
        "machine": flags["machine"],
        "tolerance": tolerance,
        "power": power,
    }
    if flags["old"] is None and flags["new"] is None:
        directories = _directories(runs, flags["run_dir"])
        found = history_check(directories, flags["history"], against=flags["against"], **about)
    else:
        found = _in_turns(runs, flags, about)
    style = flags["format"]
    show(style, found.to_json(), found.lines(style))
    if summary is not None:
        _append(summary, found.lines("markdown"))
    return _CODES[found.verdict.value]


def _in_turns(
    runs: Sequence[str], flags: Mapping[str, Any], about: dict[str, Any]
) -> "HistoryCheck":
    from serverless_bench.cli.task import listener
    from serverless_bench.history.check import history_check_in_turns
    from serverless_bench.reporters.comparison import format_metric

    if runs or flags["against"]:
        raise UsageError(
            "--old and --new make their own runs, and need no other ones",
            hint="name runs without --old and --new to compare them with what is recorded",
        )

    def figures(run: "MeasuredRun") -> str:
        return ", ".join(format_metric(name, run.metric(name)) for name in about["metrics"])

    return history_check_in_turns(
        flags["old"] or "",
        flags["new"] or "",
        flags["run_dir"] / new_name("history", flags["name"]),
        **about,
        **{name: flags[name] for name in ("blocks", "warm_up_blocks", "allow", "seed", "keep")},
        on_run=lambda turn, run: aside(f"{turn} {figures(run)}  {run.path}"),
        listener=listener(),
    )


def _append(path: Path, lines: Sequence[str]) -> None:
    from serverless_bench.rundir.files import open_file

    try:
        with open_file(path, "ab") as file:
            file.write("".join(f"{line}\n" for line in lines).encode())
    except OSError as exc:
        raise ArchiveError(f"cannot write {path}: {exc.strerror}") from exc


def _directories(names: Sequence[str], run_dir: Path) -> list[Path]:
    """Return the run directories that are meant, each once."""
    from serverless_bench.analysis.samples import run_directories
    from serverless_bench.cli.lookup import runs_named, the_run

    if not names:
        return [the_run(None, run_dir)]
    found: dict[Path, None] = {}
    for name in names:
        found.update(dict.fromkeys(run_directories(runs_named(name, run_dir))))
    return [*found]
