"""The template of a stack with any number of functions, and the choice of functions for a job.

Properties of the code are literals in it and not parameters, because ``sam build`` and
``sam deploy`` could receive different values.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from textwrap import indent
from typing import Final

from serverless_bench.base.errors import ExecutorError, UsageError
from serverless_bench.clients import CLIENTS
from serverless_bench.job.target import DEFAULT_CLIENTS, StoreProtocol
from serverless_bench.job.types import at_least, wrong

RUNTIMES: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
DEFAULT_RUNTIME: Final = "python3.13"
ARCHITECTURES: Final = ("arm64", "x86_64")
VCPU_MIB: Final = 1769
"""The size with one CPU."""
DEFAULT_MEMORY: Final = (VCPU_MIB,)
DEFAULT_ARCHITECTURES: Final = ("arm64",)
"""20 % cheaper per second than x86_64."""
THIN: Final = DEFAULT_CLIENTS[StoreProtocol.S3]
"""The client that every function has, because sbench claims launches and writes records with it."""
DEFAULT_QUOTA: Final = 1000
"""AWS Lambda quotas: concurrent executions of an account in a region."""
MARK: Final = "# sbench aws stack"
"""First words of a template, before the flags."""
MOST_FUNCTIONS: Final = 30
"""Number of ARNs that fit into the driver's policy of at most 6,144 characters (AWS IAM user
guide, "IAM and AWS STS quotas").
"""


def template(
    memory: Sequence[int] = DEFAULT_MEMORY,
    arch: Sequence[str] = DEFAULT_ARCHITECTURES,
    *,
    copies: int = 1,
    runtime: str = DEFAULT_RUNTIME,
    clients: Sequence[str] = (THIN,),
) -> str:
    """Return a template in YAML, with a function for each client, memory, architecture and copy.

    Parameters
    ----------
    memory
        Sizes in MB. The first is the default of jobs.
    arch
        Names from ``ARCHITECTURES``; the first is the default of jobs.
    copies
        Functions with the same properties; AWS limits the launch rate of each.
    runtime
        One of ``RUNTIMES``.
    clients
        Names of built-in clients. A function has the library of a single client.

    Raises
    ------
    UsageError
        If a value is invalid, or there are too many functions.
    """
    _check(memory, arch, copies, clients)
    _check_wheels(clients, runtime, arch)
    functions = [
        _function(client, size, processor, copy, runtime)
        for client, size, processor, copy in product(clients, memory, arch, range(1, copies + 1))
    ]
    log_streams = (
        "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}"
        f":log-group:/aws/lambda/{function['name']}:log-stream:*"
        for function in functions
    )
    blocks = {
        "functions": "\n".join(_read("function.yaml").format(**function) for function in functions),
        "log streams": "\n".join(f"- !Sub {stream}" for stream in log_streams),
        "function ARNs": "\n".join(f"- !GetAtt {function['id']}.Arn" for function in functions),
        "outputs": "\n".join(
            'Function{number}: {{Value: !Sub "${{{id}}} {memory} {arch} {client}"}}'.format(
                number=number, **function
            )
            for number, function in enumerate(functions, start=1)
        ),
    }
    text = _read("stack.yaml")
    for name, block in blocks.items():
        text = _filled(text, f"# <{name}>", block)
    kinds = f"--memory {','.join(map(str, memory))} --arch {','.join(arch)} --copies {copies}"
    return f"{MARK} {kinds} --runtime {runtime} --client {','.join(clients)}\n{text}"


def _function(client: str, memory: int, arch: str, copy: int, runtime: str) -> dict[str, str | int]:
    """Return the values for ``function.yaml``.

    Its ``id`` has letters and digits only, and names the client for the makefile; its ``name`` is
    for ``Fn::Sub``.
    """
    kind, is_thin = arch.title().replace("_", ""), client == THIN
    return {
        "id": f"Worker{memory}{kind}"
        + ("" if is_thin else f"With{client.title()}")
        + (f"Copy{copy}" if copy > 1 else ""),
        "name": f"${{AWS::StackName}}-worker-{memory}-{arch}"
        + ("" if is_thin else f"-{client}")
        + (f"-{copy}" if copy > 1 else ""),
        "client": client,
        "memory": memory,
        "arch": arch,
        "runtime": runtime,
    }


def _filled(text: str, mark: str, block: str) -> str:
    """Return a text with a block in place of a line, with the same indentation."""
    before, is_present, after = text.partition(f"{mark}\n")
    if not is_present:
        raise ValueError(f"there is no line {mark}")
    margin = before.rpartition("\n")[2]
    return before.removesuffix(margin) + indent(f"{block.strip()}\n", margin) + after


def check_memory(mib: int | None) -> None:
    """Raise an error for a memory size that Lambda does not support.

    Raises
    ------
    UsageError
        If it is not 128 to 10,240 MB (AWS Lambda developer guide, "Lambda quotas").
    """
    if mib is not None and mib not in MEMORY_MIB:
        raise wrong("memory", f"must be {MEMORY_MIB[0]} to {MEMORY_MIB[-1]} MB, got {mib}")


def _check(memory: Sequence[int], arch: Sequence[str], copies: int, clients: Sequence[str]) -> None:
    for size in memory:
        check_memory(size)
    for processor in arch:
        if processor not in ARCHITECTURES:
            raise wrong("arch", f"must be {' or '.join(ARCHITECTURES)}, got {processor}")
    for name, values in (("memory", memory), ("arch", arch), ("client", clients)):
        if len(set(values)) < len(values):
            raise wrong(name, "names one of them twice", hint="--copies makes several equal ones")
    at_least("copies", copies, 1)
    number = len(memory) * len(arch) * copies * len(clients)
    if number > MOST_FUNCTIONS:
        raise UsageError(
            f"these are {number} functions, a stack has {MOST_FUNCTIONS} at most",
            hint="deploy two stacks: sam deploy --stack-name",
        )


def _check_wheels(clients: Sequence[str], runtime: str, arch: Sequence[str]) -> None:
    for client, processor in product(clients, arch):
        if client not in CLIENTS:
            raise wrong("client", f"must be one of {', '.join(CLIENTS)}, got {client}")
        if f"{client} {runtime} {processor}\n" in _read("recipe/no-wheels.txt"):
            raise wrong(
                "client",
                f"{client} has no wheels for {runtime} on {processor}",
                hint=f"--runtime {DEFAULT_RUNTIME}",
            )


def _read(name: str) -> str:
    from importlib.resources import files

    return files("serverless_bench.features.aws.stack").joinpath(name).read_text(encoding="utf-8")


MEMORY_MIB: Final = range(128, 10_241)
"""AWS Lambda developer guide, "Lambda quotas"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedFunction:
    """A function of a stack."""

    name: str
    memory_mib: int
    architecture: str
    """One of ``ARCHITECTURES``."""
    client: str = THIN

    def __str__(self) -> str:
        return f"{self.memory_mib} MB on {self.architecture}"


