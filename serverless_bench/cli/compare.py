"""``sbench compare``."""

from importlib import import_module
from pathlib import Path

import click

from serverless_bench.cli.options import choose_format, group, option
from serverless_bench.errors import PluginError, UsageError
from serverless_bench.units import format_count

DEFAULT_METRIC = "whole_bytes_per_s"
LABELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

compare_options = group(
    option(
        "--metric",
        default=DEFAULT_METRIC,
        show_default=True,
        help="Field of the JSON report, as in t99_s or per_function_bytes_per_s.p50.",
    ),
    option(
        "--threshold",
        type=float,
        default=0.05,
        show_default=True,
        help="Relative difference from which on it matters.",
    ),
    option("--allow", multiple=True, help="Setting that may differ all the same; repeatable."),
    choose_format("text", "json", "markdown"),
)


@click.command("compare")
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="A B...",
)
@compare_options
def command(
    directories: tuple[Path, ...],
    metric: str,
    threshold: float,
    allow: tuple[str, ...],
    **flags: str,
) -> int:
    """Compare sets of runs: say whether B is faster than A, slower, or the same.

    Each of A, B, ... is a directory with at least four run directories in it, and A is the
    baseline. See docs/compare.md for what the verdicts promise.
    """
    require_scipy()
    check_threshold(threshold)
    if not 2 <= len(directories) <= len(LABELS):
        raise UsageError(
            f"{format_count(len(directories), 'side')} cannot be compared",
            hint="name the baseline first, and then what to compare with it",
        )
    from serverless_bench.analysis.samples import load_side
    from serverless_bench.cli.verdicts import conclude

    sides = [
        load_side(directory, label=label)
        for directory, label in zip(directories, LABELS, strict=False)
    ]
    return conclude(sides, metric=metric, threshold=threshold, allowed=allow, style=flags["format"])


def require_scipy() -> None:
    """Check that the library is there, before anything runs for hours.

    Raises
    ------
    PluginError
        If SciPy is not installed.
    """
    try:
        import_module("scipy")
    except ModuleNotFoundError as exc:
        raise PluginError(
            f"comparisons and fits need {exc.name!r}, which is not installed",
            hint="pip install 'serverless-bench[compare]'",
        ) from exc


def check_threshold(threshold: float) -> None:
    """Refuse what is no relative difference.

    Raises
    ------
    UsageError
        If it is not between 0 and 1.
    """
    if not 0 < threshold < 1:
        raise UsageError(
            f"--threshold must be between 0 and 1, got {threshold:g}",
            hint="it is a share: --threshold 0.05 for 5 %",
        )
