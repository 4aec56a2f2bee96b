"""The command ``sbench serve``."""

import json
from collections.abc import Mapping
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, Final

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import parse_duration
from serverless_bench.cli.flags.options import (
    DURATION,
    FILE,
    RATE,
    SHARE,
    SIZE,
    Parsed,
    group,
    option,
    port_option,
)
from serverless_bench.cli.output.terminal import say, say_json, sections
from serverless_bench.features.aws.flags import network_quota_option
from serverless_bench.features.aws.lambda_network import BASE_MBPS, BURST_BYTES, function_network
from serverless_bench.features.aws.stack.template import MEMORY_MIB
from serverless_bench.features.loopback.faults import FaultKind


def _per_s(text: str) -> float:
    with suppress(ValueError):
        if 0 < (value := float(text)) < inf:
            return value
    raise UsageError(f"{text!r} is not a number above 0", hint="write it as in 3500")


_LIMIT: Final = Parsed("number", _per_s)
_BANNER = """\
serving at {url}
  export AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any
  sbench write --endpoint-url {url} --bucket any --key-file keys.txt
  sbench read --endpoint-url {url} --bucket any --key-file keys.txt
statistics: {url}/-/statistics, and here after Ctrl-C"""

_FAULTS = {
    FaultKind.SLOWDOWN: "503 SlowDown.",
    FaultKind.ERROR: "500 InternalError.",
    FaultKind.MISSING: "404 NoSuchKey for a GET.",
    FaultKind.RESET_PUT: "Connection reset in the middle of an upload.",
    FaultKind.RESET_GET: "Connection reset in the middle of a download.",
    FaultKind.TRUNCATE: "Connection closed before the announced length.",
    FaultKind.SHORT: "Object shorter than it was written.",
    FaultKind.STALE: "Bytes of another generation.",
    FaultKind.FLIP: "Flipped bits in a download.",
    FaultKind.LOST_ANSWER: "Connection closed in place of the answer to a write or deletion.",
    FaultKind.LIST_ERROR: "503 SlowDown for a listing.",
    FaultKind.LIST_MISSING: "Page of a listing without a key.",
    FaultKind.DELETE_ERROR: "503 SlowDown for a deletion.",
    FaultKind.DELETE_IGNORED: "Deletion answered as done, but not done.",
}
_SKEW: Final = Parsed(
    "duration",
    lambda text: parse_duration(text.removeprefix("-")) * (-1 if text.startswith("-") else 1),
)


