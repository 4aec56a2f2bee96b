"""What a job is to move, worked out anew, and whether the store saw it moved.

A job that reads has a list of objects, and each function takes some of them, whole or in
shares. Whoever takes what: together they read the list as often as there are shares, no
byte more than once oftener than another. Nothing else is assumed about who reads what.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Final

from serverless_bench.job.workload import OWN_FUNCTION
from serverless_bench.lab.audit.bytes_check import coverage, describe, segments
from serverless_bench.lab.audit.matching import Matches, RunRequests, requests_of
from serverless_bench.lab.audit.sources import ReportedRun, by_key, declared_size
from serverless_bench.lab.loopback.witness import StoreRequest
from serverless_bench.rundir.audited import Discrepancies, Discrepancy

_WRITES: Final = frozenset({"put", "complete_multipart"})


def check_job(run: ReportedRun, requests: RunRequests, matches: Matches) -> Discrepancies:
    """Yield what was asked for and not moved, or moved and not asked for.

    Of a run with a duration nobody knows before how much it moves; of one with failures
    only what is too much can be said.
    """
    for one in requests.other_keys:
        if run.job["workload"] != OWN_FUNCTION:
            yield Discrepancy("asked", f"{one.operation} of a key that nobody asked for", one.key)
    for one in requests.unrecorded:
        if not run.lost and not run.again:
            yield Discrepancy(
                "asked", f"{one.operation} by {one.worker}, which left no record", one.key
            )
    check = _CHECKS.get(run.job["workload"])
    if check is not None and run.job.get("duration") is None:
        yield from check(run, _successful(run, requests, matches))


def _successful(run: ReportedRun, requests: RunRequests, matches: Matches) -> list[StoreRequest]:
    """Return the requests that count: of those recorded one by one, what succeeded."""
    if not run.exact:
        return [one for one in requests.data if one.ok]
    return [one for own in matches.of_operation.values() for one in requests_of(own) if one.ok]


def rounds(run: ReportedRun) -> int:
    """Return how often a function goes through its objects."""
    return int(run.job.get("warm_up", 0)) + 1


def _write(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    job = run.job
    writes = Counter(one.key for one in requests if one.operation in _WRITES)
    size, prefix, least = job["size"], job["target"]["prefix"], rounds(run)
    for key, count in writes.items():
        declared = declared_size(key)
        if size is not None and declared != size:
            yield Discrepancy("asked", f"{size} bytes were to be written", key)
        if not key.startswith(prefix):
            yield Discrepancy("asked", f"the keys were to begin with {prefix!r}", key)
        if run.complete and (count < least or (run.exact and count > least)):
            more = "" if run.exact else " or more"
            yield Discrepancy("asked", f"written {count} times instead of {least}{more}", key)
    wanted = job["number"] * job["objects"]
    if run.complete and len(writes) != wanted:
        yield Discrepancy("asked", f"{len(writes)} objects were written instead of {wanted}")


def _read(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    job, keys = run.job, run.keys
    if not keys:
        return
    split = run.load.get("split") or 1
    # In shares of an object: what is taken, by what there is.
    turns = Fraction(job["number"] * job["objects"], len(keys) * split)
    each = rounds(run) * job["read_times"]
    gets = by_key(one for one in requests if one.operation == "get")
    for key, copies in Counter(keys).items():
        mine = gets.get(key, [])
        size = declared_size(key)
        if size is None:
            size = max((one.size or 0 for one in mine), default=0)
        least, most = floor(turns * copies) * each, ceil(turns * copies) * each
        have = coverage(one.sent_range for one in mine)
        for begin, end, (wanted, count) in segments({0: 1, size: 0}, have):
            low, high = (least, most) if wanted else (0, 0)
            short = run.complete and count < low
            # A failed attempt, and a library that is free to try again, read bytes once more.
            over = run.exact and run.complete and count > high
            if short or over:
                often = f"{low}" if low == high else f"{low} to {high}"
                yield Discrepancy(
                    "asked", f"{describe(begin, end)} read {count} times instead of {often}", key
                )


def _mixed(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    job, load = run.job, run.load
    kinds = {name for name, _ in load["mix"]}
    done = Counter(op["kind"] for op in run.operations if not op.get("warmup"))
    # Where all objects are gone something has to be written first.
    for kind in sorted(set(done) - kinds - {"put"}):
        yield Discrepancy(
            "asked", f"{done[kind]} operations of kind {kind}, which is not in the mix"
        )
    wanted = (load["operations"] or 0) * job["number"]
    if run.complete and sum(done.values()) != wanted:
        yield Discrepancy(
            "asked", f"{sum(done.values())} operations were performed instead of {wanted}"
        )
    written = {one.key for one in requests if one.operation in _WRITES}
    prepared = job["number"] * job["objects"]
    if run.complete and len(written) < prepared:
        yield Discrepancy("asked", f"{len(written)} objects were prepared instead of {prepared}")


def _contend(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    """Compare the versions that the store has taken with the commits that were asked for.

    Of claims nobody knows before how many requests succeed. There may be more versions than
    commits: one is written again whose answer was lost.
    """
    job, load = run.job, run.load
    own = f"{job['target']['prefix']}{run.run_id}/contend/"
    writes = Counter(one.key for one in requests if one.operation in _WRITES)
    for key in writes:
        if not key.startswith(own):
            yield Discrepancy("asked", f"the keys were to begin with {own!r}", key)
    if not run.complete or load["pattern"] == "claim":
        return
    wanted = (load["operations"] or 0) * load["threads"] * job["number"] * rounds(run)
    if sum(writes.values()) < wanted:
        yield Discrepancy(
            "asked", f"{sum(writes.values())} versions were written instead of {wanted}"
        )


def _array(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    """Compare what a library moved with what its arrays hold: never less, without a codec."""
    if run.load["array"]["codec"] != "none" or run.load["array"]["path"] is not None:
        return
    reads = run.load["array"]["operation"] == "read"
    wanted: Counter[str] = Counter()
    for op in run.operations:
        wanted[op["key"]] += op["bytes"] if op["error"] is None else 0
    for key, count in wanted.items():
        mine = [one for one in requests if one.key.startswith(f"{key}/")]
        moved = sum(one.out_bytes if reads else one.in_bytes for one in mine)
        if moved < count:
            yield Discrepancy("asked", f"the store moved {moved} bytes of an array's {count}", key)


_CHECKS: Final[Mapping[str, Callable[[ReportedRun, Sequence[StoreRequest]], Discrepancies]]] = {
    "array": _array,
    "contend": _contend,
    "mixed": _mixed,
    "read": _read,
    "write": _write,
}
