"""Every pair of the template's options, in a few templates: rules, policies and resources."""

from dataclasses import replace

from serverless_bench.features.aws.tests.test_policies import Call, policies_of, verdict
from serverless_bench.features.aws.tests.test_policies_of_options import table
from tests.clouds.iam import Verdict
from tests.clouds.stack_options import CASES, data_bucket, data_region, made, name_of
from tests.clouds.template import DATA, REGION
from tests.combinations.covering import Case
from tests.tables import each_row


def chosen(case: Case) -> list[str]:
    """Return the options of the table that a case has."""
    has = {
        "many": case["functions"] == "many",
        "own bucket": case["data"] != "the stack's",
        "vpc": case["vpc"] != "no",
        "deletes": case["AllowDelete"] == "true",
        "key": case["key"] == "yes",
    }
    return [name for name, there in has.items() if there]


def moved(call: Call, case: Case) -> Call:
    """Return a row for the bucket of a case and for its region."""
    context = {
        name: value.replace(REGION, data_region(case)) if name == "kms:ViaService" else value
        for name, value in call.context.items()
    }
    resource = call.resource.replace(DATA, data_bucket(case))
    return replace(call, resource=resource, context=context)


def test_few_templates_hold_every_pair() -> None:
    assert len(CASES) <= 20


@each_row("case", CASES, ids=name_of)
def test_the_table_holds(case: Case) -> None:
    template = made(case)
    assert template.refused() == []
    policies = policies_of(template)
    allowed, denied = ([moved(call, case) for call in rows] for rows in table(chosen(case)))
    assert [call for call in allowed if verdict(call, policies) is not Verdict.ALLOWED] == []
    assert [call for call in denied if verdict(call, policies) is Verdict.ALLOWED] == []


@each_row("case", CASES, ids=name_of)
def test_resources_follow_from_the_options(case: Case) -> None:
    resources = made(case).resources
    in_vpc, express = case["vpc"] != "no", case["data"] == "directory"
    assert ("DataBucket" in resources) == (case["data"] == "the stack's")
    assert ("Gateway" in resources) == in_vpc
    assert ("ExpressGateway" in resources) == (in_vpc and express)
    assert ("Budget" in resources) == (case["budget"] == "yes")
