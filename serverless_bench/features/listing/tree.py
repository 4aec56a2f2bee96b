"""The keys of a tree, in the order of a listing: a pure function of a few numbers.

The folder of each function that wrote the tree has ``depth`` levels of ``breadth`` folders, and the
last of these, the leaves, have its objects: ``PREFIX RUN/tree/000003/07/2/HEX.SIZE``. The digits of
a key ascend with the number of the object, and do not depend on a launch: a function that is
launched again writes the same objects.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from serverless_bench.features.listing.load import ListLoad
from serverless_bench.job.keys import object_key
from serverless_bench.job.sizes import parse_sizes
from serverless_bench.job.spec import InvocationSpec


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of an invocation, which lists it and may have written a part."""

    invocation: InvocationSpec
    load: ListLoad

    @property
    def run_id(self) -> str:
        """Id of the run that wrote the tree."""
        return self.load.tree or self.invocation.run_id

    @property
    def root(self) -> str:
        """The prefix of all keys."""
        return f"{self.invocation.target.prefix}{self.run_id}/tree/"

    @property
    def leaves(self) -> int:
        """Leaves in the folder of each function that wrote the tree."""
        return int(self.load.breadth**self.load.depth)

    def folder(self, leaf: int) -> str:
        """Return the prefix of a leaf."""
        part, rest = divmod(leaf, self.leaves)
        names = list[str]()
        for _ in range(self.load.depth):
            rest, name = divmod(rest, self.load.breadth)
            names.insert(0, f"{name:0{len(str(self.load.breadth - 1))}}/")
        return f"{self.root}{part:06}/{''.join(names)}"

    def keys(self, leaf: int) -> Iterator[tuple[str, int]]:
        """Yield keys and sizes of the objects in a leaf."""
        invocation, folder = self.invocation, self.folder(leaf)
        part, number = divmod(leaf, self.leaves)
        sizes = None if self.load.sizes is None else parse_sizes(self.load.sizes)
        first, end = (invocation.objects * n // self.leaves for n in (number, number + 1))
        for number in range(first, end):
            size = invocation.size or 1
            if sizes is not None:
                size = sizes.draw(random.Random(f"size/{self.run_id}/{part}/{number}"))
            key = object_key(
                prefix=folder, run_id=self.run_id, index=part, launch=0, number=number, size=size,
                layout="sequential",
            )  # fmt: skip
            yield key, size

    def written(self) -> range:
        """Return the leaves that the invocation writes."""
        first = self.invocation.index * self.leaves
        return range(0) if self.load.tree else range(first, first + self.leaves)

    def shared(self) -> range:
        """Return the leaves that the invocation lists if all functions share them."""
        index, listers, leaves = (
            self.invocation.index,
            self.load.listers,
            self.load.parts * self.leaves,
        )
        return range(leaves * index // listers, leaves * (index + 1) // listers)
