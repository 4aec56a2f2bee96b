"""What a job asks for, in words of its own, and whether the store saw it moved.

A job that reads has a list of objects, and each function takes some of them, whole or in
shares. Whoever takes what: together they read the list as often as there are shares, no
byte more than once oftener than another. That is all that is said here about dealing.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Final

from serverless_bench.audit.claims import Claims, declared_size
from serverless_bench.audit.differences import Difference, Differences
from serverless_bench.audit.pairs import Pairs, requests_of
from serverless_bench.audit.ranges import coverage, said, stretches
from serverless_bench.audit.scope import Scope
from serverless_bench.audit.witness import Seen

_WRITES: Final = frozenset({"put", "complete_multipart"})


def asked(claims: Claims, found: Scope, pairs: Pairs) -> Differences:
    """Yield what was asked for and not moved, or moved and not asked for.

    Of a run with a duration nobody knows before how much it moves; of one with failures
    only what is too much can be said.
    """
    for one in found.strange:
        if claims.job["workload"] != "function":
            text = f"{one.operation} of a key that nobody asked for"
            yield Difference("asked", text, one.key)
    for one in found.unknown:
        if not claims.lost and not claims.again:
            text = f"{one.operation} by {one.worker}, which left no record"
            yield Difference("asked", text, one.key)
    check = _CHECKS.get(claims.job["workload"])
    if check is not None and claims.job.get("duration_s") is None:
        yield from check(claims, _successful(claims, found, pairs))


def _successful(claims: Claims, found: Scope, pairs: Pairs) -> list[Seen]:
    """Return the requests that count: of those told one by one, what succeeded."""
    if not claims.exact:
        return [one for one in found.data if one.ok]
    return [one for own in pairs.of_operation.values() for one in requests_of(own) if one.ok]


def rounds(claims: Claims) -> int:
    """Return how often a function goes through its objects."""
    return int(claims.job.get("warmup", 0)) + 1


def _write(claims: Claims, requests: Sequence[Seen]) -> Differences:
    job = claims.job
    writes = Counter(one.key for one in requests if one.operation in _WRITES)
    size, prefix = job["object_bytes"], job["target"]["prefix"]
    for key, count in writes.items():
        declared = declared_size(key)
        if size is not None and declared != size:
            yield Difference("asked", f"{size} bytes were to be written", key)
        if not key.startswith(prefix):
            yield Difference("asked", f"the keys were to begin with {prefix!r}", key)
        if claims.exact and claims.complete and count != rounds(claims):
            text = f"written {count} times instead of {rounds(claims)}"
            yield Difference("asked", text, key)
        elif claims.complete and count < rounds(claims):
            text = f"written {count} times instead of {rounds(claims)} or more"
            yield Difference("asked", text, key)
    wanted = job["invocations"] * job["objects"]
    if claims.complete and len(writes) != wanted:
        yield Difference("asked", f"{len(writes)} objects were written instead of {wanted}")


def _read(claims: Claims, requests: Sequence[Seen]) -> Differences:
    job, keys = claims.job, _listed(claims)
    if not keys:
        return
    split = claims.load.get("split") or 1
    # In shares of an object: what is taken, by what there is.
    turns = Fraction(job["invocations"] * job["objects"], len(keys) * split)
    each = rounds(claims) * job["repeats"]
    gets: dict[str, list[Seen]] = {}
    for one in requests:
        if one.operation == "get":
            gets.setdefault(one.key, []).append(one)
    for key, copies in Counter(keys).items():
        mine = gets.get(key, [])
        size = declared_size(key)
        if size is None:
            size = max((one.size or 0 for one in mine), default=0)
        least, most = floor(turns * copies) * each, ceil(turns * copies) * each
        have = coverage((one.offset or 0, (one.offset or 0) + one.out_bytes) for one in mine)
        for begin, end, (wanted, count) in stretches({0: 1, size: 0}, have):
            low, high = (least, most) if wanted else (0, 0)
            short = claims.complete and count < low
            # A failed attempt, and a library that is free to try again, read bytes once more.
            over = claims.exact and claims.complete and count > high
            if short or over:
                often = f"{low}" if low == high else f"{low} to {high}"
                text = f"{said(begin, end)} read {count} times instead of {often}"
                yield Difference("asked", text, key)


def _listed(claims: Claims) -> Sequence[str]:
    """Return the objects to read; earlier versions wrote each as often as it was shared."""
    keys, split = claims.keys, claims.load.get("split") or 1
    copied = split > 1 and len(keys) % split == 0
    if copied and all(key == keys[n - n % split] for n, key in enumerate(keys)):
        return keys[::split]
    return keys


def _mixed(claims: Claims, requests: Sequence[Seen]) -> Differences:
    job, load = claims.job, claims.load
    kinds = {name for name, _ in load["mix"]}
    done = Counter(
        op["kind"]
        for function in claims.functions
        for op in function.operations
        if not op.get("warmup")
    )
    # Where all objects are gone something has to be written first.
    for kind in sorted(set(done) - kinds - {"put"}):
        yield Difference(
            "asked", f"{done[kind]} operations of kind {kind}, which is not in the mix"
        )
    wanted = (load["operations"] or 0) * job["invocations"]
    if claims.complete and sum(done.values()) != wanted:
        text = f"{sum(done.values())} operations were performed instead of {wanted}"
        yield Difference("asked", text)
    written = {one.key for one in requests if one.operation in _WRITES}
    prepared = job["invocations"] * job["objects"]
    if claims.complete and len(written) < prepared:
        yield Difference("asked", f"{len(written)} objects were prepared instead of {prepared}")


def _array(claims: Claims, requests: Sequence[Seen]) -> Differences:
    """Compare what a library moved with what its arrays hold: never less, without a codec."""
    if claims.load["array"]["codec"] != "none" or claims.load["array"]["path"] is not None:
        return
    reads = claims.load["array"]["operation"] == "read"
    wanted: Counter[str] = Counter()
    for function in claims.functions:
        for op in function.operations:
            wanted[op["key"]] += op["bytes"] if op["error"] is None else 0
    for key, count in wanted.items():
        mine = [one for one in requests if one.key.startswith(f"{key}/")]
        moved = sum(one.out_bytes if reads else one.in_bytes for one in mine)
        if moved < count:
            yield Difference("asked", f"the store moved {moved} bytes of an array's {count}", key)


_CHECKS: Final[Mapping[str, Callable[[Claims, Sequence[Seen]], Differences]]] = {
    "array": _array,
    "mixed": _mixed,
    "read": _read,
    "write": _write,
}
