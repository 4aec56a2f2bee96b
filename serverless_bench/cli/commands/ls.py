"""``sbench ls``."""

from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
import platformdirs

from serverless_bench.base.clock import utc_stamp
from serverless_bench.base.errors import ArchiveError, SbenchError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.base.units import format_count, format_rate, format_size
from serverless_bench.cli.flags.options import choose_format, option, run_dir_option
from serverless_bench.cli.lookup import RunName
from serverless_bench.cli.output.kept_rows import KeptRows
from serverless_bench.cli.output.terminal import say, show, width
from serverless_bench.rundir.listing import ListedRun, entries, runs_below

_HEADER: Final = ("name", "when (UTC)", "command", "ok", "size", "result")
_LESS_NEEDED: Final = (4, 1, 3)
"""Columns that a narrow terminal does not show, the least important first."""


@click.command("ls")
@click.argument("series", type=RunName(), required=False)
@run_dir_option
@option(
    "--limit",
    type=click.IntRange(0),
    default=20,
    help="Maximum number of runs; 0 for all.",
)
@choose_format("text", "json", "jsonl")
def command(series: str | None, run_dir: Path, limit: int, **flags: str) -> None:
    """List runs, the most recent one first.

    With SERIES, a result of ab, scale or study, list its runs. Use the names as RUN in report,
    check, plot, export, resume and clean.
    """
    if series is None:
        runs = entries(run_dir)
    else:
        path = run_dir / series if (run_dir / series).is_dir() else Path(series)
        runs = runs_below(run_dir, path)
    if not runs:
        raise ArchiveError(
            f"there is no run in {run_dir if series is None else path}",
            hint="sbench write makes one; see also --run-dir",
        )
    kept = KeptRows(platformdirs.user_state_path("sbench") / "ls.json")
    rows = [_row(entry, kept) for entry in islice(runs, limit or None)]
    kept.save()
    show(flags["format"], rows, _lines([_HEADER, *map(_cells, rows)]))
    if flags["format"] == "text" and len(rows) < len(runs):
        say(f"{len(runs) - len(rows):,} older runs are not shown; list all with --limit 0")


def _lines(cells: list[tuple[str, ...]]) -> list[str]:
    """Return the table, with fewer columns if the terminal is too narrow for all."""
    from serverless_bench.report.text_table import table

    columns = [*range(len(_HEADER))]
    for less_needed in (None, *_LESS_NEEDED):
        columns = [column for column in columns if column != less_needed]
        header, *rows = ([row[column] for column in columns] for row in cells)
        align = "".join("lllrrl"[c] for c in columns)
        lines = [*table(header, rows, "text", align=align, width=width())]
        if len(lines) == len(cells):
            break
    return lines


def _row(entry: "ListedRun", kept: KeptRows) -> dict[str, Any]:
    """Return the main figures of a run, or the error that prevents reading it."""
    when = utc_stamp(entry.created_ns, separators=True)
    row: dict[str, Any] = {"name": entry.name, "when": when, "path": str(entry.path)}
    if not entry.is_run:
        row |= {"command": "series", "runs": len(runs_below(entry.path, entry.path))}
        return row | TOOLS.load("answer-in-short")(entry.path) if "answer" in TOOLS else row
    try:
        return row | kept.row(entry.path, _figures)
    except SbenchError as exc:
        return row | {"command": None, "error": str(exc)}


def _figures(path: Path) -> dict[str, Any]:
    from serverless_bench.metrics.summary import summarize
    from serverless_bench.rundir.run import load_run

    summary = summarize(load_run(path, detail=False))
    return {
        "command": summary.workload,
        "simulated": summary.simulated,
        "requested": summary.requested,
        "ok": summary.ok,
        "bytes": summary.bytes,
        "throughput_bytes_per_s": summary.throughput_bytes_per_s,
        "withheld": bool(summary.withheld),
        "ended": summary.ended,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    start = (row["name"], row["when"].replace("T", " ")[:16])
    if row["command"] is None:
        return (*start, "-", "-", "-", f"unreadable: {row['error']}")
    if "runs" in row:
        runs = format_count(row["runs"], "run")
        return (*start, row["command"], runs, "-", row.get("answer", "-"))
    rate = "withheld" if row["withheld"] else format_rate(row["throughput_bytes_per_s"])
    return (
        *start,
        row["command"] + ("" if row["simulated"] is None else ", simulated"),
        f"{row['ok']:,} of {row['requested']:,}",
        format_size(row["bytes"]),
        rate if row["ended"] else f"{rate}, unfinished",
    )
