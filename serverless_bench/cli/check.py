"""``sbench check``."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from serverless_bench.cli.exit_codes import exit_code_of
from serverless_bench.cli.options import option, run_argument
from serverless_bench.units import format_seconds

if TYPE_CHECKING:
    from serverless_bench.reduce import Summary
    from serverless_bench.stability import Stability


@click.command("check")
@run_argument
@option(
    "--format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="A page, or one JSON object.",
)
def command(directory: Path, **flags: str) -> int:
    """Check that a run's figures are possible, and say what makes them hard to repeat."""
    from serverless_bench.archive import load_run
    from serverless_bench.checks import CHECKS
    from serverless_bench.reduce import summarize
    from serverless_bench.stability import stability

    run = load_run(directory)
    summary = summarize(run)
    found = stability(run, summary)
    if flags["format"] == "json":
        json.dump(
            {"checks": len(CHECKS), "withheld": summary.withheld, **asdict(found)}, sys.stdout
        )
        sys.stdout.write("\n")
    else:
        _write(summary, found)
    return exit_code_of(summary)


def _write(summary: "Summary", found: "Stability") -> None:
    from rich.console import Console

    from serverless_bench.checks import CHECKS
    from serverless_bench.reporters.base import headline

    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{summary.phase}: {headline(summary)}")
    console.print(f"self-checks: {len(CHECKS)} made, {len(summary.withheld)} things cannot be")
    for why in summary.withheld:
        console.print(f"  {why}", style="red")
    console.print(f"warnings: {len(found.warnings)}")
    for warning in found.warnings:
        console.print(f"  {warning}", style="yellow")
    done = "  ".join(f"{name} {format_seconds(at)}" for name, at in summary.done_s.items())
    console.print(f"functions done at: {done}")
    if found.max_over_p50 is not None and found.tail_tax is not None:
        console.print(
            f"stragglers: the slowest took {found.max_over_p50:.2f} times the median;"
            f" {found.tail_tax:.0%} of the span was left when 95 % were done"
        )
    for one in found.stragglers:
        mark = ", an outlier" if one.index in found.outliers else ""
        console.print(
            f"  function {one.index}: {format_seconds(one.took_s)} on {one.worker_id}{mark};"
            f" requests {', '.join(one.request_ids) or '-'}"
        )
