"""``sbench worker``."""

import signal
from contextlib import closing
from types import FrameType
from typing import TYPE_CHECKING, Final

import click

from serverless_bench.base.process import environment, worker_id
from serverless_bench.base.units import format_count
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import DURATION, option
from serverless_bench.cli.output.terminal import aside, say
from serverless_bench.cli.process import heard

if TYPE_CHECKING:
    from serverless_bench.features.remote.polling import Poller

_HINT: Final = "--control s3://BUCKET/PREFIX"


@click.command("worker")
@option(
    "--control",
    required=True,
    metavar="s3://BUCKET/PREFIX",
    help="Location of the events: the --control-prefix of the driver; also az:// and gs://.",
)
@settings(
    *("endpoint_url", "region", "addressing"),
    endpoint_url="Endpoint of the store with the bucket.  [default: AWS]",
)
@option(
    "--idle",
    type=DURATION,
    help="Stop after this time without an event.  [default: wait forever]",
)
@option(
    "--allow-code",
    is_flag=True,
    help="Also run code from events (sbench custom): anyone with write access to --control can"
    " then run any code on this machine.",
)
def command(
    *,
    control: str,
    idle: float | None,
    allow_code: bool,
    **address: str | None,
) -> None:
    """Run functions on this machine for drivers on other machines: --executor workers.

    The worker takes events from the control prefix, one at a time, and writes records there,
    like a function on AWS Lambda. Events are data; code in events runs only with --allow-code.
    """
    from serverless_bench.features.remote.driver import control_at

    where = control_at(control, address, _HINT)
    # A refusal does not wait for libraries.
    from serverless_bench.driver.target import resolve
    from serverless_bench.features.custom.user_function import ALLOW_CODE
    from serverless_bench.features.remote.polling import Poller

    with (
        closing(Poller(resolve(where), aside)) as poller,
        environment({ALLOW_CODE: "1" if allow_code else None}),
    ):
        _stop_on_signals(poller)
        say(
            f"worker {worker_id()} takes events from {where.url}; Ctrl-C or SIGTERM"
            " stops it after the current event"
        )
        poller.run(idle)
    say(f"{format_count(poller.ran, 'function')} run, {poller.failed} of them failed")


def _stop_on_signals(poller: "Poller") -> None:
    """Stop after the current event on the first signal, and immediately on the second."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        if poller.stopping:
            raise KeyboardInterrupt
        poller.stop()

    for number in heard():
        signal.signal(number, on_signal)
