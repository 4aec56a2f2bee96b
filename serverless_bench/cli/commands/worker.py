"""``sbench worker``."""

import signal
from contextlib import closing
from types import FrameType
from typing import Final

import click

from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import Duration, harmless, option
from serverless_bench.cli.interrupts import heard
from serverless_bench.cli.output.terminal import aside, say
from serverless_bench.driver.remote import parse_prefix
from serverless_bench.driver.target import resolve
from serverless_bench.errors import UsageError
from serverless_bench.job.endpoint import parse_endpoint
from serverless_bench.job.target import Addressing, Target
from serverless_bench.process import environment, worker_id
from serverless_bench.units import format_count
from serverless_bench.worker.polling import Poller
from serverless_bench.worker.user_function import ALLOW_CODE

_HINT: Final = "--control s3://BUCKET/PREFIX"


@click.command("worker")
@option(
    "--control",
    required=True,
    metavar="s3://BUCKET/PREFIX",
    help="Where its events are: the --control-prefix of the driver; also az:// and gs://.",
)
@settings(
    *("endpoint_url", "region", "addressing"),
    endpoint_url="Of the store that has the bucket; AWS without it.",
)
@harmless(
    "--idle",
    type=Duration(),
    help="End when there was nothing to do for so long; without it, wait for ever.",
)
@option(
    "--allow-code",
    is_flag=True,
    help="Also run code that comes with an event (sbench call): whoever may write below"
    " --control runs what they like here.",
)
def command(
    *,
    control: str,
    endpoint_url: str | None,
    region: str | None,
    addressing: str,
    idle: float | None,
    allow_code: bool,
) -> None:
    """Run functions here for drivers elsewhere: --executor workers.

    It takes events from below the control prefix, one at a time, and leaves records there, as a
    function on AWS Lambda does. An event is data, and no code unless that is allowed.
    """
    try:
        protocol, bucket, prefix = parse_prefix(control)
    except UsageError as exc:
        # That one names the setting of jobs.
        raise UsageError(f"--control {control!r} is no prefix", hint=_HINT) from exc
    if bucket is None:
        raise UsageError(f"{control!r} names no bucket", hint=_HINT)
    wanted = Target(
        bucket=bucket,
        protocol=protocol,
        prefix=prefix,
        endpoint_url=parse_endpoint(endpoint_url) if endpoint_url else "",
        addressing=Addressing(addressing),
        region=region or "",
    )
    with (
        closing(Poller(resolve(wanted), aside)) as poller,
        environment({ALLOW_CODE: "1" if allow_code else None}),
    ):
        _stop_on_signals(poller)
        say(
            f"worker {worker_id()} takes events from {wanted.url}; Ctrl-C or SIGTERM"
            " ends it after the present one"
        )
        poller.run(idle)
    say(f"{format_count(poller.ran, 'function')} run, {poller.failed} of them failed")


def _stop_on_signals(poller: Poller) -> None:
    """End after the present event, or at once when asked again."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        if poller.stopping:
            raise KeyboardInterrupt
        poller.stop()

    for number in heard():
        signal.signal(number, on_signal)
