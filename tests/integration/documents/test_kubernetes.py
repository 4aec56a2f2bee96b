"""The example for Kubernetes is valid for its API, and its command is a valid sbench command."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from serverless_bench.features.workers.command import command

EXAMPLE = Path(__file__).parents[3] / "examples/kubernetes-workers.yaml"
RESOURCES = list(yaml.safe_load_all(EXAMPLE.read_text()))
VERSION = kubernetes_validate.latest_version()


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource["kind"])
def test_the_example_is_valid_for_kubernetes(resource: dict[str, object]) -> None:
    assert kubernetes_validate.validate(resource, VERSION, strict=True)


def test_kubernetes_would_not_take_a_field_that_it_does_not_know() -> None:
    job = RESOURCES[-1]
    misspelt = {**job, "spec": {**job["spec"], "paralelism": 10}}
    with pytest.raises(kubernetes_validate.ValidationError, match="paralelism"):
        kubernetes_validate.validate(misspelt, VERSION, strict=True)


def test_its_arguments_are_those_of_a_worker() -> None:
    (container,) = RESOURCES[-1]["spec"]["template"]["spec"]["containers"]
    given = command.make_context("worker", list(container["args"])).params
    assert (given["control"], given["idle"]) == ("s3://mine/sbench-control/", 600)


def test_a_worker_has_no_token_of_the_cluster_and_few_system_calls() -> None:
    pod = RESOURCES[-1]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
