"""A function for each workload, such as ``sbench.write``, made from the workload's settings."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from inspect import Parameter, Signature
from os import PathLike
from pathlib import Path
from typing import Any, Final, Protocol

from serverless_bench.base.errors import UsageError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.driver.checked_job import CheckedJob, check_job, listing_policy
from serverless_bench.driver.origin import confirm
from serverless_bench.driver.plan import remarks
from serverless_bench.driver.policy import Style
from serverless_bench.driver.run import run_job
from serverless_bench.driver.source import settings_to_read
from serverless_bench.executors.base import RunProgress
from serverless_bench.features import LINES
from serverless_bench.features.python.result import Result
from serverless_bench.job.abilities import ReadsFiles, RunsCode
from serverless_bench.job.meaning import Declared, declared_beside, declared_in
from serverless_bench.job.settings import JobSettings, load_of, make_settings, setting_names
from serverless_bench.job.workload import WORKLOADS, Workload, open_workload
from serverless_bench.rundir.listing import DEFAULT_ROOT
from serverless_bench.rundir.run import AnyRun, as_run

_ARGUMENTS: Final[Mapping[str, str]] = {
    "code": "Your function, which is called with ``FunctionContext``.",
    "log": "File with the log to replay.",
    "source": "Run whose objects are read, on its store and with its number of functions, objects,"
    " concurrency and threads, unless they are given.",
    "trust": "Whether to access the store of a run that was made elsewhere.",
    "run_dir": "Directory of the new run directory.",
    "progress": "Whether to show the progress, in a terminal or a notebook; or a style, as in"
    " ``run_job``.",
}
"""Descriptions of parameters that are no settings, or whose values differ from Python."""
_TEXT: Final = """\
{line}

Settings have the names and values of the command's flags and of job files: numbers, or texts
with a unit, such as ``size="16MiB"``. Without ``bucket`` and ``endpoint_url`` the job runs on the
embedded store, which starts by itself.

Parameters
----------
{parameters}

Returns
-------
Result
    The run and its figures.

Raises
------
SbenchError
    If a setting or its value is wrong, or the store cannot be used; ``hint`` has the next step.
CutShort
    If the job was interrupted; ``run`` has the partial run.

Examples
--------
>>> result = sbench.{workload}({call})
>>> result.summary.ok == result.summary.requested
True
"""


@cache
def _examples() -> Mapping[str, Mapping[str, str]]:
    """Return the arguments of an example by workload, and what it does if no command says so."""
    return tomllib.loads(Path(__file__).with_name("examples.toml").read_text(encoding="utf-8"))


class JobFunction(Protocol):
    """A function that runs a workload."""

    def __call__(self, *arguments: Any, **settings: Any) -> Result:
        """Run a job, and return its result."""


def __getattr__(name: str) -> JobFunction:
    if name.startswith("_") or name not in WORKLOADS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return job_function(name)


@cache
def job_function(workload: str) -> JobFunction:
    """Return the function that runs a workload, with all settings in its signature and its help."""
    declared = open_workload(workload)
    known = {**declared_in(JobSettings), **declared_beside(workload)}
    settings = {name: known[name] for name in setting_names(workload)}
    arguments = [name for name, setting in settings.items() if setting.meaning.is_argument]
    if declared.source:
        arguments.append("source")

    def run(
        *given: object,
        run_dir: str | PathLike[str] = DEFAULT_ROOT,
        progress: bool | Style = True,
        trust: bool = False,
        **named: Any,
    ) -> Result:
        values = _by_name(workload, arguments, given, named)
        live = RunProgress()
        checked = _checked(workload, declared, values, live, trust=trust)
        with checked.open_target() as target:
            job = checked.at(target)
            for remark in remarks(job, checked.keys):
                live.note(remark)
            directory = Path(run_dir) / job.name
            found = run_job(job, directory, keys=checked.keys, progress=progress, live=live)
        return Result(found)

    parameters = [*_parameters(arguments, settings, has_source=bool(declared.source))]
    run.__name__ = run.__qualname__ = workload
    run.__doc__ = _described(workload, parameters, settings)
    run.__signature__ = Signature(parameters, return_annotation=Result)  # type: ignore[attr-defined]
    return run


def _by_name(
    workload: str, arguments: Sequence[str], given: Sequence[object], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Return all values of a call by name."""
    if len(given) > len(arguments):
        raise UsageError(
            f"sbench.{workload} takes its settings by name",
            hint=f"sbench.{workload}(number=8)",
        )
    values = dict(zip(arguments, given, strict=False))
    for name in values.keys() & named.keys():
        raise UsageError(f"`{name}` is given twice", hint="once is enough", field=name)
    values |= named
    for name in arguments:
        if name not in values and name != "source":
            call = _examples().get(workload, {}).get("call", "...")
            hint = f"sbench.{workload}({call})"
            raise UsageError(f"`{name}` is missing", hint=hint, field=name)
    return values


