"""The template of a stack as CloudFormation sees it, with its functions worked out."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from serverless_bench.features.aws.stack.template import template

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
WORKER = "Worker1769Arm64"
"""The only function of the default template."""
FUNCTION = f"{STACK}-worker-1769-arm64"
FUNCTION_ARN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{FUNCTION}"
NAMES = {"DataBucket": DATA, "ControlBucket": CONTROL}
ARNS = {
    "DataBucket": f"arn:aws:s3:::{DATA}",
    "ControlBucket": f"arn:aws:s3:::{CONTROL}",
    "WorkerRole": f"arn:aws:iam::{ACCOUNT}:role/worker",
}


_FUNCTION = "AWS::Serverless::Function"


class _Loader(yaml.CSafeLoader):
    """Reads ``!Sub x`` as ``{"Fn::Sub": x}``."""


def _tag(loader: Any, suffix: str, node: yaml.Node) -> dict[str, Any]:
    name = suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}"
    if isinstance(node, yaml.ScalarNode):
        return {name: loader.construct_scalar(node)}
    if isinstance(node, yaml.SequenceNode):
        return {name: loader.construct_sequence(node, deep=True)}
    return {name: loader.construct_mapping(node, deep=True)}


_Loader.add_multi_constructor("!", _tag)


@cache
def _parsed(text: str) -> dict[str, Any]:
    """Parse a template once: a quarter of a second for the one with all functions."""
    parsed: dict[str, Any] = yaml.load(text, _Loader)  # noqa: S506 - a safe one
    return parsed


def merged(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a function as SAM merges them with the global ones."""
    return {
        **shared,
        **{
            name: merged(shared.get(name, {}), value) if isinstance(value, Mapping) else value
            for name, value in own.items()
        },
    }


class Template:
    """A template with values for its parameters; by default the one without parameters."""

    def __init__(self, text: str = "", /, **parameters: str | int) -> None:
        text = text or template()
        self.source = _parsed(text)
        defaults = {name: p["Default"] for name, p in self.source["Parameters"].items()}
        self._values: dict[str, Any] = {**PSEUDO, **defaults, **parameters}
        for name, parameter in self.source["Parameters"].items():
            if parameter["Type"] == "CommaDelimitedList":
                self._values[name] = self._values[name].split(",")
        self.resources: dict[str, Any] = {
            name: self.resolve(resource)
            for name, resource in self.source["Resources"].items()
            if "Condition" not in resource or self._holds(resource["Condition"])
        }
        self.outputs: dict[str, Any] = self.resolve(self.source["Outputs"])
        self.functions: dict[str, dict[str, Any]] = {
            name: merged(self.resolve(self.source["Globals"]["Function"]), resource["Properties"])
            for name, resource in self.resources.items()
            if resource["Type"] == _FUNCTION
        }
        """Properties of the functions, including the global ones."""

    def refused(self) -> list[str]:
        """Return the messages of the template's rules about the values."""
        return [
            assertion["AssertDescription"]
            for rule in self.source["Rules"].values()
            if self._holds(rule["RuleCondition"])
            for assertion in rule["Assertions"]
            if not self._holds(assertion["Assert"])
        ]

    def properties(self, resource: str) -> dict[str, Any]:
        """Return the properties of one resource."""
        found: dict[str, Any] = self.resources[resource]["Properties"]
        return found

    def resolve(self, value: Any) -> Any:
        """Return ``value`` with every function in it worked out."""
        if isinstance(value, list):
            return self._items(value)
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

    def _items(self, values: list[Any]) -> list[Any]:
        return [found for item in values if (found := self.resolve(item)) is not None]

    def _function(self, name: str, argument: Any) -> Any:
        if name == "Sub" and isinstance(argument, list):
            text, values = argument
            for key, value in values.items():
                text = text.replace(f"${{{key}}}", self.resolve(value))
            return self._function("Sub", text)
        if name == "Sub":
            return re.sub(r"\$\{([^}]+)\}", lambda match: self._named(match[1]), argument)
        if name == "GetAtt":
            return self._named(argument)
        if name == "If":
            condition, yes, no = argument
            return self.resolve(yes if self._holds(condition) else no)
        return self._list_function(name, argument)

    def _list_function(self, name: str, argument: Any) -> Any:
        """Return a function of lists, worked out."""
        if name == "GetAZs":
            return [f"{REGION}{zone}" for zone in "abc"]
        if name == "Join":
            glue, values = self.resolve(argument)
            return glue.join(values)
        if name == "Split":
            glue, value = self.resolve(argument)
            return value.split(glue)
        if name == "Select":
            index, values = argument
            return self.resolve(values)[index]
        raise AssertionError(f"Fn::{name} is not known to the tests")

    def _named(self, name: str) -> str:
        resource, _, attribute = name.partition(".")
        if attribute:
            assert attribute == "Arn", name
            if self._is_function(resource):
                return f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{self._ref(resource)}"
            return ARNS[resource]
        return str(self._ref(name))

    def _ref(self, name: str) -> Any:
        if name in self._values:
            return self._values[name]
        assert name in self.source["Resources"], name
        if self._is_function(name):
            return self.resolve(self.source["Resources"][name]["Properties"]["FunctionName"])
        return NAMES.get(name, name)

    def _is_function(self, name: str) -> bool:
        return bool(self.source["Resources"][name]["Type"] == _FUNCTION)

    def _holds(self, condition: Any) -> bool:
        if isinstance(condition, str):
            return self._holds(self.source["Conditions"][condition])
        ((name, argument),) = condition.items()
        if name == "Fn::Not":
            return not self._holds(argument[0])
        if name == "Fn::Or":
            return any(self._holds(item) for item in argument)
        if name == "Fn::And":
            return all(self._holds(item) for item in argument)
        if name == "Condition":
            return self._holds(argument)
        assert name == "Fn::Equals", name
        left, right = (self.resolve(item) for item in argument)
        return str(left) == str(right)
