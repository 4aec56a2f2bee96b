"""Assignment of reads: the objects of a list, and the bytes of each, that a function reads.

Functions form groups of ``split``. A group takes the next ``objects`` of the list, and starts over
at the end of the list; all its functions take the same objects, and each of them reads one of the
``split`` parts of every object. A complete group therefore reads each byte of its objects once.
Without a split, each function is a group.

The result depends only on the arguments, so an invocation that is launched a second time reads the
same bytes. docs/decisions/0009 has the reasons.
"""

from serverless_bench.base.errors import UsageError


def functions_for(keys: int, *, objects: int, split: int) -> int:
    """Return the number of functions needed to read all objects of a list.

    Parameters
    ----------
    keys
        Objects in the list.
    objects
        Objects that a function takes.
    split
        Functions that share each object.
    """
    return max(1, -(-keys // objects)) * split


def positions(index: int, *, keys: int, objects: int, split: int) -> list[int]:
    """Return the positions in the list of the objects that a function takes.

    Parameters
    ----------
    index
        Index of the function.
    keys, objects, split
        As in ``functions_for``.
    """
    first = index // split * objects
    return [number % keys for number in range(first, first + objects)]


def share(size: int, index: int, split: int) -> tuple[int, int]:
    """Return start and length of a function's part of an object.

    The parts of a group are contiguous, differ by at most one byte, and cover the object. If an
    object has fewer bytes than the group has functions, some get no part.
    """
    part = index % split
    begin, end = (size * number // split for number in (part, part + 1))
    return begin, end - begin


def check_groups(functions: int, split: int) -> None:
    """Check that a number of functions leaves no group incomplete.

    Raises
    ------
    UsageError
        If it does: the parts of the missing functions would not be read.
    """
    if functions % split:
        raise UsageError(
            f"`number` {functions} is not a multiple of `split` {split}: the last objects would"
            " be read in part",
            hint=f"write `number` {-(-functions // split) * split}, or leave it out",
            field="split",
        )
