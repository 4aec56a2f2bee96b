"""The template of a stack, and its functions: as many as are asked for, and which a job invokes.

What decides about the code is written down in it and is no parameter: ``sam build`` and
``sam deploy`` would each have another idea of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from textwrap import indent
from typing import Final

from serverless_bench.errors import ExecutorError, UsageError
from serverless_bench.job.types import at_least, wrong

RUNTIMES: Final = ("python3.11", "python3.12", "python3.13", "python3.14")
DEFAULT_RUNTIME: Final = "python3.13"
DEFAULT_MEMORY: Final = (1769,)
"""One processor."""
DEFAULT_ARCHITECTURES: Final = ("arm64",)
"""20 % less per second than x86_64."""
MARK: Final = "# sbench aws stack"
"""How a template begins, before the flags that it was made with."""
MOST_FUNCTIONS: Final = 30
"""So many addresses fit into the driver's policy, which may have 6,144 characters (AWS IAM user
guide, "IAM and AWS STS quotas")."""


def template(
    memory: Sequence[int] = DEFAULT_MEMORY,
    arch: Sequence[str] = DEFAULT_ARCHITECTURES,
    *,
    copies: int = 1,
    runtime: str = DEFAULT_RUNTIME,
) -> str:
    """Return a template in YAML, with a function for each memory size, processor and copy.

    Parameters
    ----------
    memory
        Sizes in MB. The first is what jobs get that ask for none.
    arch
        Of ``ARCHITECTURES``; the first as above.
    copies
        Functions of each kind; AWS launches each at its own rate.
    runtime
        One of ``RUNTIMES``.

    Raises
    ------
    UsageError
        If no function can be so, or they are too many.
    """
    _check(memory, arch, copies)
    functions = [
        _function(size, processor, copy, runtime)
        for size, processor, copy in product(memory, arch, range(1, copies + 1))
    ]
    log_streams = (
        "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}"
        f":log-group:/aws/lambda/{one['name']}:log-stream:*"
        for one in functions
    )
    blocks = {
        "functions": "\n".join(_read("function.yaml").format(**one) for one in functions),
        "log streams": "\n".join(f"- !Sub {stream}" for stream in log_streams),
        "function ARNs": "\n".join(f"- !GetAtt {one['id']}.Arn" for one in functions),
        "outputs": "\n".join(
            'Function{number}: {{Value: !Sub "${{{id}}} {memory} {arch}"}}'.format(
                number=number, **one
            )
            for number, one in enumerate(functions, start=1)
        ),
    }
    text = _read("stack.yaml")
    for name, block in blocks.items():
        text = _filled(text, f"# <{name}>", block)
    kinds = f"--memory {','.join(map(str, memory))} --arch {','.join(arch)}"
    return f"{MARK} {kinds} --copies {copies} --runtime {runtime}\n{text}"


def _function(memory: int, arch: str, copy: int, runtime: str) -> dict[str, str | int]:
    """Return what ``function.yaml`` says of a function and its log.

    Its ``id`` has letters and digits only; its ``name`` is for ``Fn::Sub``.
    """
    kind = arch.title().replace("_", "")
    return {
        "id": f"Worker{memory}{kind}" + (f"Copy{copy}" if copy > 1 else ""),
        "name": f"${{AWS::StackName}}-worker-{memory}-{arch}" + (f"-{copy}" if copy > 1 else ""),
        "memory": memory,
        "arch": arch,
        "runtime": runtime,
    }


def _filled(text: str, mark: str, block: str) -> str:
    """Return a text with a block in the place of a line, as far to the right as that was."""
    before, there, after = text.partition(f"{mark}\n")
    if not there:
        raise ValueError(f"there is no line {mark}")
    margin = before.rpartition("\n")[2]
    return before.removesuffix(margin) + indent(f"{block.strip()}\n", margin) + after


def _check(memory: Sequence[int], arch: Sequence[str], copies: int) -> None:
    for size in memory:
        if size not in MEMORY_MIB:
            raise wrong("memory", f"must be {MEMORY_MIB[0]} to {MEMORY_MIB[-1]} MB, got {size}")
    for processor in arch:
        if processor not in ARCHITECTURES:
            raise wrong("arch", f"must be {' or '.join(ARCHITECTURES)}, got {processor}")
    for name, values in (("memory", memory), ("arch", arch)):
        if len(set(values)) < len(values):
            raise wrong(name, "names one of them twice", hint="--copies makes several alike")
    at_least("copies", copies, 1)
    number = len(memory) * len(arch) * copies
    if number > MOST_FUNCTIONS:
        raise UsageError(
            f"these are {number} functions, a stack has {MOST_FUNCTIONS} at most",
            hint="deploy two stacks: sam deploy --stack-name",
        )


def _read(name: str) -> str:
    return files("serverless_bench.aws.stack").joinpath(name).read_text(encoding="utf-8")


ARCHITECTURES: Final = ("arm64", "x86_64")
MEMORY_MIB: Final = range(128, 10_241)
"""AWS Lambda developer guide, "Lambda quotas"."""
_OUTPUT: Final = re.compile(r"Function([0-9]+)")
_VALUE: Final = re.compile(rf"(\S+) ([0-9]+) ({'|'.join(ARCHITECTURES)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedFunction:
    """A function that a stack has."""

    name: str
    memory_mib: int
    architecture: str
    """One of ``ARCHITECTURES``."""

    def __str__(self) -> str:
        return f"{self.memory_mib} MB on {self.architecture}"


def functions_in(outputs: Mapping[str, str]) -> tuple[DeployedFunction, ...]:
    """Return the functions that the outputs of a stack name, in the order of its template.

    Raises
    ------
    ExecutorError
        If one is not as ``template`` writes it.
    """
    numbers = sorted(int(found[1]) for name in outputs if (found := _OUTPUT.fullmatch(name)))
    functions = []
    for value in (outputs[f"Function{number}"] for number in numbers):
        found = _VALUE.fullmatch(value)
        if found is None:
            raise ExecutorError(
                f"{value!r} does not name a function, its memory and its processor",
                hint="deploy what `sbench aws stack` of this version writes",
            )
        name, memory, arch = found.groups()
        functions.append(DeployedFunction(name=name, memory_mib=int(memory), architecture=arch))
    return tuple(functions)


def choose(
    functions: Sequence[DeployedFunction], *, memory: int | None = None, arch: str | None = None
) -> tuple[DeployedFunction, ...]:
    """Return the functions of one size and processor: the first that fits, and its copies.

    Parameters
    ----------
    functions
        All of a stack, at least one.
    memory, arch
        What they must have; None for what the first that fits has.

    Raises
    ------
    UsageError
        If the stack has no such function.
    """
    fitting = [
        one
        for one in functions
        if memory in {None, one.memory_mib} and arch in {None, one.architecture}
    ]
    if not fitting:
        asked = " on ".join(text for text in (f"{memory} MB" if memory else "", arch or "") if text)
        there = ", ".join(dict.fromkeys(map(str, functions)))
        raise wrong(
            "arch" if memory is None else "memory",
            f"asks for {asked}, and the stack has {there}",
            hint="`sbench aws stack` writes one that has several",
        )
    first = fitting[0]
    return tuple(
        one
        for one in fitting
        if (one.memory_mib, one.architecture) == (first.memory_mib, first.architecture)
    )
