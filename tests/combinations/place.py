"""Servers for cases: one store in this process, and a Lambda host if needed."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

from serverless_bench.features.loopback.server import serving
from serverless_bench.features.loopback.state import LoopbackSettings
from tests.clouds.dask_clusters import running_cluster
from tests.clouds.lambda_hosts import running_host
from tests.combinations.cases import FUNCTIONS, Bench
from tests.stores.servers import KEYS, credentials

SESSION_S = 2.0
"""Sessions of directory buckets end while cases run."""
_MEMORY = {"AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769", "SBENCH_ALLOW_CODE": "1"}
"""Functions with a memory size have a bill, also here."""


@contextmanager
def bench_in(directory: Path, *, functions: bool) -> Iterator[Bench]:
    """Yield a bench; without ``functions`` there is no Lambda host."""
    with ExitStack() as stack:
        more = dict(KEYS)
        if functions:
            flags = ["--pass", "SBENCH_ALLOW_CODE"]
            host = stack.enter_context(running_host({"SBENCH_ALLOW_CODE": "1"}, flags))
            more |= host.environment
        stack.enter_context(credentials({**more, **_MEMORY}))
        os.environ["AWS_EC2_METADATA_DISABLED"] = "true"
        server = stack.enter_context(serving(LoopbackSettings(express_s=SESSION_S)))

        @cache
        def dask() -> str:
            cluster = running_cluster(directory / "dask", {}, 2 * FUNCTIONS)
            return stack.enter_context(cluster).address

        yield Bench(server, directory, dask=dask)
