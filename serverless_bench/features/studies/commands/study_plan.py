"""Conversion of the flags of ``sbench study`` into a plan, and display of a plan."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.base.errors import INTERRUPTED, SbenchError, UsageError
from serverless_bench.base.user_files import parse_toml
from serverless_bench.cli.flags.of_jobs import executor_type, settings
from serverless_bench.cli.flags.options import SettingOption, group, option
from serverless_bench.cli.output.terminal import say
from serverless_bench.features.studies import DESIGNS, SCALES, text_of
from serverless_bench.job.defaults import DEFAULT_EXECUTOR, REMOTE
from serverless_bench.job.target import parse_bucket

if TYPE_CHECKING:
    from serverless_bench.features.studies.definition import Setting, Study
    from serverless_bench.features.studies.plan import Plan
    from serverless_bench.features.studies.table import Writer

cell_options = group(
    option(
        "--scale",
        type=click.Choice(SCALES),
        default="small",
        show_default=True,
        help="Size of the study.",
    ),
    option(
        "--design", type=click.Choice(DESIGNS), help="Selection of cells.  [default: the file's]"
    ),
    click.option(
        "--only",
        multiple=True,
        metavar="AXIS=VALUE[,...]",
        help="Run only these cells.",
    ),
    click.option(
        "--set", "changes", multiple=True, metavar="NAME=VALUE", help="Setting of all cells."
    ),
)
where_options = group(
    settings(
        *("bucket", "endpoint_url", "region", "addressing", "stack", "memory", "arch", "function"),
        *("function_region", "probe", "scheduler", "lithops_keys", "slots", "control_prefix"),
        "start_timeout",
        endpoint_url="Any S3-compatible store; AWS if only a bucket is named.",
    ),
    option(
        "--executor",
        type=executor_type,
        help="Executor of the functions.  [default: the study's, or local]",
    ),
)


cost_option = option(
    "--max-cost",
    cls=SettingOption,
    type=float,
    section=REMOTE,
    after="probe",
    help="Reject a series whose runs, pilots and preparations would cost more dollars.",
)


def named(name: str) -> "Study":
    """Return a study, by name or by the path of a file.

    Raises
    ------
    UsageError
        If no study has this name, or the file is invalid.
    """
    # Report an unknown name before slow imports.
    text = text_of(name)
    from serverless_bench.features.studies.loading import parse

    return parse(text, Path(name).stem)


def make_plan(name: str, flags: Mapping[str, Any]) -> "Plan":
    """Return the plan of a study with the user's flags.

    Parameters
    ----------
    name
        Name or file of the study.
    flags
        Flags of ``cell_options``, and ``repeats``, ``run_duration`` and ``seed``.

    Raises
    ------
    UsageError
        If a flag or the study is invalid.
    """
    changes, study = settings_of(flags), named(name)
    from serverless_bench.features.studies.plan import Plan

    repeats = flags["repeats"]
    if flags["run_duration"] is not None and not 0 <= flags["run_duration"] < inf:
        raise UsageError(f"--run-duration must be at least 0, got {flags['run_duration']:g}")
    scale = study.scales[flags["scale"]]
    plan = Plan(
        study=study,
        scale=flags["scale"],
        repeats=repeats or scale.repeats,
        minutes=0.0 if repeats else scale.minutes,
        seed=flags["seed"],
        seconds=flags["run_duration"],
        design=flags["design"] or "",
        only=values_of("--only", flags["only"]),
        changes=changes,
        protocol=parse_bucket(flags["bucket"] or "")[0],
    )
    plan.cells()
    return plan


def values_of(flag: str, texts: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of ``NAME=VALUE[,...]`` by name.

    Raises
    ------
    UsageError
        If a text has another form.
    """
    values_by_axis: dict[str, list[str]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not values:
            raise UsageError(
                f"{flag}: {text!r} is not AXIS=VALUE", hint=f"write {flag} threads=8,16"
            )
        values_by_axis.setdefault(name, []).extend(values.split(","))
    return values_by_axis


def _changes(texts: Iterable[str]) -> "dict[str, Setting]":
    """Return the settings of ``--set NAME=VALUE``."""
    from serverless_bench.features.studies.loading import as_settings
    from serverless_bench.features.studies.settings import check_settings
    from serverless_bench.job.setting_schema import located

    changes: dict[str, Setting] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set: {text!r} is not NAME=VALUE", hint="write --set objects=10")
        with located("--set"):
            changes |= as_settings({name: value_of(value)})
            check_settings(changes)
    return changes


def value_of(text: str) -> Any:
    """Return the value that a text has in TOML; itself if the shell has removed its quotes."""
    try:
        return parse_toml(f"value = {text}")["value"]
    except ValueError:
        return text


def settings_of(flags: Mapping[str, Any]) -> "dict[str, Setting]":
    """Return the settings of ``--set``, and of the flags that are settings of all cells.

    Raises
    ------
    UsageError
        If a text has another form, or names no setting.
    """
    names = ("executor", "memory", "arch")
    return _changes(flags["changes"]) | {name: flags[name] for name in names if flags.get(name)}


def show_plan(plan: "Plan", write: "Writer", *, cost: bool = False) -> None:
    """Write the cells of a plan, and the cost of functions on AWS Lambda if requested."""
    cells = plan.cells()
    runs = sum(not cell.skipped for cell in cells) * plan.repeats
    about = plan.study.scales[plan.scale].about
    lasting = f", of {plan.most_s:g} s at most" if plan.most_s else ""
    if plan.most_s and plan.minutes:
        lasting += f"; more in {plan.minutes:g} minutes"
    write.line(
        f"--scale {plan.scale}{f' ({about})' if about else ''}: {len(cells)} cells,"
        f" {plan.repeats} runs of each, {runs} in all{lasting}"
    )
    from serverless_bench.executors import info_of

    executors = {cell.settings.get("executor", DEFAULT_EXECUTOR) for cell in cells}
    if cost and (plan.scale == "paper" or any(info_of(str(name)).billed for name in executors)):
        from serverless_bench.features.studies.plan import dollars_text

        if text := dollars_text(plan):
            write.line(text, deep=1)
    common = {
        name: value
        for name, value in cells[0].settings.items()
        if all(cell.settings.get(name) == value for cell in cells)
    }
    write.line(f"all: {_shown(common)}", deep=1)
    for cell in cells:
        own_settings = {name: value for name, value in cell.settings.items() if name not in common}
        write.line(f"{cell.label}: {cell.skipped or _shown(own_settings)}", deep=1)


def _shown(settings: "Mapping[str, Setting]") -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def placed(plan: "Plan", flags: dict[str, Any]) -> "Plan":
    """Return the plan with the user's target, functions and control prefix.

    Raises
    ------
    UsageError
        If the flags do not fit each other or the cells.
    StoreError
        If the store does not respond.
    """
    from serverless_bench.driver.location import endpoints_of, locate
    from serverless_bench.driver.target import resolve
    from serverless_bench.features.remote.driver import Remote
    from serverless_bench.job.settings import make_settings

    executors = {str(cell.settings.get("executor", DEFAULT_EXECUTOR)) for cell in plan.cells()}
    if len(executors) > 1:
        raise UsageError("the cells have different executors", hint="give --executor NAME")
    names = ("bucket", "endpoint_url", "region", "addressing", "stack", "function")
    given = {name: flags[name] for name in (*names, "control_prefix")}
    settings = make_settings({"workload": "write", "executor": executors.pop(), **given})
    target, place = locate(settings)
    if (endpoints := len(endpoints_of(settings))) > 1:
        raise UsageError(
            f"a study has one endpoint, got {endpoints}",
            hint="give a single --endpoint-url; only sbench write and read accept more",
        )
    changes = {**plan.changes}
    functions = place.options.get("function", ())
    if functions:
        changes["start_timeout"] = flags["start_timeout"]
    deployed = place.deployed if isinstance(place, Remote) else ()
    plan = replace(plan, functions=functions, deployed=deployed, changes=changes)
    for cell in plan.runnable():
        plan.functions_of(cell.settings)
    if target.store is not None:
        return plan
    target = resolve(target)
    return replace(plan, target=target, control=place.control(target))


def perform(
    plan: "Plan",
    root: Path,
    flags: dict[str, Any],
    *,
    resumed: bool,
    again: str,
) -> "Plan":
    """Run the cells of a plan that have not run yet; return the plan with its rounds.

    Parameters
    ----------
    plan, root
        Plan, and its directory, which is made unless the plan is resumed.
    flags
        Flags of ``where_options``, ``keep``, ``max_cost``, ``format`` and ``start_timeout``.
    resumed
        Whether the plan was made by an earlier command.
    again
        Command that resumes it, before the directory.

    Raises
    ------
    SbenchError
        If a flag does not fit, the store does not respond, or the user interrupts.
    """
    # Import the libraries of the runs only after the flags are checked.
    from serverless_bench.driver.location import check_room
    from serverless_bench.driver.task import Listener
    from serverless_bench.features.compare.task import listener
    from serverless_bench.features.studies.plan import FILE, save_plan
    from serverless_bench.features.studies.runner import run
    from serverless_bench.rundir.files import open_file, take_lock

    largest = plan.check(flags["max_cost"])
    if plan.target is None and flags["bucket"] is None and flags["endpoint_url"] is None:
        check_room(largest, "the objects of one run")
    if not resumed:
        plan = placed(plan, flags)
        save_plan(plan, root)
    note = partial(say, err=flags["format"] != "text")
    note(f"directory: {root}")
    ears = Listener(complain=listener().complain)
    try:
        with open_file(root / FILE) as file:
            # Two drivers would take each other's runs for runs of a dead driver.
            take_lock(file, root)
            return run(
                plan, root, keep=flags["keep"], max_cost=flags["max_cost"], say=note, listener=ears
            )
    except SbenchError as exc:
        if exc.exit_code == INTERRUPTED:
            exc.hint = f"{again} {root}"
        raise
    except KeyboardInterrupt:
        say(f"hint: {again} {root}", err=True)
        raise