def _checked(
    workload: str, declared: Workload, values: dict[str, Any], live: RunProgress, *, trust: bool
) -> CheckedJob:
    """Return the checked job for the values of a call."""
    source: AnyRun | None = values.pop("source", None)
    if source is not None:
        saved = as_run(source, detail=False)
        confirm(saved, trust=trust)
        values |= settings_to_read(saved, values)
    if isinstance(declared, RunsCode):
        values["code"] = TOOLS.load("pack-function")(values["code"])
    if isinstance(declared, ReadsFiles):
        from serverless_bench.cli.job import open_text  # This loads click.

        changed, notes = declared.with_files(values, open_text)
        values = {name: value for name, value in changed.items() if name in setting_names(workload)}
        for note in notes:
            live.note(note)
    paths = {name: str(value) for name, value in values.items() if isinstance(value, PathLike)}
    settings = make_settings({**values, **paths, "workload": workload})
    has_objects = settings.key or settings.key_file or listing_policy(settings)
    if declared.source and not has_objects and declared.reads(load_of(settings)):
        raise UsageError(
            "no objects to read",
            hint=f"sbench.{workload}(..., source=written), with the run that wrote them, or"
            " `key_file`",
            field="source",
        )
    return check_job(settings)


def _parameters(
    arguments: Sequence[str], settings: Mapping[str, Declared], *, has_source: bool
) -> Iterator[Parameter]:
    """Yield the parameters of a function: what it works on, its settings, and how it runs."""
    for name in arguments:
        usual = None if name == "source" else Parameter.empty
        kind: Any = settings[name].kind if name in settings else AnyRun | None
        kind = {"code": Callable[[Any], object], "log": str | PathLike[str]}.get(name, kind)
        yield Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=usual, annotation=kind)
    for name, (kind, default, _) in settings.items():
        if name not in arguments:
            shown = default.value if isinstance(default, Enum) else default
            yield Parameter(name, Parameter.KEYWORD_ONLY, default=shown, annotation=kind)
    others: dict[str, tuple[object, Any]] = {
        **({"trust": (False, bool)} if has_source else {}),
        "run_dir": (str(DEFAULT_ROOT), str | PathLike[str]),
        "progress": (True, bool | Style),
    }
    for name, (value, kind) in others.items():
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=value, annotation=kind)


def _described(
    workload: str, parameters: Sequence[Parameter], settings: Mapping[str, Declared]
) -> str:
    """Return the docstring of a function."""
    declared, lines = open_workload(workload), list[str]()
    for name in (parameter.name for parameter in parameters):
        text, default = _ARGUMENTS.get(name, ""), None
        if not text:
            meaning = settings[name].meaning
            text, default = meaning.what, meaning.otherwise(declared)
        note = "" if default is None else f" Default: {default}."
        lines += [name, f"    {text}{note}"]
    usual = {"line": f"Run the workload {workload}.", "call": "number=2"}
    example = {**usual, **_examples().get(workload, {})}
    return _TEXT.format(
        line=LINES.get(workload, example["line"]),
        parameters="\n".join(lines),
        workload=workload,
        call=example["call"],
    )
