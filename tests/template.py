"""``template.yaml`` as CloudFormation sees it, with its functions worked out."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
ACCOUNT = "111122223333"
REGION = "eu-west-1"
STACK = "bench"
DATA, CONTROL = "bench-data", "bench-control"
PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::NoValue": None,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::StackName": STACK,
}
NAMES = {"DataBucket": DATA, "ControlBucket": CONTROL, "WorkerFunction": f"{STACK}-worker"}
FUNCTION_ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{STACK}-worker"
ARNS = {
    "DataBucket": f"arn:aws:s3:::{DATA}",
    "ControlBucket": f"arn:aws:s3:::{CONTROL}",
    "WorkerFunction": FUNCTION_ARN,
    "WorkerRole": f"arn:aws:iam::{ACCOUNT}:role/worker",
}


class _Loader(yaml.SafeLoader):
    """Reads ``!Sub x`` as ``{"Fn::Sub": x}``."""


def _tag(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _tag)


class Template:
    """The template with values for its parameters."""

    def __init__(self, **parameters: str | int) -> None:
        text = (ROOT / "template.yaml").read_text()
        self.source: dict[str, Any] = yaml.load(text, _Loader)  # noqa: S506 - a safe one
        defaults = {name: p["Default"] for name, p in self.source["Parameters"].items()}
        self._values: dict[str, Any] = {**PSEUDO, **defaults, **parameters}
        self.resources: dict[str, Any] = {
            name: self.resolve(resource)
            for name, resource in self.source["Resources"].items()
            if "Condition" not in resource or self._holds(resource["Condition"])
        }
        self.outputs: dict[str, Any] = self.resolve(self.source["Outputs"])

    def properties(self, resource: str) -> dict[str, Any]:
        """Return the properties of one resource."""
        found: dict[str, Any] = self.resources[resource]["Properties"]
        return found

    def resolve(self, value: Any) -> Any:
        """Return ``value`` with every function in it worked out."""
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            (name, argument), *_ = value.items()
            if name == "Ref":
                return self._ref(argument)
            if name.startswith("Fn::"):
                return self._function(name.removeprefix("Fn::"), argument)
        resolved = {key: self.resolve(item) for key, item in value.items()}
        return {key: item for key, item in resolved.items() if item is not None}

    def _function(self, name: str, argument: Any) -> Any:
        if name == "Sub":
            return re.sub(r"\$\{([^}]+)\}", lambda match: self._named(match[1]), argument)
        if name == "GetAtt":
            return self._named(argument)
        if name == "If":
            condition, yes, no = argument
            return self.resolve(yes if self._holds(condition) else no)
        raise AssertionError(f"Fn::{name} is not known to the tests")

    def _named(self, name: str) -> str:
        resource, _, attribute = name.partition(".")
        if attribute:
            assert attribute == "Arn", name
            return ARNS[resource]
        return str(self._ref(name))

    def _ref(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        assert name in self.source["Resources"], name
        return NAMES.get(name, name)

    def _holds(self, condition: Any) -> bool:
        if isinstance(condition, str):
            return self._holds(self.source["Conditions"][condition])
        ((name, argument),) = condition.items()
        if name == "Fn::Not":
            return not self._holds(argument[0])
        if name == "Fn::Or":
            return any(self._holds(item) for item in argument)
        assert name == "Fn::Equals", name
        left, right = (self.resolve(item) for item in argument)
        return str(left) == str(right)
