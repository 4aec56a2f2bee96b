"""``sbench compare``."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.plugins import TOOLS
from serverless_bench.cli.flags.options import (
    PAGE,
    TOLERANCE,
    choose_format,
    group,
    option,
    run_dir_option,
)
from serverless_bench.cli.lookup import RunName
from serverless_bench.cli.output.terminal import ExitCode, say, say_json, width
from serverless_bench.cli.process import load_numpy
from serverless_bench.features.answers.showing import keep, show_answer

if TYPE_CHECKING:
    from serverless_bench.features.compare.run_comparison import RunComparison

_CODES: Final[Mapping[str, ExitCode]] = {
    "faster": ExitCode.OK,
    "same": ExitCode.OK,
    "undecided": ExitCode.UNDECIDED,
    "not enough runs": ExitCode.UNDECIDED,
    "slower": ExitCode.SLOWER,
}
"""Exit codes by verdict, from the best verdict to the worst."""

compare_options = group(
    option(
        "--metric",
        default="throughput_bytes_per_s",
        help="Field of the JSON report, as in ops_per_s or latency_s.p99; of a kind of operation,"
        " get.ops_per_s or get.p99.",
    ),
    option(
        "--threshold",
        type=TOLERANCE,
        default="5%",
        help="Smallest relative difference that matters.",
    ),
    option("--allow", multiple=True, help="Setting that may differ; repeatable."),
    choose_format("text", "json", "markdown", PAGE),
)


@click.command("compare")
@click.argument("sides", nargs=-1, required=True, type=RunName(), metavar="A B...")
@run_dir_option
@compare_options
def command(
    sides: tuple[str, ...],
    run_dir: Path,
    metric: str,
    threshold: float,
    allow: tuple[str, ...],
    **flags: str,
) -> int:
    """Compare sets of runs: test whether B is faster than A, slower, or the same.

    A, B, ... are directories with at least six run directories, or sweeps or studies, of which
    each cell is compared; or names of such directories below --run-dir. A is the baseline. See
    "Comparisons" in the documentation for the guarantees of the verdicts.
    """
    directories = [runs_named(side, run_dir) for side in sides]
    asked: dict[str, Any] = {"metric": metric, "threshold": threshold, "allow": allow}
    from serverless_bench.features.compare.run_comparison import compare
    from serverless_bench.features.compare.samples import CELLS

    if any((directory / CELLS).is_dir() for directory in directories):
        series = TOOLS.load("series-comparison")(directories, **asked)
        show_answer(series.answer(width()), " and ".join(sides), flags["format"])
        return _worst(series.verdicts)
    return conclude(compare(*directories, **asked), flags["format"])


def conclude(comparison: "RunComparison", style: str, root: Path | None = None) -> ExitCode:
    """Print the verdicts, keep those of a series in its directory, and return the exit code.

    The worst verdict determines the exit code: slower, then undecided, then the others.
    """
    from serverless_bench.features.compare.report import drawings, headline, lines

    if root is not None:
        keep(
            root,
            lambda other, _: lines(comparison, other),
            command="ab",
            headline=headline(comparison),
            document=comparison.to_json(),
            drawings=drawings(comparison),
        )
    if style == "json":
        say_json(comparison.to_json())
    elif style == PAGE:
        from serverless_bench.features.page.runs import comparison_page

        click.echo(comparison_page(comparison), nl=False)
    else:
        say(*lines(comparison, style))
    return _worst(result.verdict for result in comparison.comparisons)


def _worst(verdicts: Iterable[str]) -> ExitCode:
    return _CODES[max(verdicts, key=list(_CODES).index)]


def runs_named(name: str, run_dir: Path) -> Path:
    """Return a directory that contains runs, given its path or its name.

    Raises
    ------
    ArchiveError
        If the directory does not exist.
    """
    from serverless_bench.rundir.listing import find_run

    directories = (path for path in (Path(name), run_dir / name) if path.is_dir())
    directory = next(directories, None) or find_run(name, run_dir)
    load_numpy()
    return directory
