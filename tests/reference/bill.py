"""AWS's bill for a run, request by request, from the price list."""

import tomllib
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

from tests.reference.rows import Row, S, Saved

_ROOT: Final = Path(__file__).parents[2]
_LIST: Final = _ROOT / "serverless_bench" / "features" / "cost" / "aws-us-east-1.toml"
GIB: Final = 1 << 30
GET_CLASS: Final = ("get", "head")
FREE: Final = (
    *("abort_multipart", "delete", "delete_many"),
    *("append_array", "create_array", "read_array", "write_array"),
)
"""Deletions and aborts; calls of array libraries are not requests."""


UP: Final = {"put", "upload_part", "write_array", "append_array"}
DOWN: Final = {"get", "read_array"}


def bill(run: Saved) -> Row | None:
    began = [one.record for one in run.functions if one.record]
    there = [record for record in began if record["memory_mib"] is not None]
    on_aws, outside = place(run)
    if not there and not (began and on_aws):
        return None
    prices, cost = price_list(), price_of
    arm = any(record["machine"] in {"aarch64", "arm64"} for record in there)
    architecture = "arm64" if arm else "x86_64"
    asked = [*(run.header.get("probe") or {"functions": []})["functions"]]
    asked += run.end.get("probed", [])
    billed_ms = [milliseconds(run, record) for record in there]
    billed_ms += [one["billed_ms"] for one in asked]
    sizes = [record["memory_mib"] for record in there] + [one["memory_mib"] or 0 for one in asked]
    spent = zip(billed_ms, sizes, strict=True)
    gb_s = sum((Fraction(ms * mib, 1000 * 1024) for ms, mib in spent), Fraction(0))
    data, parts = of_operations(run), {"control": control(run), "barrier": barrier(run)}
    parts["probes"] = {"head": heads(run)}
    for part, name in (("control", "control"), ("probes", "data")):
        for kind, number in chain(*(one["requests"].get(name, {}).items() for one in asked)):
            parts[part][kind] = parts[part].get(kind, 0) + number
    overhead = {name: some(part) for name, part in parts.items()}
    in_data_bucket = [data, overhead["barrier"], overhead["probes"]]

    # S3 makes a request for the key of each object; claims and records have S3's own encryption,
    # unless the job asks for KMS.
    key = cost("kms", "request") * bool(run.job["target"].get("uses_kms"))
    records = run.job["control"] or {}
    control_key = cost("kms", "request") * bool(records.get("sse") and records.get("uses_kms"))

    def requests(counts: Iterable[Row], *, own: bool, kms: Fraction) -> tuple[Fraction, Fraction]:
        every = [(name, count) for part in counts for name, count in part.items()]
        gets = sum(count for name, count in every if name in GET_CLASS)
        puts = sum(count for name, count in every if name not in GET_CLASS)
        return puts * (cost("s3", "put") * own + kms), gets * (cost("s3", "get") * own + kms)

    puts, gets = requests(in_data_bucket, own=not outside, kms=key)
    up, down = moved(run, UP), moved(run, DOWN)
    at_aws = on_aws or not run.job["target"]["endpoint_url"]
    regions = [run.job.get("function_region"), run.job["target"]["region"] if at_aws else None]
    apart = at_aws and regions[0] not in {None, regions[1]}
    crossing = up + down if apart and there else 0
    out = up if outside and there else 0
    in_vpc = any(one.get("in_vpc") for one in asked)
    extra_costs = {
        "nat": Fraction(up + down, GIB) * cost("network", "nat_gb") * bool(there and in_vpc),
        "internet": Fraction(down, GIB) * cost("network", "internet_gb") * (not there),
    }
    dollars = {
        "compute": gb_s * cost("lambda", f"{architecture}_gb_s"),
        "invocations": len(billed_ms) * cost("lambda", "request"),
        "puts": puts,
        "gets": gets,
        "control": sum(
            requests([overhead["control"]], own=not outside_control(run), kms=control_key)
        ),
        "storage": Fraction(0),
        "logs": Fraction(700 * len(billed_ms), GIB) * cost("logs", "ingest_gb"),
        "network": Fraction(crossing, GIB) * cost("network", "cross_region_gb")
        + Fraction(out, GIB) * cost("network", "internet_gb"),
    }
    return {
        **{name: prices[name] for name in ("as_of", "region", "currency")},
        "run_regions": list(dict.fromkeys(filter(None, regions))) or None,
        "on_aws": on_aws,
        "architecture": architecture,
        "total": sum(dollars.values(), Fraction(0)),
        "dollars": dollars,
        "invocations": len(billed_ms),
        "billed_s": Fraction(sum(billed_ms), 1000),
        "gb_s": gb_s,
        "cross_region_bytes": crossing or None,
        "internet_bytes": out if outside else None,
        "extra_costs": {name: amount for name, amount in extra_costs.items() if amount} or None,
        "requests": {
            **data,
            **{n: sum(c.values()) for n, c in overhead.items() if c or n == "control"},
        },
        "overhead": {n: counts for n, counts in overhead.items() if counts or n == "control"},
        "requests_exact": is_exact(run),
        "unknown": unknown(run),
        "storage_per_h": kept(run) * cost("s3", "storage_gb_month") * (not outside) / (GIB * 730),
    }


