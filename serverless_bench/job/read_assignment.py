"""Who reads what: which objects of a list each function takes, and which bytes of each.

Functions come in groups of ``split``. A group takes the next ``objects`` of the list, and
starts over at its end; its functions all take the same objects, and of each object the
``split`` shares, one share each. So a whole group reads every byte of its objects once.
Without a split each function is a group of its own.

Pure: it depends on nothing but its arguments, hence an invocation that is launched again
reads the same bytes. docs/decisions/0019 has the reasons.
"""

from serverless_bench.errors import UsageError


def functions_for(keys: int, *, objects: int, split: int) -> int:
    """Return how many functions read every object of a list.

    Parameters
    ----------
    keys
        Objects in the list.
    objects
        That one function takes.
    split
        Functions that share each object.
    """
    return max(1, -(-keys // objects)) * split


def positions(index: int, *, keys: int, objects: int, split: int) -> list[int]:
    """Return which objects of the list a function takes, by position.

    Parameters
    ----------
    index
        Of the function.
    keys, objects, split
        As in ``functions_for``.
    """
    first = index // split * objects
    return [number % keys for number in range(first, first + objects)]


def share(size: int, index: int, split: int) -> tuple[int, int]:
    """Return where a function's share of an object begins, and its length.

    The shares of a group are neighbours, differ by one byte at most, and are together the
    object. An object smaller than its group leaves some functions without a share.
    """
    mine = index % split
    begin, end = (size * number // split for number in (mine, mine + 1))
    return begin, end - begin


def check_groups(functions: int, split: int) -> None:
    """Refuse a number of functions that leaves a group incomplete.

    Raises
    ------
    UsageError
        If it does: what falls to the missing functions would be read by nobody.
    """
    if functions % split:
        raise UsageError(
            f"`number` {functions} is no multiple of `split` {split}: the last objects would"
            " be read in part",
            hint=f"`number` {-(-functions // split) * split}, or none for as many as it takes",
            field="split",
        )
