"""What a report should say of scans, from the rows and an encoded layout."""

import json
import zlib
from base64 import b64decode
from collections.abc import Callable
from fractions import Fraction
from hashlib import blake2b
from typing import Any

from tests.reference.rows import Row, S, Saved


def scans(run: Saved, percentiles: Callable[[Any], Any], elapsed_s: Fraction | None) -> Row | None:
    """Return the figures of its ``figures.toml``; None without a successful scan."""
    done = [op for op in run.good if op["kind"] == "scan"]
    if run.job["workload"] != "parquet" or not done:
        return None
    if run.job["size"] is None:
        answered = sum(tried["error"] is None for op in done for tried in op["attempts"])
        figures: Row = dict.fromkeys(("footer_s", "needed_bytes", "needed_bytes_per_s"))
        moved = sum(op["bytes"] for op in done)
        requests = Fraction(answered, len(done))
        return {"files": len(done), **figures, "requests_per_file": requests, "read_bytes": moved}
    load = run.job["load"]
    layout = json.loads(zlib.decompress(b64decode(load["layout_from"])))
    tail = layout["footer"] + 8
    for_footer = 2 if tail > min(load["footer_guess"], run.job["size"]) else 1
    needed = tail
    for group in layout["row_groups"]:
        drawn = sorted(range(len(group)), key=lambda n: blake2b(b"%d" % n, digest_size=8).digest())
        for column in drawn[: max(1, round(load["column_fraction"] * len(group)))]:
            needed += group[column][1]
    times, answered = [], 0
    for op in done:
        ok = [tried for tried in op["attempts"] if tried["error"] is None]
        answered += len(ok)
        if ok:
            last = ok[min(for_footer, len(ok)) - 1]
            times.append(Fraction(last["end_ns"] - op["start_ns"], S))
    return {
        "files": len(done),
        "footer_s": percentiles(times),
        "requests_per_file": Fraction(answered, len(done)),
        "read_bytes": sum(op["bytes"] for op in done),
        "needed_bytes": needed * len(done),
        "needed_bytes_per_s": None if not elapsed_s else needed * len(done) / elapsed_s,
    }
