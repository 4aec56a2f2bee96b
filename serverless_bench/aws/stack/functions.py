"""The functions of a stack: what they are like, and which of them a job invokes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from serverless_bench.errors import ExecutorError
from serverless_bench.job.types import wrong

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

    @classmethod
    def from_output(cls, value: str) -> Self:
        """Return the function that an output of a stack names.

        Raises
        ------
        ExecutorError
            If it is not as ``template`` writes it.
        """
        found = _VALUE.fullmatch(value)
        if found is None:
            raise ExecutorError(
                f"{value!r} does not name a function, its memory and its processor",
                hint="deploy what `sbench aws stack` of this version writes",
            )
        name, memory, architecture = found.groups()
        return cls(name=name, memory_mib=int(memory), architecture=architecture)


def functions_in(outputs: Mapping[str, str]) -> tuple[DeployedFunction, ...]:
    """Return the functions that the outputs of a stack name, in the order of its template."""
    numbers = sorted(int(found[1]) for name in outputs if (found := _OUTPUT.fullmatch(name)))
    return tuple(DeployedFunction.from_output(outputs[f"Function{number}"]) for number in numbers)


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
