"""From flags to a job, and from a job to a report: what ``write``, ``read`` and ``demo`` share."""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.cli.exit_codes import exit_code_of
from serverless_bench.cli.options import named_values
from serverless_bench.cli.pace import beyond_the_link
from serverless_bench.cli.target import Where, check_meant
from serverless_bench.clock import utc_stamp
from serverless_bench.errors import UsageError
from serverless_bench.job.keys import check_prefix, parse_layout
from serverless_bench.job.spec import JobSpec, Load, OperationKind, Stat, Target, Transfer, Verify
from serverless_bench.units import KIB, MIB, parse_link

if TYPE_CHECKING:
    from serverless_bench.cli.budget import CostFlags
    from serverless_bench.cli.remote import Remote
    from serverless_bench.driver.run import OnOutcome
    from serverless_bench.reporters.base import Reporter
    from serverless_bench.rundir.archive import Run

_LOCAL_PER_CPU: Final = 4
"""Functions at once per processor of this machine, if the user does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job whose flags are all checked; only its store is not there yet."""

    job: JobSpec
    where: Where
    remote: "Remote"
    cost: "CostFlags"
    directory: Path
    reporter: "Reporter"
    quiet: bool
    """Whether standard output belongs to the report alone."""
    pickle: Path | None
    keys: Sequence[str]
    ceiling: bool
    """Whether to measure what the harness itself can do, after the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A run and the exit code that it stands for."""

    run: "Run"
    exit_code: int


class Planned(Exception):
    """What ``prepare`` ends with inside of ``planning``: nothing is to be started.

    Parameters
    ----------
    prepared
        What would be.
    """

    def __init__(self, prepared: Prepared) -> None:
        super().__init__()
        self.prepared = prepared


_PLANNING: Final = ContextVar("planning", default=False)


def prepared_by(command: click.Command, flags: Mapping[str, Any]) -> Prepared:
    """Return what a command would start with these flags, checked as the command does it.

    Raises
    ------
    UsageError, PluginError
        As the command.
    """
    if command.callback is None:
        raise TypeError(f"{command.name} does nothing")
    token = _PLANNING.set(True)
    try:
        command.callback(**flags)
    except Planned as exc:
        return exc.prepared
    finally:
        _PLANNING.reset(token)
    raise TypeError(f"{command.name} prepares no job")


def prepare(
    workload: str,
    flags: dict[str, Any],
    *,
    invocations: int,
    objects: int = 1,
    object_bytes: int | None = None,
    repeats: int = 1,
    keys: Sequence[str] = (),
) -> Prepared:
    """Check a command's flags before anything starts.

    Parameters
    ----------
    workload, invocations, objects, object_bytes, repeats
        As in ``JobSpec``.
    flags
        Of ``target_options``, ``transfer_options``, ``run_options`` and ``format_option``;
        and ``load``, fields of ``Load`` that no flag sets by itself.
    keys
        Objects to read.

    Raises
    ------
    UsageError
        If a flag is wrong.
    PluginError
        If a client, executor or reporter is unknown or lacks its library.
    """
    from serverless_bench.cli.budget import cost_flags
    from serverless_bench.cli.ceiling import check_ceiling
    from serverless_bench.cli.remote import find_remote
    from serverless_bench.driver.plan import check
    from serverless_bench.executors import open_executor
    from serverless_bench.reporters import open_reporter

    style, executor = flags["format"], flags["executor"]
    cost = cost_flags(flags)
    remote = find_remote(flags)
    where = Where(**{field.name: flags[field.name] for field in fields(Where)})
    where, endpoints = several(where)
    job = JobSpec(
        name=flags["name"] or f"{utc_stamp()}-{workload}-{secrets.token_hex(2)}",
        workload=workload,
        target=Target(
            client=where.client,
            bucket="",
            prefix=where.prefix,
            endpoint_url="",
            options=tuple(sorted(named_values("--client-option", flags.get("client_option", ())))),
        ),
        transfer=_transfer(flags),
        executor=executor,
        invocations=invocations,
        concurrency=_concurrency(flags["concurrency"], executor, invocations),
        objects=objects,
        object_bytes=object_bytes,
        repeats=repeats,
        deadline_s=flags["deadline"],
        duration_s=flags["duration"],
        warmup=flags["warm_up"],
        gate=flags["gate"],
        gate_timeout_s=flags["gate_timeout"],
        link_bytes_per_s=None if flags["link"] is None else parse_link(flags["link"]),
        seed=flags["seed"],
        functions=remote.functions,
        start_timeout_s=flags["start_timeout"],
        load=_load(flags, flags.get("load", {})),
        endpoints=endpoints,
    )
    if Path(job.name).name != job.name:
        raise UsageError(f"--name {job.name!r} is not a plain name", hint="--run-dir takes a path")
    check_writable("--pickle", flags.get("pickle"))
    check(job, keys)
    check_prefix(remote.prefix or "")
    _check_client(job)
    open_executor(job)
    ceiling = flags.get("ceiling", False)
    if ceiling:
        check_ceiling(job)
    prepared = Prepared(
        job=job,
        where=where,
        remote=remote,
        cost=cost,
        directory=flags["run_dir"] / job.name,
        reporter=open_reporter(style),
        quiet=style != "text",
        pickle=flags.get("pickle"),
        keys=keys,
        ceiling=ceiling,
    )
    if _PLANNING.get():
        raise Planned(prepared)
    return prepared


