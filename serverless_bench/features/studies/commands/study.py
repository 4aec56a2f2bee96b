"""``sbench study``, which repeats published studies."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.options import (
    DURATION,
    PAGE,
    choose_format,
    new_name,
    option,
    run_dir_option,
    trust_option,
)
from serverless_bench.cli.output.terminal import ExitCode, Group, say, sections, show, working
from serverless_bench.features.studies import MAX_REPEATS, STATE, text_of, titles
from serverless_bench.features.studies.commands.study_plan import (
    cell_options,
    cost_option,
    make_plan,
    named,
    perform,
    show_plan,
    where_options,
)

if TYPE_CHECKING:
    from serverless_bench.features.studies.plan import Plan

_FORMATS: Final = ("text", "markdown", "json")
_AS_THE_FILE: Final = {"bucket": None, "repeats": None, "run_duration": None, "seed": 0}
"""Defaults for flags of a run that `show` does not have."""

_result_option = choose_format(*_FORMATS, PAGE)
_output_option = click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw the results into this file.",
)


@click.group("study", cls=Group)
def command() -> None:
    """Repeat published studies, and show measured next to published values.

    NAME is a name from `sbench study ls`, or a TOML file; see
    "Studies" in the documentation.
    """


@command.command("ls")
@choose_format("text", "json", "jsonl")
def ls_command(format: str) -> None:
    """List the studies included in sbench."""
    rows = [{"name": name, "title": title} for name, title in titles()]
    width = max((len(row["name"]) for row in rows), default=0)
    show(format, rows, [f"{row['name']:<{width}}  {row['title']}" for row in rows])


@command.command("show")
@click.argument("name")
@click.option("--reference", is_flag=True, help="Show only the published rows.")
@cell_options
@choose_format(*_FORMATS)
def show_command(name: str, format: str, *, reference: bool, **flags: Any) -> int:
    """Show the question and the cells of a study, or the published rows; run nothing."""
    if reference:
        study = named(name)
        from serverless_bench.features.studies.report import show_reference

        show_reference(study, sys.stdout, format)
        return ExitCode.OK
    if format == "json":
        raise UsageError("a plan has no JSON format", hint="give --reference, or use `run`")
    plan = make_plan(name, {**flags, **_AS_THE_FILE})
    from serverless_bench.features.studies.table import Writer

    study = plan.study
    write = Writer(sys.stdout, markdown=False)
    write.title(f"{study.name}: {study.title}", top=True)
    write.line(study.question)
    write.line(f"null hypothesis: {study.null_hypothesis}")
    show_plan(plan, write)
    return ExitCode.OK


@sections({"Series": "scale design only set repeats resume", "Workload": "run-duration"})
@command.command("run")
@click.argument("name", required=False)
@cell_options
@option(
    "--repeats",
    type=click.IntRange(1, MAX_REPEATS),
    help="Runs of each cell.  [default: the file's, or 5]",
)
@option(
    "--run-duration",
    type=DURATION,
    help="Longest run; 0: until all objects are done.  [default: the file's]",
)
@option("--seed", type=int, default=0, show_default=True, help="Seed of the order of the runs.")
@option("--keep", is_flag=True, help="Leave the objects in the store.")
@click.option("--dry-run", is_flag=True, help="Show the plan, and run nothing.")
@click.option(
    "--resume",
    type=click.Path(file_okay=False, path_type=Path),
    help="Resume the study in this directory.",
)
@trust_option
@run_dir_option
@click.option(
    "--name",
    "label",
    help="Name of the directory; by default NAME and a time stamp.",
)
@where_options
@cost_option
@_result_option
@_output_option
def run_command(
    name: str | None,
    resume: Path | None,
    format: str,
    output: Path | None,
    *,
    keep: bool,
    max_cost: float | None,
    dry_run: bool,
    **flags: Any,
) -> int:
    """Run all cells in rounds, and report the results.

    Each run has a run directory, and its objects are deleted afterwards.
    """
    from serverless_bench.features.compare.verdict import require_scipy

    require_scipy()
    if (name is None) == (resume is None):
        raise UsageError("give a NAME, or --resume DIR", hint="sbench study ls shows the names")
    trust = flags.pop("trust")
    if resume is not None:
        from serverless_bench.features.studies.plan import load_plan

        plan, root = load_plan(resume, to_run=True, trust=trust), resume
    else:
        plan = make_plan(name or "", flags)
        root = flags["run_dir"] / new_name(f"study-{plan.study.name}", flags["label"])
    if dry_run:
        plan.check(max_cost)
        from serverless_bench.features.studies.table import Writer

        show_plan(plan, Writer(sys.stdout, markdown=False), cost=True)
        return ExitCode.OK
    given = {**flags, "keep": keep, "max_cost": max_cost, "format": format}
    plan = perform(plan, root, given, resumed=resume is not None, again="sbench study run --resume")
    return _report(plan, root, format, output)


@command.command("report")
@click.argument("name", metavar="NAME-or-DIR")
@run_dir_option
@_result_option
@_output_option
def report_command(name: str, run_dir: Path, format: str, output: Path | None) -> int:
    """Report on a study, complete or not, by directory, --name, or name of the study."""
    from serverless_bench.features.compare.verdict import require_scipy

    require_scipy()
    root = _find(name, run_dir)
    from serverless_bench.features.studies.plan import load_plan

    return _report(load_plan(root), root, format, output)


def _find(name: str, run_dir: Path) -> Path:
    """Return the directory of a study: given itself, by its --name, or the last of a study.

    Raises
    ------
    UsageError
        If there is no such study.
    """
    if Path(name).is_dir():
        return Path(name)
    if (run_dir / name / STATE).is_file():
        return run_dir / name
    states = sorted(run_dir.glob(f"*/{STATE}"), key=lambda state: state.stat().st_mtime_ns)
    wanted = Path(name).stem
    for state in reversed(states):
        from serverless_bench.features.studies.plan import load_plan

        if load_plan(state.parent).study.name == wanted:
            return state.parent
    text_of(name)
    raise UsageError(
        f"{run_dir} has no study {name!r}",
        hint="give a directory, or its --run-dir; sbench study ls shows the names",
    )


def _report(plan: "Plan", root: Path, style: str, output: Path | None) -> int:
    from serverless_bench.features.studies.observations import observe
    from serverless_bench.features.studies.report import make_report, show

    scale = plan.study.scales[plan.scale]
    observed = observe(root, plan.cells(), repeats=plan.repeats, min_bytes=scale.min_bytes)
    report = make_report(plan, observed)
    if style == PAGE:
        from serverless_bench.features.studies.page import page

        sys.stdout.write(page(report))
    else:
        show(report, sys.stdout, style)
    sys.stdout.flush()
    if output is not None:
        from serverless_bench.features.studies.plot import save_plot

        with working("drawing the picture"):
            save_plot(report, output)
        say(f"plot: {output}", err=style != "text")
    if report.complete:
        return ExitCode.OK
    say(f"hint: sbench study run --resume {root} adds the missing runs", err=True)
    return ExitCode.INCOMPLETE
