"""``sbench plan``, and the limits that ``write`` takes from it."""

import json
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.features.cost.prices import price_text
from serverless_bench.features.doctor.tests.integration.test_doctor import Cloud
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import KEYS, Server, loopback

SEED = ("write", "--number", 1800, "--mb", 2000)


def plan(sbench: Sbench, *before: str | int, more: tuple[str | int, ...] = ()) -> dict[str, Any]:
    done = sbench("plan", *before, "--format", "json", *SEED, *more)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_the_seed_job(sbench: Sbench) -> None:
    """Its cost equals that of the table, and its batches follow the quota."""
    done = sbench("plan", *SEED)
    assert (done.code, done.err) == (0, "")
    assert "1800 functions exceed a concurrency of 1000; this will be 2 batches" in done.out
    assert ", in 2 batches; the last function starts after" in done.out
    assert "\nbounded by           the quota of concurrent functions\n" in done.out
    assert "of 2026-10-02, us-east-1\n" in done.out
    assert "up to $80.86 a month until the objects are deleted, $70.31 if" in done.out
    found = plan(sbench)
    gib = 1800 * 2_097_152_000 / 2**30
    assert list(found["extra_costs"].values()) == pytest.approx(
        [gib * 0.023, gib * 0.02, gib * 0.045]
    )
    assert found["total"] == pytest.approx(1.12, rel=0.05)
    assert found["cost"]["p5"] <= found["cost"]["p50"] == found["total"] <= found["cost"]["p95"]
    assert found["forecast"]["batches"] == 2
    # 24 s for the bytes, half a second to start and to save the record.
    seconds = found["forecast"]["function_s"]
    assert list(seconds) == ["p5", "p50", "p95"]
    assert seconds["p50"] == pytest.approx(25, rel=0.02)
    # The format may follow the command, too.
    after = sbench("plan", *SEED, "--format", "json")
    assert after.json == found


def test_small_parts_are_warned_of(sbench: Sbench) -> None:
    of = ("--quota", 1800, "--arch", "x86_64")
    found = plan(sbench, *of, more=("--part-size", "8MiB"))
    # A partition takes 3,500 of 450,000 parts a second.
    assert found["forecast"]["bound_by"] == "the request rate of a partition"
    assert found["forecast"]["run_s"]["p50"] == pytest.approx(450_000 / 3500, rel=0.1)
    # 250 parts of a function, one after the other, would take 34 s.
    assert found["forecast"]["asked_per_s"] == pytest.approx(450_000 / 34, rel=0.05)
    (put,) = found["warnings"]
    assert "8 MiB parts make 13," in put
    assert "--part-size 48MiB" in put
    assert plan(sbench, *of, more=("--part-size", "72MiB"))["warnings"] == []


def test_a_raised_network_quota_helps_where_there_is_memory(sbench: Sbench) -> None:
    def seconds(*before: str | int) -> float:
        found = plan(sbench, "--quota", 1800, *before, more=("--connections", 8))
        return float(found["forecast"]["transfer_s"]["p50"])

    flat = seconds("--memory", 10240)
    assert seconds("--memory", 10240, "--network-quota", 3000) < flat / 2
    assert seconds("--memory", 2048, "--network-quota", 3000) == flat
    found = plan(sbench, "--memory", 1769, "--network-quota", 3000)
    assert "has no effect up to 2048 MB" in " ".join(found["warnings"])


def test_a_driver_far_away_launches_no_faster_than_it_can(sbench: Sbench) -> None:
    def launch_s(*before: str | int) -> float:
        found = plan(sbench, *before, more=("--number", 1000))
        return float(found["forecast"]["launch_s"]["p50"])

    # A second for 1,000 events, two if it is far away; and cold starts that differ.
    assert launch_s("--round-trip", "0.256") == pytest.approx(launch_s() + 1.0, abs=0.3)


def test_reads_are_planned_from_the_sizes_that_keys_say(sbench: Sbench) -> None:
    keys = [f"sbench/{number:032x}.{2000 << 20}" for number in range(1800)]
    (sbench.directory / "keys").write_text("\n".join(keys))
    done = sbench("plan", "--format", "json", "read", "--bucket", "b", "--key-file", "keys")
    assert done.code == 0, done.err
    assert done.json["expected"]["dollars"]["gets"] == pytest.approx(0.0007, rel=0.05)
    assert done.json["forecast"]["batches"] == 2


@pytest.mark.parametrize(("keys", "warned"), [(10_000, False), (24_000, True)])
def test_an_event_that_lambda_does_not_take_is_foreseen(
    sbench: Sbench, keys: int, *, warned: bool
) -> None:
    lines = (f"sbench/{number:032x}.65536\n" for number in range(keys))
    (sbench.directory / "keys").write_text("".join(lines))
    flags = ("--number", 1, "--objects", keys, "--bucket", "b", "--key-file", "keys")
    done = sbench("plan", "--format", "json", "read", *flags)
    assert done.code == 0, done.err
    assert any("AWS Lambda takes 1 MB" in text for text in done.json["warnings"]) == warned


def test_a_read_of_a_run_is_planned_from_its_keys(sbench: Sbench, tmp_path: Path) -> None:
    with loopback(log=tmp_path / "log") as store:
        at = ("--endpoint-url", store.endpoint_url, "--bucket", store.bucket, "--size", "1KiB")
        wrote = sbench("write", *at, "--number", 3, "--name", "w", **KEYS)
    assert wrote.code == 0, wrote.err
    of_run = ("plan", "--format", "json", "read", "--from", "w", "--bucket", "b")
    done = sbench(*of_run)
    assert done.code == 0, done.err
    assert done.json["expected"]["bytes"] == 3 * 1024
    # Keys that are given win, as for the read itself.
    assert sbench(*of_run, "--key", "sbench/" + "0" * 32 + ".7").json["expected"]["bytes"] == 7