def perform(prepared: Prepared, target: Target) -> Finished:
    """Run a job and report on it; its run directory is named before it starts."""
    from serverless_bench.analysis.summary import summarize
    from serverless_bench.cli.budget import Budget
    from serverless_bench.cli.ceiling import measure_ceiling
    from serverless_bench.driver.run import CutShort, run_job
    from serverless_bench.executors.base import Live
    from serverless_bench.formats.exporters.pywren import write_pickle
    from serverless_bench.reporters.pace import overdue

    check_meant(target, prepared.job.executor)
    control = prepared.remote.control(target)
    target = replace(target, options=prepared.job.target.options)
    job, live = replace(prepared.job, target=target, control=control), Live()
    cost = prepared.cost
    budget = None if cost.limit is None else Budget(job, cost, prepared.keys)
    for note in beyond_the_link(job, prepared.keys):
        click.echo(f"note: {note}", err=True)
    click.echo(f"run directory: {prepared.directory}", err=prepared.quiet)
    problem: CutShort | None = None
    on_outcome: OnOutcome = lambda _: None  # noqa: E731
    if budget is not None:
        on_outcome = budget.watch(live, on_outcome)
    try:
        run = run_job(
            job,
            prepared.directory,
            keys=prepared.keys,
            progress=True,
            live=live,
            on_outcome=on_outcome,
        )
    except CutShort as exc:
        problem, run = exc, exc.run
    for note in live.notes:
        click.echo(f"note: {note}", err=True)
    summary = summarize(run, prices=cost.prices)
    prepared.reporter(summary, sys.stdout)
    sys.stdout.flush()
    for note in overdue(summary) if prepared.quiet else ():
        click.echo(f"note: {note}", err=True)
    if prepared.ceiling and problem is None:
        measured = measure_ceiling(job, prepared.keys)
        click.echo(measured.sentence(summary.whole_bytes_per_s), err=prepared.quiet)
    if prepared.pickle is not None:
        write_pickle(run, prepared.pickle)
    if problem is None:
        return Finished(run=run, exit_code=exit_code_of(summary))
    click.echo(f"sbench: {problem}\nhint: {problem.hint}", err=True)
    return Finished(run=run, exit_code=problem.exit_code)


def check_writable(flag: str, path: Path | None) -> None:
    """Refuse a file that could not be written after the run.

    Raises
    ------
    UsageError
        If its directory is missing or not ours to write to.
    """
    if path is not None and not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError(f"cannot write {flag} {path}", hint="name a file in a directory of yours")


def _transfer(flags: dict[str, Any]) -> Transfer:
    part_mb = flags["part_mb"]
    return Transfer(
        connections=flags["connections"],
        part_bytes=None if part_mb is None else part_mb * MIB,
        block_bytes=flags["block_kib"] * KIB,
        verify=Verify(flags["verify"]),
        retries=flags["retries"],
        timeout_s=flags["timeout"],
        min_split_bytes=_mib(flags.get("min_split_mb")),
        stat=Stat(flags.get("stat", Stat.KEY)),
    )


def _mib(count: float | None) -> int | None:
    return None if count is None else round(count * MIB)


def _load(flags: Mapping[str, Any], more: Mapping[str, Any]) -> Load:
    """Return what the flags say of a function's operations; some commands lack some."""
    named = {
        "threads": "threads",
        "rate": "rate_per_s",
        "arrivals": "arrivals",
        "layout": "layout",
        "compressibility": "compressibility",
        "duplication": "duplication",
    }
    given: dict[str, Any] = {name: flags[flag] for flag, name in named.items() if flag in flags}
    if flags.get("sizes") is not None:
        from serverless_bench.job.sizes import parse_sizes

        # The text that the functions get needs no file.
        given["sizes"] = str(parse_sizes(flags["sizes"]))
    parse_layout(given.get("layout", "random"))
    return Load(**given, **more)


def several(where: Where) -> tuple[Where, tuple[str, ...]]:
    """Split a list of endpoints into the first one and the others."""
    if where.endpoint_url is None:
        return where, ()
    first, *others = where.endpoint_url.split(",")
    return replace(where, endpoint_url=first), tuple(others)


def _check_client(job: JobSpec) -> None:
    """Refuse operations that the client does not offer, and knobs that it does not have."""
    from serverless_bench.clients import client_class
    from serverless_bench.clients.options import check as check_options
    from serverless_bench.worker.operations import needs

    client = client_class(job.target.client)
    check_options(job.target)
    kinds = [OperationKind(name) for name, _ in job.load.mix]
    if job.load.split is not None:
        kinds.append(OperationKind.GET_RANGE)
    needed = {needs(kind) for kind in kinds}
    if job.transfer.part_bytes is not None:
        needed.add("range" if job.workload == "read" else "multipart")
    lacking = sorted(needed - client.operations)
    if job.transfer.stat is not Stat.KEY and "head" not in client.operations:
        lacking.append("head")
    if lacking:
        raise UsageError(
            f"--client {job.target.client} does not offer {', '.join(lacking)}",
            hint=f"it offers {', '.join(sorted(client.operations))}; wire and boto3 offer all",
        )


def _concurrency(asked: int | None, executor: str, invocations: int) -> int:
    """Return how many functions run at once: elsewhere all of them, as PyWren did."""
    if asked is not None:
        return asked
    if executor == "inline":
        return 1
    here = _LOCAL_PER_CPU * (os.cpu_count() or 1)
    return max(1, min(invocations, here) if executor == "local" else invocations)
