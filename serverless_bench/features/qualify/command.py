"""``sbench qualify``."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import click

from serverless_bench.base.errors import UsageError
from serverless_bench.cli.flags.of_jobs import settings
from serverless_bench.cli.flags.options import DURATION, FOLDER, choose_format, new_name, option
from serverless_bench.cli.output.terminal import say, sections
from serverless_bench.features.answers.showing import keep_and_show
from serverless_bench.rundir.listing import DEFAULT_ROOT

if TYPE_CHECKING:
    from serverless_bench.job.target import Target

_PLACE: Final = ("endpoint_url", "region", "addressing", "prefix")


@sections({"Checks": "for functions budget"})
@click.command("qualify")
@click.argument("bucket", required=False, metavar="[STORE]")
@click.option(
    "--for",
    "wanted",
    default="",
    metavar="NAME[,...]",
    help="Check only these guarantees, or those that these programs rely on, such as icechunk.",
)
@option(
    "--functions",
    type=click.IntRange(4, 64),
    default=8,
    help="Functions, threads of this process, that send requests.",
)
@option("--budget", type=DURATION, default="2min", help="Time limit for all checks.")
@settings(
    *_PLACE,
    "name",
    endpoint_url="URLs of the store, separated by commas: functions take turns at them.",
    name="Name of the result.  [default: a time stamp]",
)
@option("--run-dir", type=FOLDER, default=DEFAULT_ROOT, help="Parent directory of the result.")
@choose_format("text", "json", "markdown")
def command(bucket: str | None, *, wanted: str, functions: int, budget: float, **flags: Any) -> int:
    """Check guarantees of a store that table formats, locks and backups rely on.

    STORE is a bucket; without it, the store of this machine is checked. Functions write, read,
    list and delete small objects, many at the same time, and lose responses on purpose.
    A guarantee is safe, unsafe with the requests that prove it, not supported by the store, or
    unknown. The objects are deleted.
    """
    from serverless_bench.features.qualify.guarantees import chosen

    guarantees = chosen(filter(None, wanted.split(",")))
    style, root = flags["format"], flags["run_dir"] / new_name("qualify", flags["name"])
    with _located(bucket, {name: flags[name] for name in _PLACE}) as found:
        from serverless_bench.features.cost.prices import load_prices
        from serverless_bench.features.qualify.measure import cost_of, measure
        from serverless_bench.features.qualify.result import Qualification
        from serverless_bench.features.qualify.trial import Lab, opened_ledger

        with opened_ledger(root) as ledger:
            targets = [replace(one, prefix=f"{one.prefix}{root.name}/") for one in found]
            lab, left = Lab(targets=targets, functions=functions, ledger=ledger), 0
            try:
                findings = measure(
                    lab,
                    guarantees,
                    budget_s=budget,
                    show=lambda one: say(
                        f"{one.guarantee.name}: {one.verdict}, tries: {one.tries:,}",
                        err=style != "text",
                    ),
                )
            finally:
                left = lab.close()
                if left:
                    say(f"{left} of the objects in {ledger.name} could not be deleted", err=True)
    result = Qualification(
        endpoints=[target.endpoint_url for target in targets],
        bucket=targets[0].bucket,
        functions=functions,
        findings=findings,
        requests=lab.requests,
        dollars=cost_of(lab.requests, load_prices()),
        left=left,
    )
    keep_and_show(
        root,
        style,
        lambda style, _: result.lines(style),
        command="qualify",
        headline=result.headline,
        document=result.to_json(),
    )
    return result.exit_code


@contextmanager
def _located(bucket: str | None, place: dict[str, Any]) -> "Iterator[list[Target]]":
    """Yield the bucket at each endpoint; the store of this machine runs as long as the block.

    Raises
    ------
    UsageError
        If the store has another protocol than S3.
    StoreError
        If an endpoint does not respond.
    """
    from serverless_bench.driver.location import check_meant, endpoints_of, locate
    from serverless_bench.driver.target import embedded_target, resolve
    from serverless_bench.job.settings import make_settings
    from serverless_bench.job.target import StoreProtocol

    chosen = make_settings({"workload": "write", "bucket": bucket, **place})
    target, _ = locate(chosen)
    if target.protocol is not StoreProtocol.S3:
        raise UsageError(f"qualify sends requests of S3, not of {target.protocol}://")
    if target.store is not None:
        check_meant(target)
        with embedded_target(prefix=target.prefix) as embedded:
            yield [embedded]
        return
    urls = endpoints_of(chosen) or ("",)
    yield [resolve(replace(target, endpoint_url=url)) for url in urls]
