"""Records as in a run directory: tables of columns."""

from typing import Any, Final

_INSTANTS: Final = ("start_ns", "end_ns", "first_byte_ns", "last_byte_sent_ns", "intended_ns")


def shift(record: dict[str, Any], skew: int) -> None:
    """Put a worker's instants on a clock that is ahead."""
    for name in ("start_ns", "end_ns", "wall_start_ns", "wall_end_ns", "born_ns"):
        record[name] = None if record[name] is None else record[name] + skew
    for table in ("operations", "attempts", "dropped"):
        for name in (*_INSTANTS, "answered_ns", "first_ns", "last_ns", "until_ns"):
            column = record[table].get(name, [])
            record[table][name] = [None if at is None else at + skew for at in column]
            if name not in _FIELDS[table]:
                del record[table][name]


_FIELDS: Final = {
    "operations": (
        *("index", "kind", "key", "size", "start_ns", "end_ns", "first_byte_ns"),
        *("last_byte_sent_ns", "bytes", "verified_bytes", "bad_bytes", "bad_ranges"),
        *("payload_ns", "error", "warmup", "offset", "generation", "count", "intended_ns"),
    ),
    "attempts": (
        *("operation", "request", "part", "number", "start_ns", "end_ns", "wait_ns", "status"),
        *("error", "detail", "request_id", "host_id", "remote", "reused", "bytes"),
        *("answered_ns", "date_s"),
    ),
    "accesses": (*("operation", "key", "act", "version", "base", "start_ns", "end_ns", "ending"),),
    "dropped": ("first_ns", "last_ns", "count", "until_ns"),
    "steps": ("operation", "step_ns", "step_bytes"),
    "bad_ranges": (
        *("operation", "key", "offset", "length", "bad_bytes", "found", "found_key_hash"),
        *("found_generation", "found_offset"),
    ),
    "usages": (
        *("operation", "rss_before_bytes", "rss_peak_bytes", "threads_peak"),
        *("cpu_user_s", "cpu_sys_s"),
    ),
}


def columns(name: str, rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {field: [row[field] for row in rows] for field in _FIELDS[name]}
