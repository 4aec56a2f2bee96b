"""Loads of listings."""

from dataclasses import dataclass
from typing import Annotated, Literal

from serverless_bench.job.meaning import Meaning
from serverless_bench.job.types import Limits
from serverless_bench.job.workload import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class ListLoad(Load):
    """The listings of a function.

    Parameters
    ----------
    depth
        Levels of folders between a function's folder and the objects.
    breadth
        Folders in each of them.
    by
        prefixes: the functions share the folders with objects; sequence: each lists all keys.
    versions
        Whether to list versions.
    tree
        Id of the run that wrote the tree; None to write it first.
    parts
        Functions that wrote the tree; 0 for those of the job.
    listers
        Functions that share the folders; a job has 0, its invocations the number.

    Examples
    --------
    >>> load = sbench.ListLoad(depth=2, breadth=30)
    >>> load.by
    'prefixes'
    """

    depth: Annotated[int, Limits(0, 8), Meaning("Levels of folders that each function makes.")] = 1
    breadth: Annotated[int, Limits(1, 10_000), Meaning("Folders in each folder.")] = 10
    by: Annotated[
        str,
        Literal["prefixes", "sequence"],
        Meaning("Functions share the folders, or each lists all keys in one sequence."),
    ] = "prefixes"
    versions: Annotated[bool, Meaning("List the versions of the keys.")] = False
    tree: Annotated[
        str | None,
        Meaning("Run of sbench list whose keys are listed again; by default they are written."),
    ] = None
    parts: Annotated[int, Limits(0)] = 0
    listers: Annotated[int, Limits(0)] = 0
