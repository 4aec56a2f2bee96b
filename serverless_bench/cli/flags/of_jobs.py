"""Flags of a job: its settings from ``job.settings``, and options for the output of the run."""

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial, wraps
from typing import Any, Final, Literal, cast, get_args, get_origin

from serverless_bench.base.units import (
    parse_distance,
    parse_duration,
    parse_rate,
    parse_share,
    parse_size,
)
from serverless_bench.cli.flags.after_run import AFTER_RUN
from serverless_bench.cli.flags.options import (
    DURATION,
    FILE,
    FOLDER,
    RATE,
    SHARE,
    SIZE,
    Choice,
    F,
    Parsed,
    PluginName,
    SettingOption,
    format_option,
    group,
    option,
    prices_option,
    progress_option,
    run_dir_option,
)
from serverless_bench.clients import CLIENTS
from serverless_bench.executors import EXECUTORS
from serverless_bench.job.abilities import UNTIMED, Untimed
from serverless_bench.job.defaults import REMOTE
from serverless_bench.job.meaning import (
    Declared,
    declared_beside,
    declared_for,
    declared_in,
    declared_options,
)
from serverless_bench.job.settings import JobSettings, setting_names
from serverless_bench.job.workload import open_workload

TARGET: Final = ("bucket", "endpoint_url", "region", "addressing", "client", "client_option")
"""Settings for the location of objects and the access to them."""
executor_type = PluginName(EXECUTORS)

_PARSED: Final[Mapping[object, Parsed]] = {
    parse_duration: DURATION,
    parse_rate: RATE,
    parse_share: SHARE,
    parse_size: SIZE,
    parse_distance: Parsed("size", parse_distance),
}
_TYPES: Final[Mapping[str | None, Any]] = {
    "client": PluginName(CLIENTS),
    "executor": executor_type,
    "file": FILE,
    "folder": FOLDER,
}
"""Types of flags that do not follow from the types of settings: by name, or by kind of path."""


def settings(*names: str, workload: str = "write", **what: str) -> Callable[[F], F]:
    """Declare the flags of settings.

    Parameters
    ----------
    names
        Names of the settings; that of a feature which is not installed has no flag, and is None.
    workload
        Workload with the defaults to show in the help.
    what
        Help texts by name, for commands in which a flag has a different meaning.
    """
    known = {**declared_in(JobSettings), **declared_options(), **declared_for(workload)}
    flags = group(*(_flag(n, known[n], workload, what.get(n)) for n in names if n in known))
    absent = dict.fromkeys(name for name in names if name not in known)

    def decorate(function: F) -> F:
        return flags(cast("F", wraps(function)(partial(function, **absent))))

    return decorate


def _flag(name: str, declared: Declared, workload: str, what: str | None) -> Callable[[F], F]:
    kind, default, meaning = declared
    default = default.value if isinstance(default, Enum) else default
    help_text = what or meaning.what
    usual = meaning.otherwise(open_workload(workload))
    if usual is not None and "[default: " not in help_text:
        help_text += f"  [default: {usual}]"
    arguments: dict[str, Any] = {
        "type": _TYPES.get(name)
        or _TYPES.get(meaning.path)
        or _PARSED.get(meaning.parse)
        or _type_of(kind),
        "help": help_text,
        "metavar": meaning.metavar,
        "section": meaning.section or ("Workload" if meaning.own else "Functions"),
        "after": meaning.after,
        "cls": SettingOption,
    }
    arguments |= {"multiple": True} if default == () else {"default": default}
    flag = name.replace("_", "-")
    spelled = f"--{flag}/--no-{flag}" if isinstance(default, bool) else f"--{flag}"
    return option(spelled, **arguments)


def _type_of(annotation: Any) -> Any:
    """Return the type of the text that a user enters; for a union, the first member."""
    kinds = get_args(annotation)
    if get_origin(annotation) is Literal:
        return Choice(kinds)
    if kinds:
        return _type_of(kinds[0])
    kind = annotation
    return Choice([member.value for member in kind]) if issubclass(kind, Enum) else kind


_outcome_options = group(
    run_dir_option,
    progress_option,
    # Applies to executors with billed functions.
    option(
        "--max-cost",
        cls=SettingOption,
        type=float,
        section=REMOTE,
        after="probe",
        help="Dollars; a job that would cost more does not start.",
    ),
    prices_option,
    format_option,
)
common_options = group(
    settings(
        *(
            name
            for name, (*_, meaning) in declared_in(JobSettings).items()
            if not meaning.own and name not in {"workload", "number", "objects"}
        ),
        *declared_beside("write"),
    ),
    _outcome_options,
)
"""Flags of all jobs, except for the amount of work: shared settings and output of the run."""

report_options = group(*(AFTER_RUN.load(name).flag for name in AFTER_RUN))
"""Flags of features for further results of a run."""


def job_options(workload: str, **what: str) -> Callable[[F], F]:
    """Declare all flags of a command that runs a workload; ``what`` is as in ``settings``."""
    own = declared_for(workload).items()
    without = {name for name, (*_, meaning) in own if meaning.is_argument}
    without.update(UNTIMED if isinstance(open_workload(workload), Untimed) else ())
    names = [name for name in setting_names(workload) if name not in without]
    return group(settings(*names, workload=workload, **what), _outcome_options)