@sections(
    {
        "Server": "port host tls check express strict request-log log",
        "Faults, most as a rate from 0 to 1": "slowdown error missing reset-put reset-get truncate"
        " short stale flip flip-bits lost-answer list-error list-missing delete-error"
        " delete-ignored racy-conditions seed",
        "Speed and limits": "latency queue connection-rate function-burst function-rate"
        " function-memory network-quota function-scale put-limit get-limit stall clock-skew",
    }
)
@click.command("serve")
@option("--host", default="127.0.0.1", help="Address to listen on.")
@port_option
@option(
    "--tls",
    type=FILE,
    help="Certificate and key in one PEM file.",
)
@option(
    "--check",
    type=click.Choice(["full", "none"]),
    default="full",
    help="Whether uploads are compared or only counted.",
)
@option(
    "--request-log",
    type=FILE,
    help="Write all requests to this file, for sbench check.",
)
@option(
    "--express",
    type=DURATION,
    help="Treat buckets ...--ZONE--x-s3 as directory buckets, with sessions of this lifetime.",
)
@option("--strict", is_flag=True, help="Let clients read only written objects.")
@group(
    # Share of the requests with each fault.
    *(
        option(f"--{kind}", type=SHARE, default=0.0, show_default=False, help=text)
        for kind, text in _FAULTS.items()
    ),
    option(
        "--racy-conditions",
        is_flag=True,
        help="Compare and write conditional writes in two steps, a millisecond apart.",
    ),
    option("--flip-bits", type=int, default=3, help="Number of bits that --flip inverts."),
    option("--seed", type=int, default=0, help="Seed of the choice of failures."),
    option(
        "--log",
        type=FILE,
        help="Write injected faults to this file, in JSON Lines.",
    ),
)
@group(
    # Limits on latency and rates.
    option(
        "--latency",
        metavar="DIST",
        help="fixed:TIME, exponential:MEAN, uniform:LOW,HIGH or lognormal:MEDIAN,SIGMA.",
    ),
    option(
        "--queue",
        metavar="N:DIST",
        help="Serve N requests on objects concurrently, each for a time of this distribution.",
    ),
    option("--connection-rate", type=RATE, help="Rate per connection, as in 20MiB."),
    option("--function-burst", type=SIZE, help="Burst per function and direction."),
    option("--function-rate", type=RATE, help="Rate after the burst is used up."),
    option(
        "--function-memory",
        type=click.IntRange(MEMORY_MIB[0], MEMORY_MIB[-1]),
        metavar="MB",
        help="Burst and rate of a Lambda function with this memory.",
    ),
    network_quota_option,
    option(
        "--function-scale",
        type=SHARE,
        show_default=False,
        help="Fraction of the burst and the rate of --function-memory.",
    ),
    option("--put-limit", type=_LIMIT, metavar="N", help="Writes per second and prefix."),
    option("--get-limit", type=_LIMIT, metavar="N", help="Reads per second and prefix."),
    option(
        "--stall",
        metavar="AT:FOR",
        help="Send no response for a time FOR, a time AT after the first, as in 2s:500ms.",
    ),
    option(
        "--clock-skew",
        type=_SKEW,
        default=0.0,
        show_default=False,
        help="Error of the clock, as in 2s or -2s.",
    ),
)
def command(host: str, port: int, tls: Path | None, **flags: Any) -> None:
    """Serve S3 without keeping data, for calibration and for planned faults.

    Uploads are compared with the content of their keys and discarded; downloads are
    generated. All buckets exist, and any credentials are accepted.
    """
    from serverless_bench.features.loopback.shaping import Shape
    from serverless_bench.features.loopback.state import LoopbackSettings

    settings = LoopbackSettings(
        host=host,
        port=port,
        tls=tls,
        verifies=flags["check"] == "full",
        strict=flags["strict"],
        express_s=flags["express"],
        seed=flags["seed"],
        rates={kind: flags[kind.replace("-", "_")] for kind in FaultKind},
        flip_bits=flags["flip_bits"],
        racy_conditions=flags["racy_conditions"],
        log=flags["log"],
        request_log=flags["request_log"],
        shape=Shape(
            latency=flags["latency"],
            queue=flags["queue"],
            connection_bytes_per_s=flags["connection_rate"],
            **_function(flags),
            put_per_s=flags["put_limit"],
            get_per_s=flags["get_limit"],
            stall=flags["stall"],
        ),
        clock_skew_s=flags["clock_skew"],
    )
    from serverless_bench.features.loopback.server import LoopbackServer

    with LoopbackServer(settings) as server:
        try:
            # A reader of the first line may end the server before the last one is written.
            say(*_BANNER.format(url=server.endpoint_url).splitlines())
            server.serve_forever()
        except KeyboardInterrupt:
            # Ctrl-C and SIGTERM end the server.
            say_json(json.dumps(server.state.statistics()))


def _function(flags: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the network of each function, from its flags or from AWS's model."""
    memory, scale = flags["function_memory"], flags["function_scale"]
    if memory is None:
        for name in ("network_quota", "function_scale"):
            if flags[name] is not None:
                raise UsageError(f"--{name.replace('_', '-')} needs --function-memory")
        return {
            "function_burst_bytes": flags["function_burst"],
            "function_bytes_per_s": flags["function_rate"],
        }
    if flags["function_burst"] is not None or flags["function_rate"] is not None:
        raise UsageError(
            "--function-memory already determines burst and rate",
            hint="omit --function-burst and --function-rate",
        )
    if scale == 0:
        raise UsageError("--function-scale must be above 0%")
    rate = function_network(memory, quota_mbps=flags["network_quota"] or BASE_MBPS)
    return {
        "function_burst_bytes": BURST_BYTES * (scale or 1),
        "function_bytes_per_s": rate * (scale or 1),
    }
