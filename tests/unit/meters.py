"""A meter of one attempt that no deadline ends."""

from serverless_bench.worker.meter import Meter, unseen


def patient_meter() -> Meter:
    """Return a meter that waits as long as it takes."""
    return Meter("test", part=0, number=0, wait_ns=0, deadline_ns=1 << 62, on_moved=unseen)
