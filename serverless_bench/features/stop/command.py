"""``sbench stop``."""

from functools import partial
from pathlib import Path

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import format_seconds
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import (
    format_option,
    option,
    progress_option,
    run_dir_option,
    trust_option,
)
from serverless_bench.cli.lookup import RunName, the_run
from serverless_bench.cli.output.terminal import aside, say, sections
from serverless_bench.driver.policy import Style

_HINT = "sbench stop RUN_ID --control s3://BUCKET/PREFIX"


@sections({"Target": "control"})
@click.command("stop")
@click.argument("run", type=RunName(), required=False, metavar="[RUN]")
@run_dir_option
@option(
    "--control",
    metavar="s3://BUCKET/PREFIX",
    help="Stop a run without its directory: RUN is its identifier, and this the --control-prefix"
    " of its driver; also az:// and gs://.",
)
@settings(
    *("endpoint_url", "region", "addressing"),
    endpoint_url="Endpoint of the store with the bucket of --control.  [default: AWS]",
)
@trust_option
@progress_option
@format_option
def command(
    *,
    run: str | None,
    run_dir: Path,
    control: str | None,
    trust: bool,
    progress: Style,
    format: str,
    **address: str | None,
) -> int:
    """Stop the functions of a run, and save their measurements.

    RUN is the name or the directory of a run; the default is the latest run.

    Functions end in the middle of an operation and leave records. If the driver of the run is
    active, it ends; if it has died, this command saves the records. sbench resume continues a
    stopped run.
    """
    if control is not None:
        from serverless_bench.features.remote.driver import control_at

        where = control_at(control, address, _HINT)
        if run is None:
            raise UsageError("--control needs the identifier of a run", hint=_HINT)
        # A refusal does not wait for libraries.
        from serverless_bench.driver.target import resolve
        from serverless_bench.features.stop.stopping import stop_below

        seen_s = stop_below(resolve(where), run)
        say(
            f"stopped: the functions of {run} notice it within {format_seconds(seen_s)}, end and"
            " leave their records; sbench resume RUN, where its directory is, saves them"
        )
        return 0
    from serverless_bench.cli.continued_run import continue_run
    from serverless_bench.features.stop.stopping import stop_run

    stop = partial(stop_run, progress=progress, say=aside)
    continue_run(the_run(run, run_dir), format, stop, verb="stop", trust=trust)
    return 0
