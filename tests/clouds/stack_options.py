"""Options of the stack's template, and few templates that hold every pair of them."""

import re
from collections.abc import Mapping
from functools import cache

from serverless_bench.features.aws.stack.template import template
from tests.clouds.template import ACCOUNT, DATA, REGION, Template
from tests.combinations.covering import Case, Covering

KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
DIRECTORY_BUCKET = f"{DATA}--euw1-az1--x-s3"
FACTORS = {
    "functions": ("one", "many"),
    "runtime": ("python3.13", "python3.14"),
    "data": ("the stack's", "own", "elsewhere", "directory"),
    "key": ("no", "yes"),
    "vpc": ("no", "yes", "zones"),
    "AllowDelete": ("false", "true"),
    "AllowCode": ("false", "true"),
    "ReservedConcurrency": ("0", "50"),
    "MaximumEventAge": ("60", "21600"),
    "boundary": ("no", "yes"),
    "budget": ("no", "yes"),
}
REFUSED = [{"data": "elsewhere", "vpc": "yes"}, {"data": "elsewhere", "vpc": "zones"}]
"""A gateway endpoint only reaches buckets of its own region."""
UNKNOWN_TO_LOCALSTACK = {("data", "directory"), ("vpc", "zones")}
"""docs/stores.md has its answers."""
COVERING = Covering(FACTORS, REFUSED)
CASES = COVERING.cover()


def name_of(case: Case) -> str:
    """Return the values of a case, without the default ones."""
    words = [f"{name}={value}" for name, value in case.items() if value != FACTORS[name][0]]
    return " ".join(words) or "usual"


def data_bucket(case: Case) -> str:
    """Return the name of the bucket for data."""
    return DIRECTORY_BUCKET if case["data"] == "directory" else DATA


def data_region(case: Case) -> str:
    """Return the region of that bucket."""
    return "us-west-2" if case["data"] == "elsewhere" else REGION


def deployed() -> list[Case]:
    """Return four cases with every value that LocalStack knows, and many pairs of them."""
    known = {
        name: tuple(value for value in values if (name, value) not in UNKNOWN_TO_LOCALSTACK)
        for name, values in FACTORS.items()
    }
    return Covering(known, REFUSED).cover()[:4]


def parameters(
    case: Case, *, region: str = REGION, account: str = ACCOUNT, key: str = KEY
) -> dict[str, str]:
    """Return the parameters of a case."""
    values = {
        name: case[name]
        for name in ("AllowDelete", "AllowCode", "ReservedConcurrency", "MaximumEventAge")
    }
    values["Vpc"] = "false" if case["vpc"] == "no" else "true"
    chosen: Mapping[str, tuple[bool, str]] = {
        "DataBucketName": (case["data"] != "the stack's", data_bucket(case)),
        "DataRegion": (case["data"] == "elsewhere", data_region(case)),
        # The policies' table has its key in the stack's region, because IAM only needs the ARN.
        "DataKeyArn": (case["key"] == "yes", f"arn:aws:kms:{region}:{account}:key/{key}"),
        "VpcZones": (case["vpc"] == "zones", f"{region}b,{region}c"),
        "PermissionsBoundary": (case["boundary"] == "yes", f"arn:aws:iam::{account}:policy/b"),
        "BudgetEmail": (case["budget"] == "yes", "a@example.com"),
        "BudgetUsd": (case["budget"] == "yes", "5"),
    }
    return values | {name: value for name, (there, value) in chosen.items() if there}


@cache
def text_of(functions: str, runtime: str) -> str:
    """Return the template, with its functions."""
    if functions == "one":
        return template(runtime=runtime)
    both = ["arm64", "x86_64"]
    return template([1769, 3538], both, copies=2, runtime=runtime, clients=["wire", "boto3"])


def made(case: Case) -> Template:
    """Return the template of a case as CloudFormation sees it."""
    return Template(text_of(case["functions"], case["runtime"]), **parameters(case))


def with_defaults(case: Case) -> str:
    """Return the text of a case's template, with the parameters as defaults."""
    text = text_of(case["functions"], case["runtime"])
    for name, value in parameters(case).items():
        text, times = re.subn(
            rf"(\n  {name}:\n(?:    .*\n)*?    Default: ).*", rf'\g<1>"{value}"', text
        )
        assert times == 1, name
    return text
