"""Parse the command after ``plan``, and return its job without running it."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import click

from serverless_bench.base.errors import UsageError, suggestion
from serverless_bench.cli.flags.defaults import defaults_for
from serverless_bench.cli.job import Prepared, prepare
from serverless_bench.cli.lookup import given_flags
from serverless_bench.cli.main import COMMANDS as ALL_COMMANDS
from serverless_bench.cli.main import open_command
from serverless_bench.cli.output.terminal import in_sections
from serverless_bench.clients.clouds import CLOUDS
from serverless_bench.job.endpoint import without_default_port
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.workload import WORKLOADS

COMMANDS: Final = tuple(name for name in ALL_COMMANDS if name in WORKLOADS)


def job_of(prepared: Prepared) -> JobSpec:
    """Return the job of a command as a remote executor would run it."""
    # Remote executors launch all functions at once unless the flags limit this.
    concurrency = prepared.checked.settings.concurrency or prepared.job.number
    target, place = prepared.job.target, prepared.checked.place
    endpoints: Sequence[str] = (target.endpoint_url, *prepared.job.endpoints)
    if target.store is None and not target.endpoint_url:
        endpoints = tuple(_configured_endpoints(target.protocol))
    target = replace(
        target,
        endpoint_url=next(iter(endpoints), ""),
        # Without a region, the bucket is in the region of the functions unless they are far away.
        region=target.region or ("" if place.far else place.region or ""),
    )
    return replace(
        prepared.job, target=target, endpoints=tuple(endpoints[1:]), concurrency=concurrency
    )


def _configured_endpoints(protocol: StoreProtocol) -> frozenset[str]:
    """Return the endpoints in the environment and the AWS configuration; empty for AWS.

    For other protocols the environment names an endpoint if it names an account.
    """
    urls = os.environ.get("SBENCH_ENDPOINT_URL", "").split(",")
    if protocol in CLOUDS:
        with suppress(UsageError):
            urls.append(CLOUDS.load(protocol).endpoint())
    else:
        urls.append(_configured_endpoint() or "")
    return frozenset(without_default_port(url.strip().rstrip("/")) for url in urls) - {""}


def _configured_endpoint() -> str | None:
    """Return the S3 endpoint in the AWS configuration or the environment."""
    from botocore.configprovider import ConfiguredEndpointProvider

    from serverless_bench.driver.boto import configured

    session = configured()
    if str(session.get_config_variable("ignore_configured_endpoint_urls")).lower() == "true":
        return None
    provider = ConfiguredEndpointProvider(session.full_config, session.get_scoped_config(), "s3")
    url: str | None = provider.provide()
    return url


def prepare_command(words: Sequence[str], **decided: Any) -> Prepared:
    """Parse and check a command with its flags, except those that are decided.

    Raises
    ------
    UsageError
        If the command is unknown, or a flag is invalid.
    """
    name, *arguments = words
    if name not in COMMANDS:
        raise UsageError(f"cannot plan command {name!r}", hint=suggestion(name, COMMANDS))
    command = in_sections(open_command(name))
    context = command.make_context(
        name,
        arguments,
        parent=click.get_current_context(),
        default_map=defaults_for(command),
    )
    flags = context.params
    if source := flags.get("from"):
        from serverless_bench.driver.source import shape_of
        from serverless_bench.rundir.listing import HEADER, find_run
        from serverless_bench.rundir.run import read_header
        from serverless_bench.rundir.schema import check_header

        path = find_run(source, flags["run_dir"])
        job = check_header(path / HEADER, read_header(path))
        # A plan sends no request, so that the run may be of anyone.
        flags |= shape_of(job, path, given_flags(context, flags))
    return prepare(name, {**flags, **decided})
