"""Independent computation of a job's transfers, compared with the store's log.

A job that reads has a list of objects, and each function reads some of them, entirely or in
shares. Together, the functions read the list as often as there are shares, and the numbers of
reads of any two bytes differ by one at most. No assumption is made about the reader of each byte.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Final

from serverless_bench.features.audit.bytes_check import coverage, describe, segments
from serverless_bench.features.audit.matching import Matches, RunRequests, requests_of
from serverless_bench.features.audit.sources import ReportedRun, by_key, declared_size
from serverless_bench.features.check.audited import Discrepancies, Discrepancy
from serverless_bench.features.loopback.request_log import StoreRequest
from serverless_bench.job.workload import OWN_FUNCTION

_WRITES: Final = frozenset({"put", "complete_multipart"})


def check_job(run: ReportedRun, requests: RunRequests, matches: Matches) -> Discrepancies:
    """Yield transfers that are missing or were not requested.

    The amount of data of a run with a duration is not known in advance. For a run with failures,
    only an excess can be detected.
    """
    for request in requests.other_keys if run.job["workload"] != OWN_FUNCTION else ():
        yield Discrepancy(
            "asked", f"{request.operation} of a key that is not part of the job", request.key
        )
    for request in () if run.lost or run.again else requests.unrecorded:
        yield Discrepancy(
            "asked",
            f"{request.operation} by {request.worker}, which left no record",
            request.key,
        )
    check = _CHECKS.get(run.job["workload"])
    if check is not None and run.job.get("duration") is None:
        yield from check(run, _successful(run, requests, matches))


def _successful(run: ReportedRun, requests: RunRequests, matches: Matches) -> list[StoreRequest]:
    """Return the requests that count: successful requests of recorded attempts."""
    if not run.exact:
        return [request for request in requests.data if request.ok]
    return [
        request
        for pairs in matches.of_operation.values()
        for request in requests_of(pairs)
        if request.ok
    ]


def rounds(run: ReportedRun) -> int:
    """Return how often a function processes the objects."""
    return int(run.job.get("warm_up", 0)) + 1


def _write(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    job = run.job
    writes = Counter(request.key for request in requests if request.operation in _WRITES)
    size, prefix, least = job["size"], job["target"]["prefix"], rounds(run)
    for key, count in writes.items():
        if size is not None and declared_size(key) != size:
            yield Discrepancy("asked", f"{size} bytes should have been written", key)
        if not key.startswith(prefix):
            yield Discrepancy("asked", f"the keys should start with {prefix!r}", key)
        if run.complete and (count < least or (run.exact and count > least)):
            suffix = "" if run.exact else " or more"
            yield Discrepancy("asked", f"written {count} times instead of {least}{suffix}", key)
    wanted = job["number"] * job["objects"]
    if run.complete and len(writes) != wanted:
        yield Discrepancy("asked", f"{len(writes)} objects were written instead of {wanted}")


def _read(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    job, keys = run.job, run.keys
    if not keys:
        return
    split = run.load.get("split") or 1
    # Number of requested shares of objects, divided by the number of existing shares.
    turns = Fraction(job["number"] * job["objects"], len(keys) * split)
    repetitions = rounds(run) * job["read_times"]
    gets = by_key(request for request in requests if request.operation == "get")
    for key, copies in Counter(keys).items():
        requests_of_key = gets.get(key, [])
        size = declared_size(key)
        if size is None:
            size = max((request.size or 0 for request in requests_of_key), default=0)
        least, most = floor(turns * copies) * repetitions, ceil(turns * copies) * repetitions
        have = coverage(request.sent_range for request in requests_of_key)
        for begin, end, (wanted, count) in segments({0: 1, size: 0}, have):
            low, high = (least, most) if wanted else (0, 0)
            short = run.complete and count < low
            # A failed attempt, or a library that retries on its own, reads bytes an additional
            # time.
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
    # If all objects have been deleted, a put has to come first.
    for kind in sorted(set(done) - kinds - {"put"}):
        yield Discrepancy(
            "asked", f"{done[kind]} operations of kind {kind}, which is not in the mix"
        )
    wanted = (load["operations"] or 0) * job["number"]
    if run.complete and sum(done.values()) != wanted:
        yield Discrepancy(
            "asked", f"{sum(done.values())} operations were performed instead of {wanted}"
        )
    written = {request.key for request in requests if request.operation in _WRITES}
    prepared = _prepared(run)
    if run.complete and len(written) < prepared:
        yield Discrepancy("asked", f"{len(written)} objects were prepared instead of {prepared}")


def _prepared(run: ReportedRun) -> int:
    """Return the number of objects that the job writes; none without sizes of new ones."""
    exist = run.job["size"] is None and run.load.get("sizes") is None
    return 0 if exist else run.job["number"] * run.job["objects"]


def _once_each(writes: Counter[str], wanted: int, name: str) -> Discrepancies:
    """Compare the numbers of written keys and of their writes with the wanted number."""
    if len(writes) != wanted or writes.total() != wanted:
        yield Discrepancy(
            "asked",
            f"{writes.total()} writes of {len(writes)} {name} instead of one each of {wanted}",
        )


def _columns(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    """Compare the files: each is written once, and the scans of all read the same ranges."""
    job = run.job
    wanted, scans = _prepared(run), job["read_times"] * rounds(run)
    if not wanted:
        return
    writes = Counter(request.key for request in requests if request.operation in _WRITES)
    if not (run.complete and run.exact):
        return
    yield from _once_each(writes, wanted, "files")
    gets = by_key(request for request in requests if request.operation == "get")
    read = {key: Counter((get.offset, get.length) for get in gets.get(key, ())) for key in writes}
    usual = next(iter(read.values()), None)
    for key, ranges in read.items():
        if ranges != usual or any(count % scans for count in ranges.values()):
            yield Discrepancy("asked", f"{scans} scans read other ranges than those of others", key)


def _list(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    """Compare the tree: each of its objects is written once, unless an earlier run did that."""
    writes = Counter(request.key for request in requests if request.operation in _WRITES)
    if run.complete and run.exact:
        wanted = _prepared(run) if run.load["tree"] is None else 0
        yield from _once_each(writes, wanted, "objects")


def _shuffle(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    """Compare the objects: each is written once, and together the reducers read each byte once."""
    load = run.load
    wanted = load["mappers"] * (load["reducers"] if load["partitions"] == "objects" else 1)
    writes = Counter(request.key for request in requests if request.operation in _WRITES)
    if not (run.complete and run.exact):
        return
    yield from _once_each(writes, wanted, "objects")
    gets = by_key(request for request in requests if request.operation == "get")
    for key in writes:
        have = coverage(request.sent_range for request in gets.get(key, ()))
        for begin, end, (once, count) in segments({0: 1, declared_size(key) or 0: 0}, have):
            if count != once:
                text = f"{describe(begin, end)} read {count} times instead of {once}"
                yield Discrepancy("asked", text, key)


def _contend(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    """Compare the versions in the store with the requested commits.

    For claims, the number of successful requests is not known in advance. There may be more
    versions
    than commits, because a version is written again if the response to it is lost.
    """
    job, load = run.job, run.load
    prefix = f"{job['target']['prefix']}{run.run_id}/conditional/"
    writes = Counter(request.key for request in requests if request.operation in _WRITES)
    for key in writes:
        if not key.startswith(prefix):
            yield Discrepancy("asked", f"the keys should start with {prefix!r}", key)
    if not run.complete or load["pattern"] == "claim":
        return
    wanted = (load["operations"] or 0) * load["threads"] * job["number"] * rounds(run)
    if sum(writes.values()) < wanted:
        yield Discrepancy(
            "asked", f"{sum(writes.values())} versions were written instead of {wanted}"
        )


def _array(run: ReportedRun, requests: Sequence[StoreRequest]) -> Discrepancies:
    """Compare a library's transfers with its arrays: without a codec, they are never smaller."""
    if run.load["array"]["codec"] != "none" or run.load["array"]["path"] is not None:
        return
    reads = run.load["array"]["operation"] == "read"
    wanted: Counter[str] = Counter()
    for op in run.operations:
        wanted[op["key"]] += op["bytes"] if op["error"] is None else 0
    for key, count in wanted.items():
        requests_of_key = [request for request in requests if request.key.startswith(f"{key}/")]
        moved = sum(request.out_bytes if reads else request.in_bytes for request in requests_of_key)
        if moved < count:
            yield Discrepancy("asked", f"the store moved {moved} bytes of an array's {count}", key)


_CHECKS: Final[Mapping[str, Callable[[ReportedRun, Sequence[StoreRequest]], Discrepancies]]] = {
    "array": _array,
    "parquet": _columns,
    "conditional": _contend,
    "list": _list,
    "mixed": _mixed,
    "read": _read,
    "shuffle": _shuffle,
    "write": _write,
}
