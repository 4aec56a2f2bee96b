"""``sbench aws prices``: prices of a region from the user's account, or from offer files."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.driver.target import resolve
from serverless_bench.features.cost.prices import load_prices
from serverless_bench.features.doctor.tests.integration.test_doctor import Cloud
from serverless_bench.job.target import Target
from tests.clouds.price_lists import DAY, PRICES, offers, price_service, products
from tests.commands.command import Sbench
from tests.stores.servers import Server, credentials

KEYS = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
WRITE = ("write", "--executor", "lambda", "--function", "f", "--number", 10, "--size", "1MiB")


@pytest.fixture(scope="module")
def account() -> Iterator[Mapping[str, str]]:
    with price_service(*(one for region in PRICES for one in products(region))) as url:
        yield {**KEYS, "AWS_ENDPOINT_URL_PRICING": url}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path / "config")}


@pytest.mark.parametrize("region", PRICES)
def test_prices_of_a_region_come_from_the_account(
    sbench: Sbench, account: Mapping[str, str], home: dict[str, str], region: str
) -> None:
    done = sbench("aws", "prices", "--region", region, **account, **home)
    assert (done.code, done.err) == (0, "")
    first, missing = done.out.splitlines()
    path = Path(home["XDG_CONFIG_HOME"], "sbench", f"aws-{region}.toml")
    assert first == f"prices of {region}, in AWS's list of {DAY}: {path}"
    assert missing.startswith("not in the list, so those of us-east-1: express.put, ")
    found, published = load_prices(path), {n: float(v) for n, v in PRICES[region].items()}
    assert (found.region, found.as_of, found.currency) == (region, DAY, "USD")
    assert found.lambda_arm64_gb_s == published["arm"]
    assert found.lambda_x86_64_gb_s == published["x86"]
    assert found.lambda_request == published["call"]
    assert (found.s3_put, found.s3_get) == (published["put"], published["get"])
    assert (found.s3_storage_gb_month, found.logs_ingest_gb) == (
        published["month"],
        published["logs"],
    )
    assert found.network_nat_gb == published["nat"]
    # Neither the free tier nor the single region with a higher price.
    assert (found.network_internet_gb, found.network_cross_region_gb) == (
        published["internet"],
        published["region"],
    )
    assert found.kms_request == 0.000003
    assert found.express_put == load_prices().express_put
    assert f"AmazonS3 of {DAY}: " in path.read_text()
    shown = sbench("plan", "--show-prices", "--prices", region, **home)
    assert shown.out == path.read_text()


def test_plan_and_limit_use_the_prices_of_their_region(
    sbench: Sbench, account: Mapping[str, str], home: dict[str, str]
) -> None:
    there = (*WRITE, "--bucket", "b", "--function-region", "ap-south-1", "--region", "ap-south-1")

    def planned() -> str:
        return sbench("plan", *there, **home).out

    assert "\nprices               of 2026-10-02, us-east-1; this run: ap-south-1\n" in planned()
    assert sbench("aws", "prices", "--region", "ap-south-1", **account, **home).code == 0
    assert f"\nprices               of {DAY}, ap-south-1\n" in planned()
    named = sbench("plan", "--prices", "us-east-1", *there, **home)
    assert "of 2026-10-02, us-east-1; this run: ap-south-1\n" in named.out
    done = sbench("plan", "--prices", "eu-west-1", *there, **home)
    assert done.code == 2
    assert "there are no prices of eu-west-1" in done.err
    assert "sbench aws prices --region eu-west-1" in done.err


def test_offer_files_say_the_same_as_the_account(
    sbench: Sbench, account: Mapping[str, str], home: dict[str, str], tmp_path: Path
) -> None:
    flags, region = list[str | Path](), "eu-central-1"
    for number, offer in enumerate(offers(*products(region))):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(offer))
        flags += ["--file", path]
    table = Path(home["XDG_CONFIG_HOME"], "sbench", f"aws-{region}.toml")
    assert sbench("aws", "prices", "--region", region, *flags, **home).code == 0
    of_files = table.read_text()
    assert sbench("aws", "prices", "--region", region, **account, **home).code == 0
    assert table.read_text() == of_files
    # Lambda's prices alone do not make a bill.
    done = sbench("aws", "prices", "--region", region, *flags[:2], **home)
    assert done.code == 2
    assert "has no s3.put, s3.get, s3.storage_gb_month of eu-central-1" in done.err
    assert "at least AWSLambda and AmazonS3" in done.err


@pytest.mark.parametrize(
    ("offer", "says"),
    [
        ({}, "not a price list of AWS: KeyError: 'publicationDate'"),
        ([], "not a price list of AWS: TypeError"),
        (None, "cannot read offer file"),
    ],
)
def test_other_files_are_refused_in_one_line(
    sbench: Sbench, home: dict[str, str], tmp_path: Path, offer: object, says: str
) -> None:
    path = tmp_path / "offer.json"
    path.write_text("{" if offer is None else json.dumps(offer))
    done = sbench("aws", "prices", "--region", "eu-central-1", "--file", path, **home)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert not Path(home["XDG_CONFIG_HOME"]).exists()


def test_a_foreign_currency_is_refused_in_one_line(
    sbench: Sbench, home: dict[str, str], tmp_path: Path
) -> None:
    done = sbench("aws", "prices", "--region", "cn-north-1", **home)
    assert done.code == 2
    assert done.err.startswith("sbench: AWS bills cn-north-1 in CNY, and sbench keeps prices in")
    # A price list may have one, too.
    offer = next(offers(*products("eu-central-1", currency="EUR")))
    path = tmp_path / "offer.json"
    path.write_text(json.dumps(offer))
    done = sbench("aws", "prices", "--region", "eu-central-1", "--file", path, **home)
    assert done.code == 2
    assert done.err.startswith("sbench: AWS bills eu-central-1 in EUR, and")


@pytest.mark.parametrize(
    ("words", "text", "hint"),
    [
        (
            ("aws", "prices", "--region", "nowhere-9"),
            "AWS has no region 'nowhere-9'",
            "name one as AWS does, as in eu-west-1",
        ),
        (
            ("plan", "--prices", "cn-north-1", "write"),
            "AWS bills cn-north-1 in CNY, and sbench keeps prices in dollars only",
            "--prices FILE takes a table of yours: sbench plan --show-prices writes one",
        ),
        (
            ("plan", "--prices", "eusc-de-east-1", "write"),
            "AWS bills eusc-de-east-1 in EUR, and sbench keeps prices in dollars only",
            "--prices FILE takes a table of yours: sbench plan --show-prices writes one",
        ),
        (
            ("plan", "--prices", "eu-west-1", "write"),
            "there are no prices of eu-west-1; they have not been fetched from AWS",
            "sbench aws prices --region eu-west-1",
        ),
    ],
)
def test_a_region_without_prices_is_one_line(
    sbench: Sbench, home: dict[str, str], words: tuple[str, ...], text: str, hint: str
) -> None:
    done = sbench(*words, **home)
    assert (done.code, done.out) == (2, "")
    assert done.err == f"sbench: {text}\nhint: {hint}\n"


def test_an_account_that_does_not_answer_is_one_line(sbench: Sbench, home: dict[str, str]) -> None:
    with price_service() as url:
        account = {**KEYS, "AWS_ENDPOINT_URL_PRICING": url}
        done = sbench("aws", "prices", "--region", "eu-central-1", **account, **home)
    assert done.code == 2
    assert "the price list has no lambda.arm64_gb_s" in done.err
    done = sbench("aws", "prices", **{**account, **home})
    assert done.code == 4
    assert done.err.startswith("sbench: pricing:GetProducts: ")


def encrypted(cloud: Cloud, bucket: str, algorithm: str, *, bucket_key: bool) -> Target:
    cloud.client("s3").create_bucket(Bucket=bucket)
    how = {"SSEAlgorithm": algorithm, "KMSMasterKeyID": "arn:aws:kms:us-east-1:1:key/k"}
    if algorithm == "AES256":
        del how["KMSMasterKeyID"]
    rule: dict[str, Any] = {
        "ApplyServerSideEncryptionByDefault": how,
        "BucketKeyEnabled": bucket_key,
    }
    cloud.client("s3").put_bucket_encryption(
        Bucket=bucket, ServerSideEncryptionConfiguration={"Rules": [rule]}
    )
    with credentials(cloud.environment):
        return resolve(Target(bucket=bucket))


def test_without_a_bucket_key_each_object_is_a_kms_request(moto: Server) -> None:
    cloud = Cloud(moto)
    assert encrypted(cloud, "each", "aws:kms", bucket_key=False).uses_kms
    assert not encrypted(cloud, "seldom", "aws:kms", bucket_key=True).uses_kms
    assert not encrypted(cloud, "never", "AES256", bucket_key=False).uses_kms


def test_a_plan_counts_the_requests_of_kms(sbench: Sbench, moto: Server) -> None:
    cloud, of = Cloud(moto), ("plan", "--format", "json")
    names = cloud.deploy("keyed")
    write = ("write", "--number", 1000, "--mb", 1)
    stack = (*of, "--stack", "keyed", *write)
    free = sbench(*stack, **cloud.environment).json["total"]
    encrypted(cloud, names["DataBucket"], "aws:kms", bucket_key=False)
    found = sbench(*stack, **cloud.environment).json
    # Each put makes a request, at $0.03 for 10,000, and so does each check of the store's clock.
    assert found["total"] - free == pytest.approx(1020 * 0.000003)
    assert sbench(*of, "--kms", *write).json["total"] == pytest.approx(found["total"])
    assert found["expected"]["dollars"]["puts"] == pytest.approx(1000 * 0.000008)


def test_a_plan_of_a_command_counts_the_requests_of_kms(sbench: Sbench, moto: Server) -> None:
    cloud = Cloud(moto)
    names = cloud.deploy("commanded")
    flags = ("--executor", "lambda", "--stack", "commanded", "--number", 1000, "--mb", 1)
    of = ("plan", "--format", "json", "write", *flags)
    free = sbench(*of, **cloud.environment).json["expected"]
    encrypted(cloud, names["DataBucket"], "aws:kms", bucket_key=False)
    found = sbench(*of, **cloud.environment).json["expected"]
    assert (free["usage"]["uses_kms"], found["usage"]["uses_kms"]) == (False, True)
    requests = found["usage"]["puts"] + found["usage"]["gets"]
    more = sum(found["dollars"].values()) - sum(free["dollars"].values())
    assert more == pytest.approx(requests * 0.000003)
