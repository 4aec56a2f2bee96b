"""Work that a parent does once before it forks workers, so that they inherit the result."""

import json
import sys
from dataclasses import asdict, replace
from urllib.parse import urlsplit

from serverless_bench.clients import CLIENTS
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import StoreProtocol
from serverless_bench.job.workload import Load


def rehearse(event: str) -> None:
    """Do the setup work of a first invocation, given as JSON, once for all workers.

    It imports the client, loads its models, makes a TLS context and asks OpenSSL for a cipher. A
    worker that inherits this needs 5 MiB less than if it does it itself.
    """
    from serverless_bench.payload import keystream
    from serverless_bench.worker import invocation

    keystream.Keystream("").agrees(0, memoryview(bytes(1)))
    invocation.handle(json.loads(event))
    invocation.forget_clients()


def rehearsal(job: JobSpec) -> str:
    """Return, as JSON, an invocation like the job's that fails at a closed port of this machine."""
    scheme = urlsplit(job.target.endpoint_url).scheme
    # A read's part size may be below the minimum for a write.
    transfer = replace(job.transfer, retries=0, timeout=1.0, part_size=None)
    once = replace(
        job,
        transfer=transfer,
        workload="write",
        size=1,
        duration=None,
        warm_up=0,
        options={},
        # No rate and no code: command-line arguments must be short.
        load=Load(),
    )
    target = replace(job.target, endpoint_url=f"{scheme}://127.0.0.1:1")
    if not CLIENTS.load(target.client).info.forkable:
        # A fork does not copy threads: waiting for such a thread would never end.
        target = replace(target, client="", protocol=StoreProtocol.S3, client_option=())
    first = next(invocation_specs(once, run_id="", created_ns=0))
    first = replace(first, target=target, not_after_ns=sys.maxsize)
    return json.dumps(asdict(first))
