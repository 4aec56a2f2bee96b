"""``sbench check``."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.cli.exit_codes import ExitCode, exit_code_of
from serverless_bench.cli.lookup import run_argument
from serverless_bench.cli.options import choose_format, option
from serverless_bench.errors import UsageError
from serverless_bench.units import format_count, format_seconds

if TYPE_CHECKING:
    from rich.console import Console

    from serverless_bench.analysis.summary import Summary
    from serverless_bench.analysis.variability import Variability
    from serverless_bench.audit.audit import Audit
    from serverless_bench.rundir.run import Run


@click.command("check")
@run_argument
@choose_format("text", "json")
@option(
    "--witness",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What the store saw (sbench serve --witness): name every difference.",
)
@option("--cleaned", is_flag=True, help="With --witness: nothing of the run may be left.")
def command(directory: Path, witness: Path | None, *, cleaned: bool, **flags: str) -> int:
    """Check that a run's figures are possible, and say what makes them hard to repeat.

    RUN is a run's name or its directory; the latest run without it. With a witness, also hold
    the run against what the store saw of it.
    """
    from serverless_bench.analysis.invariants import INVARIANTS
    from serverless_bench.analysis.summary import summarize
    from serverless_bench.analysis.variability import variability
    from serverless_bench.rundir.run import load_run

    if cleaned and witness is None:
        raise UsageError("--cleaned needs --witness", hint="name what sbench serve --witness wrote")
    run = load_run(directory)
    summary = summarize(run)
    found = variability(run, summary)
    seen = None if witness is None else audited(run, witness, cleaned=cleaned)
    if flags["format"] == "json":
        document: dict[str, Any] = {"checks": len(INVARIANTS), "withheld": summary.withheld}
        document |= asdict(found)
        if seen is not None:
            document["witness"] = asdict(seen)
        json.dump(document, sys.stdout)
        sys.stdout.write("\n")
    else:
        from rich.console import Console

        console = Console(highlight=False, markup=False, soft_wrap=True)
        _write(console, summary, found)
        if seen is not None:
            _write_audit(console, seen)
    code = exit_code_of(summary)
    if seen is not None and seen.differences and code is not ExitCode.CORRUPT:
        return ExitCode.WITHHELD
    return code


def audited(run: "Run", witness: Path, *, cleaned: bool = False) -> "Audit":
    """Hold a run, and its bill if it has one, against a witness."""
    from serverless_bench.audit.audit import Billed, audit
    from serverless_bench.audit.witness import read_witness
    from serverless_bench.aws.cost.bill import bill

    billed = bill(run)
    return audit(
        run.path,
        read_witness(witness),
        billed=None
        if billed is None
        else Billed(requests=billed.requests, exact=billed.requests_exact),
        cleaned=cleaned,
    )


def _write_audit(console: "Console", seen: "Audit") -> None:
    counts = ", ".join(f"{count} {name}" for name, count in seen.requests.items() if count)
    console.print(f"witness: {counts or 'no'} requests; {seen.matched} attempts matched")
    if seen.by_key_and_time:
        console.print(f"  {seen.by_key_and_time} name no attempt: matched by key and time")
    if seen.not_compared:
        console.print(f"  {seen.not_compared} by functions without a record: not compared")
    if seen.left:
        console.print(f"  {len(seen.left)} objects and uploads of the run are still there")
    console.print(format_count(len(seen.differences), "difference"))
    for one in seen.differences:
        where = "" if one.key is None else f" {one.key}:"
        console.print(f"  {one.about}:{where} {one.text}", style="red")


def _write(console: "Console", summary: "Summary", found: "Variability") -> None:
    from serverless_bench.analysis.invariants import INVARIANTS
    from serverless_bench.reporters.base import headline

    console.print(f"{summary.workload}: {headline(summary)}")
    if summary.withheld:
        wrong = format_count(len(summary.withheld), "contradiction")
        console.print(f"{len(INVARIANTS)} self-checks made, {wrong} found:")
    else:
        console.print(f"{len(INVARIANTS)} self-checks passed")
    for why in summary.withheld:
        console.print(f"  {why}", style="red")
    console.print(f"{format_count(len(found.warnings), 'warning')}{':' if found.warnings else ''}")
    for warning in found.warnings:
        console.print(f"  {warning}", style="yellow")
    done = "  ".join(f"{name} {format_seconds(at)}" for name, at in summary.done_s.items())
    console.print(f"functions done at: {done}")
    if found.max_over_p50 is not None and found.tail_tax is not None:
        console.print(
            f"stragglers: the slowest took {found.max_over_p50:.2f} times the median;"
            f" {found.tail_tax:.0%} of the span was left when 95% were done"
        )
    for one in found.stragglers:
        mark = ", an outlier" if one.index in found.outliers else ""
        console.print(
            f"  function {one.index}: {format_seconds(one.took_s)} on {one.worker_id}{mark};"
            f" requests {', '.join(one.request_ids) or '-'}"
        )
