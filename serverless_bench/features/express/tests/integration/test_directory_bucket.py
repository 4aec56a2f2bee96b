"""S3 Express One Zone, as far as the loopback store supports it: jobs with a directory bucket."""

import json
import urllib.error
from collections.abc import Iterator

import pytest

from serverless_bench.clients import CLIENTS
from tests.clouds.lambda_hosts import NAME, running_host
from tests.commands.command import Sbench
from tests.contract.declared import info_of
from tests.house.members import uses
from tests.stores.servers import DIRECT, KEYS, Server, loopback

BUCKET = "bench--use1-az4--x-s3"


@pytest.fixture
def server(sbench: Sbench) -> Iterator[Server]:
    flags = ("--express", "2", "--request-log", str(sbench.directory / "request_log"))
    with loopback(*flags, log=sbench.directory / "out") as server:
        yield server


def on(server: Server) -> tuple[str, ...]:
    return ("--endpoint-url", server.endpoint_url, "--bucket", BUCKET)


def logged(sbench: Sbench) -> list[str]:
    return (sbench.directory / "request_log").read_text().splitlines()


def refused(url: str) -> int:
    with pytest.raises(urllib.error.HTTPError) as caught:
        DIRECT.open(url)
    caught.value.close()
    return caught.value.code


@uses("feature check")
@pytest.mark.parametrize("client", [name for name in CLIENTS if info_of(name).express])
def test_a_run_outlasts_its_sessions(sbench: Sbench, server: Server, client: str) -> None:
    """Objects are written, read and deleted, and the store's log agrees with the records."""
    how: tuple[str | int, ...] = (*on(server), "--client", client, "--format", "json")
    objects: tuple[str | int, ...] = ("--size", "64KiB", "--number", 2, "--key-file", "keys")
    wrote = sbench("write", *how, *objects, "--name", "w", "--warm-up", 1)
    read = sbench(
        "read", *how, "--key-file", "keys", "--duration", 5, "--threads", 2, "--name", "r"
    )
    assert (wrote.code, read.code) == (0, 0), wrote.err + read.err
    assert read.json["errors"] == {}
    checked = sbench("check", "r", "--request-log", sbench.directory / "request_log")
    assert checked.code == 0, checked.out
    assert sbench("clean", "w").code == 0
    assert sbench("clean", "r").code == 0


def test_many_parts_and_a_mix(sbench: Sbench, server: Server) -> None:
    parts = ("--size", "11MiB", "--part-size", "5MiB", "--number", 1)
    assert sbench("write", *on(server), *parts).code == 0
    mix = ("--mix", "get=2,put=1,delete=1,list=1,head=1", "--operations", 40, "--size", "4KiB")
    done = sbench("mixed", *on(server), *mix, "--number", 2, "--format", "json")
    assert done.code == 0, done.err
    assert done.json["errors"] == {}


def test_claims_and_records_stand_in_a_bucket_of_another_kind(
    sbench: Sbench, server: Server
) -> None:
    control = ("--control-prefix", "s3://records/control/")
    with running_host(KEYS) as host:
        done = Sbench(sbench.directory, {**sbench.environment, **host.environment})(
            *("write", *on(server), "--number", "2", "--size", "64KiB", "--format", "json"),
            *("--executor", "lambda", "--function", NAME, *control),
        )
    assert done.code == 0, done.err
    assert (done.json["ok"], done.json["bill"]["requests"]["put"]) == (2, 2)
    rows = [json.loads(line) for line in logged(sbench)]
    names = dict(row["name"] for row in rows if "name" in row)
    buckets = {names[row[4]] for row in rows if isinstance(row, list) and row[3] == "list_objects"}
    assert buckets == {"records"}, "what has to be in order is listed where there is one"


@uses("client minio")
@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--client", "minio"), "hint: --client awscrt, boto3, wire"),
        (("--prefix", "bench-"), "hint: --prefix bench-/"),
        (("--executor", "lambda", "--function", "f"), "hint: --control-prefix s3://BUCKET/PREFIX"),
    ],
)
def test_unsupported_requests_are_refused(
    sbench: Sbench, server: Server, flags: tuple[str, ...], says: str
) -> None:
    done = sbench("write", *on(server), "--number", 1, "--size", "1KiB", *flags)
    assert done.code == 2
    assert says in done.err
    assert not [line for line in logged(sbench) if line.startswith("[")], "nothing was asked"


def test_on_aws_region_and_style_have_to_fit(sbench: Sbench) -> None:
    write = ("write", "--bucket", BUCKET, "--number", 1, "--size", "1KiB")
    elsewhere = sbench(*write, "--region", "eu-west-1")
    assert (elsewhere.code, "is not in region eu-west-1" in elsewhere.err) == (2, True)
    path = sbench(*write, "--region", "us-east-1", "--addressing", "path")
    assert (path.code, "hint: --addressing auto" in path.err) == (2, True)


def test_requests_without_a_session_are_refused(server: Server) -> None:
    assert refused(f"{server.endpoint_url}/{BUCKET}/key") == 403
    # The store also has buckets of another kind.
    assert refused(f"{server.endpoint_url}/another/key") == 404