def functions_in(outputs: Mapping[str, str]) -> tuple[DeployedFunction, ...]:
    """Return the functions in the outputs of a stack, in the order of its template.

    Raises
    ------
    ExecutorError
        If an output does not have the format of ``template``.
    """
    numbers = sorted(
        int(match[1]) for name in outputs if (match := re.fullmatch(r"Function([0-9]+)", name))
    )
    functions = []
    for value in (outputs[f"Function{number}"] for number in numbers):
        match = re.fullmatch(rf"(\S+) ([0-9]+) ({'|'.join(ARCHITECTURES)})(?: (\w+))?", value)
        if match is None:
            raise ExecutorError(
                f"{value!r} does not name a function, its memory and its architecture",
                hint="deploy the stack that `sbench aws stack` of this version writes",
            )
        name, memory, arch, client = match.groups(THIN)
        functions.append(
            DeployedFunction(name=name, memory_mib=int(memory), architecture=arch, client=client)
        )
    return tuple(functions)


def choose(
    functions: Sequence[DeployedFunction],
    *,
    client: str | None = None,
    memory: int | None = None,
    arch: str | None = None,
) -> tuple[DeployedFunction, ...]:
    """Return the functions of one kind: the first that fits, and its copies.

    Parameters
    ----------
    functions
        All functions of a stack, at least one.
    client, memory, arch
        Required properties; None takes those of the first function that fits.

    Raises
    ------
    UsageError
        If the stack has no such function.
    """
    clients = dict.fromkeys(function.client for function in functions)
    if client not in {None, *clients}:
        raise wrong(
            "client",
            f"asks for {client}, and the functions of the stack have {', '.join(clients)}",
            hint=f"`sbench aws stack --client {','.join((*clients, str(client)))}` writes one that"
            " has it",
        )
    fitting = [
        function
        for function in functions
        if client in {None, function.client}
        and memory in {None, function.memory_mib}
        and arch in {None, function.architecture}
    ]
    if not fitting:
        requested = " on ".join(
            text for text in (f"{memory} MB" if memory else "", arch or "") if text
        )
        available = ", ".join(dict.fromkeys(map(str, functions)))
        raise wrong(
            "arch" if memory is None else "memory",
            f"asks for {requested}, and the stack has {available}",
            hint="`sbench aws stack` writes one that has several",
        )
    first = fitting[0]
    return tuple(one for one in fitting if replace(one, name=first.name) == first)
