"""Flags about AWS Lambda that several features have."""

import click

from serverless_bench.cli.flags.options import option
from serverless_bench.features.aws.lambda_network import BASE_MBPS

network_quota_option = option(
    "--network-quota",
    type=click.FloatRange(min=BASE_MBPS),
    metavar="MBPS",
    show_default=False,
    help="The account's quota for the network of one function."
    f"  [default: {BASE_MBPS:g}, which every account has]",
)