@cache
def price_list() -> Row:
    with _LIST.open("rb") as file:
        return tomllib.load(file)


def price_of(section: str, name: str) -> Fraction:
    return Fraction(str(price_list()[section][name]["price"]))


def place(run: Saved) -> tuple[bool, bool]:
    """Return whether AWS bills the store, and whether it is elsewhere on the internet."""
    found = [host_of(url) for url in (run.job["target"]["endpoint_url"], *run.job["endpoints"])]
    return found[0].endswith(".amazonaws.com"), any(map(is_public, found))


def outside_control(run: Saved) -> bool:
    control = run.job["control"]
    return bool(control) and is_public(host_of(control["endpoint_url"]))


def host_of(url: str) -> str:
    # Without an endpoint the cloud's own is used, as in a plan.
    return url.split("//")[1].split("/", maxsplit=1)[0].split(":", maxsplit=1)[0] if url else ""


def is_public(host: str) -> bool:
    parts = host.split(".")
    return len(parts) > 1 and not host.endswith(".amazonaws.com") and not parts[-1].isdigit()


def moved(run: Saved, kinds: set[str]) -> int:
    """Return the bytes of all attempts of these kinds, with any result."""
    every = [t for f in run.functions if f.record for op in f.operations for t in op["attempts"]]
    return sum(tried["bytes"] for tried in every if tried["request"] in kinds)


def some(counts: Row) -> Row:
    return {name: count for name, count in counts.items() if count and name not in FREE}


def milliseconds(run: Saved, record: Row) -> int:
    spent = record["end_ns"] - record["start_ns"] + (record["import_ns"] or 0)
    spent += S // 10 if run.job["control"] else 0
    return -int(-spent // 10**6)


def of_operations(run: Saved) -> Row:
    """Return the attempts that AWS bills, including those without an answer."""
    found: Row = {}
    for tried in [t for f in run.functions for op in f.operations for t in op["attempts"]]:
        if tried["status"] is None or tried["status"] < 500:
            found[tried["request"]] = found.get(tried["request"], 0) + 1
    return some(found)


def barrier(run: Saved) -> Row:
    driver = run.end.get("store_requests") or {}
    mine = [one.record for one in run.functions if one.record]
    return {
        "put": sum(record["barrier_puts"] or 0 for record in mine) + driver.get("put", 0),
        "get": sum(record["barrier_gets"] or 0 for record in mine) + driver.get("get", 0),
        "list": driver.get("list", 0),
    }


def control(run: Saved) -> Row:
    if run.job["control"] is None:
        return {}
    mine = [one.record for one in run.functions if one.record]
    driver = run.end.get("requests")
    if driver is None:
        driver = {"get": len(mine), "list": -(-len(mine) // 5)}
    found = dict(driver)
    puts = sum(record["control_puts"] for record in mine)
    gets = sum(record["control_gets"] for record in mine)
    for name, count in (("put", puts), ("get", gets)):
        found[name] = found.get(name, 0) + count
    return found


def is_exact(run: Saved) -> bool:
    mine = [one.record for one in run.functions if one.record]
    if run.header["provenance"].get("client", {}).get("attempts") != "exact":
        return False
    if any(op["kind"] == "call" for one in run.functions for op in one.operations):
        return False
    if not run.has_all_requests:
        return False
    if run.job.get("barrier") is not None and any(
        record["barrier_puts"] is None and not record["duplicate"] for record in mine
    ):
        return False
    return run.job["control"] is None or run.end.get("requests") is not None


def heads(run: Saved) -> int:
    return int((run.end.get("store_requests") or {}).get("head", 0))


def unknown(run: Saved) -> int:
    """Return the launches that may have started, and left no record."""
    came = {(one.index, one.launch) for one in run.functions if one.record}
    silent = [one for one in run.functions if not one.record and not one.not_started]
    return sum(1 for one in silent if (one.index, one.launch) not in came)


def kept(run: Saved) -> int:
    """Return the bytes of the objects that exist at the end."""
    there: dict[str, int] = {}
    good = [op for one in run.functions for op in one.operations if op["error"] is None]
    for op in sorted(good, key=lambda op: op["end_ns"]):
        if op["kind"] in {"append_array", "copy", "put", "write_array"}:
            there[op["key"]] = op["size"] or 0
        elif op["kind"] in {"delete", "delete_many"}:
            there.pop(op["key"], None)
    return sum(there.values())