WRITE = ("write", "--executor", "lambda", "--number", 1000, "--mb", 2000, "--bucket", "b")
ARN = "arn:aws:lambda:us-east-1:123456789012:function:f"


@pytest.mark.parametrize(
    ("where", "gib_price", "prices"),
    [
        ((), 0.0, "us-east-1"),
        (("--region", "eu-west-1"), 0.02, "us-east-1; this run: us-east-1, eu-west-1"),
        # This does not look up the bucket's region; the flag says that it is elsewhere.
        (("--function-region", "us-east-1"), 0.02, "us-east-1"),
        (("--endpoint-url", "https://0123.r2.cloudflarestorage.com"), 0.09, "us-east-1"),
    ],
)
def test_a_plan_counts_traffic_out_of_the_region_and_aws(
    sbench: Sbench, where: tuple[str, ...], gib_price: float, prices: str
) -> None:
    done = sbench("plan", "--format", "json", *WRITE, "--function", ARN, *where)
    assert done.code == 0, done.err
    network = done.json["expected"]["dollars"]["network"]
    assert network == pytest.approx(1000 * 2000 / 1024 * gib_price)
    # The environment names a store as well as the flag does.
    environment = {"AWS_ENDPOINT_URL_S3": where[1]} if "--endpoint-url" in where else {}
    flags = () if environment else where
    text = sbench("plan", *WRITE, "--function", ARN, *flags, **environment).out
    assert f"of 2026-10-02, {prices}\n" in text
    assert ("1.91 TiB" in text.partition("\ntransfer ")[2]) == (gib_price > 0)


def test_a_stack_says_where_its_bucket_is(sbench: Sbench, moto: Server) -> None:
    cloud = Cloud(moto)
    for name, region, total in (("near", "us-east-1", 1.12), ("far", "eu-west-1", 71.4)):
        cloud.deploy(name, data_region=region)
        done = sbench("plan", "--stack", name, "--format", "json", *SEED, **cloud.environment)
        assert done.code == 0, done.err
        assert done.json["total"] == pytest.approx(total, rel=0.05)
    text = sbench("plan", "--stack", "far", *SEED, **cloud.environment).out
    assert " of 2026-10-02, us-east-1; this run: us-east-1, eu-west-1\n" in text
    cloud.deploy("yuan", data_region="cn-north-1")
    done = sbench("plan", "--stack", "yuan", *SEED, **cloud.environment)
    assert done.code == 2
    assert "in CNY" in done.err


@uses("client boto3")
def test_the_functions_of_the_job_s_client_are_planned(sbench: Sbench, moto: Server) -> None:
    cloud = Cloud(moto)
    cloud.deploy("bodies", functions=["f 1769 arm64", "f-boto3 3008 arm64 boto3"])

    def gb_s(client: str) -> float:
        write = ("write", "--number", 3, "--mb", 1, "--client", client)
        done = sbench("plan", "--stack", "bodies", "--format", "json", *write, **cloud.environment)
        assert done.code == 0, done.err
        return float(done.json["at_most"]["usage_each"]["gb_s"])

    assert gb_s("boto3") / gb_s("wire") == pytest.approx(3008 / 1769, rel=0.01)
    cloud.deploy("thin", functions=["f 1769 arm64"])
    write = ("plan", "--stack", "thin", "write", "--client", "boto3")
    done = sbench(*write, **cloud.environment)
    assert (done.code, "asks for boto3" in done.err) == (2, True), done.err


def test_prices_can_be_replaced(sbench: Sbench, tmp_path: Path) -> None:
    shown = sbench("plan", "--show-prices")
    assert shown.out == price_text()
    path = tmp_path / "mine.toml"
    path.write_text(shown.out.replace('"USD"', '"EUR"').replace("0.0000133334", "0.0000266668"))
    found = plan(sbench, "--prices", str(path))
    assert found["currency"] == "EUR"
    assert found["total"] == pytest.approx(2.2, rel=0.05)
    assert "EUR" in sbench("plan", "--prices", path, *SEED).out
    path.write_text("as_of = 1\n")
    done = sbench("plan", "--prices", path, *SEED)
    assert done.code == 2
    assert len(done.err.splitlines()) == 2, "one line, and a hint"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--quota", 0),
        ("--memory", 0),
        ("--network-quota", 100),
        ("--round-trip", -1),
    ],
)
def test_bad_flags_are_one_line(sbench: Sbench, flag: str, value: str | int) -> None:
    done = sbench("plan", flag, value, "write")
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) <= 2


def test_an_unreachable_stack_is_reported(sbench: Sbench) -> None:
    done = sbench("plan", "--stack", "mine", "write", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert done.code == 4
    assert "stack 'mine'" in done.err


def test_costs_are_limited_only_where_there_are_some(sbench: Sbench) -> None:
    done = sbench("write", "--number", 1, "--mb", 1, "--max-cost", 1)
    assert done.code == 2
    assert "--executor local is free" in done.err


@uses("executor lithops")
def test_a_write_that_would_cost_too_much_is_not_started(sbench: Sbench) -> None:
    how = ("write", "--number", 2, "--mb", 1, "--executor", "lithops")
    refused = sbench(*how, "--max-cost", "0.00001")
    assert refused.code == 12, refused.err
    assert "nothing was started" in refused.err
    assert list((sbench.directory / "sbench-runs").glob("*")) == []
    allowed = sbench(*how, "--max-cost", 1, "--format", "json")
    assert (allowed.code, allowed.json["ok"]) == (0, 2), allowed.err
