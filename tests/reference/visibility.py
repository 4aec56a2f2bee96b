"""What a client showed of its requests."""

from tests.reference.rows import Saved

EVERYTHING = {"connection", "content_range", "first_byte", "last_byte_sent"}


def shown(run: Saved) -> set[str]:
    """Return what was shown; by the log of another tool everything."""
    client = run.header["provenance"].get("client", {})
    if "shows" in client:
        return {*client["shows"]}
    return EVERYTHING if "source" in run.header["provenance"] else set()


def not_shown(run: Saved) -> list[str]:
    """Return the fields that some operation would have had, had the client shown more."""
    seen, kinds = shown(run), {op["kind"] for op in run.good}
    found = []
    if "first_byte" not in seen and kinds & {"get", "get_range"}:
        found.append("ttfb_s")
    if "last_byte_sent" not in seen and "put" in kinds:
        found.append("ack_s")
    if "connection" not in seen and kinds:
        found.append("new_connections")
    return found
