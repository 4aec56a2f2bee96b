"""Properties of requests that a client exposes."""

from collections.abc import Sequence

from tests.reference.rows import Row, Saved

LOGGED = {"connection", "content_range", "first_byte"}
SENT = {"append_array", "put", "write_array"}


def shown(run: Saved) -> set[str]:
    """Return the exposed properties; for the log of another tool, all except arrival times."""
    client = run.header["provenance"].get("client", {})
    if "shows" in client:
        return {*client["shows"]}
    return LOGGED if "source" in run.header["provenance"] else set()


def not_shown(run: Saved) -> list[str]:
    """Return the fields that some operation would have had, had the client shown more."""
    seen, kinds = shown(run), {op["kind"] for op in run.good}
    found = []
    if hides_writes(run, run.good):
        found += ["peak_1s_bytes_per_s", "peak_5s_bytes_per_s"]
    if "first_byte" not in seen and kinds & {"get", "get_range"}:
        found.append("ttfb_s")
    if "acknowledged" not in seen and "put" in kinds:
        found.append("ack_s")
    if hides_failures(run):
        found += ["offered_bytes", "retried_bytes"]
    if "connection" not in seen and kinds:
        found.append("new_connections")
    return found


def hides_writes(run: Saved, ops: Sequence[Row]) -> bool:
    """Tell whether the arrival times of bytes of some writes are unknown."""
    return "acknowledged" not in shown(run) and any(op["kind"] in SENT for op in ops)


def hides_failures(run: Saved) -> bool:
    """Tell whether failed requests exist whose bytes are unknown."""
    return any(hides(run, op, one) for op in run.measured for one in op["attempts"])


def hides(run: Saved, op: Row, tried: Row) -> bool:
    """Tell whether the bytes of a failed request are unknown."""
    progress = run.header["provenance"].get("client", {}).get("progress")
    if not tried["error"]:
        return False
    is_begun = op["kind"] in {"get", "get_range"} and 200 <= (tried["status"] or 0) < 300
    blind = {"none": True, "body": is_begun}.get(progress, False)
    return blind or hides_writes(run, [op])
