"""One rig per executor: with a Lambda host, if any, and further hosts with faults."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from serverless_bench.driver.boto import open_s3
from serverless_bench.driver.target import ensure
from serverless_bench.job.target import Target
from tests.clouds.dask_clusters import running_cluster
from tests.clouds.lambda_hosts import NAME, LambdaHost, running_host
from tests.commands.processes import until
from tests.matrix.rig import HOST_DEADLINE_S, SLOW_START_S, Rig, client_of
from tests.stores.servers import Server, credentials

VERSION: Final = version("lithops").replace(".", "")
PYTHON: Final = f"{sys.version_info.major}{sys.version_info.minor}"
EMPTY_ZIP: Final = b"PK\5\6" + bytes(18)


@contextmanager
def local_rig(store: Server, directory: Path, faulty_hosts: int) -> Iterator[Rig]:
    with credentials(store.environment):
        flags = ("--concurrency", "2")
        yield Rig(
            executor="local",
            store=store,
            directory=directory,
            environment=store.environment,
            flags=flags,
        )


@contextmanager
def workers_rig(store: Server, directory: Path, faulty_hosts: int) -> Iterator[Rig]:
    with credentials(store.environment), ExitStack() as ending:
        yield Rig(
            executor="workers",
            store=store,
            directory=directory,
            environment=store.environment,
            number=4,
            workers=4,
            ending=ending,
        )


@contextmanager
def dask_rig(store: Server, directory: Path, clusters: int) -> Iterator[Rig]:
    """A cluster of somebody else's, with slots for all cells that are tried side by side.

    Without a cluster, ``clusters`` is 0: each cell has one of its own.
    """
    with credentials(store.environment), ExitStack() as stack:
        flags: tuple[str, ...] = ()
        if clusters:
            running = running_cluster(directory / "cluster", store.environment, 20, 20)
            cluster = stack.enter_context(running)
            flags = ("--scheduler", cluster.address)
        yield Rig(
            executor="dask",
            store=store,
            directory=directory,
            environment=store.environment,
            flags=flags,
            number=4,
            start_s=SLOW_START_S,
        )
        if clusters:
            until(lambda: not cluster.functions())


@contextmanager
def lambda_rig(store: Server, directory: Path, faulty_hosts: int) -> Iterator[Rig]:
    with ExitStack() as stack:
        plain, faulty = hosts(stack, *[store.environment] * (faulty_hosts + 1))
        stack.enter_context(credentials(plain.environment))
        yield Rig(
            executor="lambda",
            store=store,
            directory=directory,
            environment=plain.environment,
            flags=("--function", NAME),
            plain=plain,
            faulty=faulty,
        )


@contextmanager
def lithops_rig(store: Server, directory: Path, faulty_hosts: int) -> Iterator[Rig]:
    """Lithops with its aws_lambda backend; its runtime is deployed on every host."""
    with ExitStack() as stack:
        stack.enter_context(credentials(store.environment))
        environments = [_lithops(store, directory / str(n)) for n in range(faulty_hosts + 1)]
        # Each environment would spend a second of CPU time on these imports.
        plain, faulty = hosts(stack, *environments, preload=WORKER)
        stack.enter_context(credentials(plain.environment))
        rig = Rig(
            executor="lithops",
            store=store,
            directory=directory,
            environment=store.environment,
            number=4,
            start_s=SLOW_START_S,
            plain=plain,
            faulty=faulty,
        )
        with ThreadPoolExecutor() as threads:
            list(
                threads.map(
                    partial(deploy, rig), [plain, *(faulty.get() for _ in range(faulty_hosts))]
                )
            )
        yield rig
        for number in range(faulty_hosts + 1):
            _check_no_jobs(store, f"lithops-{number}")


def _lithops(store: Server, home: Path) -> Mapping[str, str]:
    """Return settings for a host and its clients; each host has its own functions and bucket."""
    home.mkdir()
    bucket = f"lithops-{home.name}"
    ensure(Target(bucket=bucket, endpoint_url=store.endpoint_url))
    configuration = home / "lithops.json"
    configuration.write_text(json.dumps(LITHOPS | {"aws_s3": {"storage_bucket": bucket}}))
    return {
        **store.environment,
        "AWS_ENDPOINT_URL_S3": store.endpoint_url,
        "LITHOPS_CONFIG_FILE": str(configuration),
        "HOME": str(home),
    }


def _check_no_jobs(store: Server, bucket: str) -> None:
    """Check that Lithops' own objects are deleted, too, after its host process has ended."""
    target = Target(bucket=bucket, endpoint_url=store.endpoint_url)

    def jobs() -> list[str]:
        with closing(open_s3(target)) as s3:
            listed = s3.list_objects_v2(Bucket=bucket, Prefix="lithops.jobs/")
        keys = [entry["Key"] for entry in listed.get("Contents", ())]
        # A worker that starts or ends after the host process may leave these (docs/faults.md).
        return [key for key in keys if not key.endswith((".init", "/status.json"))]

    with suppress(AssertionError):
        until(lambda: not jobs())
    assert jobs() == []


def hosts(
    stack: ExitStack, *environments: Mapping[str, str], preload: Sequence[str] = ()
) -> tuple[LambdaHost, "SimpleQueue[LambdaHost]"]:
    """Start a host without faults, and some for faults."""
    flags = ["--memory=256", f"--timeout={HOST_DEADLINE_S}", "--share-packages"]
    flags += [f"--preload={module}" for module in preload]
    with ThreadPoolExecutor() as threads:
        running = [running_host(environment, flags) for environment in environments]
        plain, *others = threads.map(stack.enter_context, running)
    faulty: SimpleQueue[LambdaHost] = SimpleQueue()
    for host in others:
        faulty.put(host)
    return plain, faulty


def deploy(rig: Rig, host: LambdaHost) -> None:
    """Let Lithops create its function: once, and before there are faults."""
    # Its dependencies are in a layer that it would build; here they are installed.
    with client_of(host) as caller:
        caller.publish_layer_version(
            LayerName=f"lithops_v{VERSION}_host_default-runtime-v{PYTHON}_layer",
            Content={"ZipFile": EMPTY_ZIP},
        )
    trial = rig.trial(f"deploy-{host.pid}", host)
    done = trial.write("--number", 1, "--start-timeout", 300)
    assert done.code == 0, done.err
    if host is not rig.plain:
        rig.faulty.put(host)


WORKER: Final = ("boto3", "lithops.worker", "lithops.storage.backends.aws_s3")
LITHOPS: Final = {
    "lithops": {
        "backend": "aws_lambda",
        "storage": "aws_s3",
        "monitoring_interval": 0.2,
        "telemetry": False,
    },
    "aws": {"region": "us-east-1"},
    "aws_lambda": {
        "execution_role": "arn:aws:iam::123456789012:role/worker",
        "runtime_memory": 256,
    },
}
"""Common settings of every host, without keys."""

RIGS: Final[Mapping[str, Callable[[Server, Path, int], AbstractContextManager[Rig]]]] = {
    "local": local_rig,
    "lithops": lithops_rig,
    "lambda": lambda_rig,
    "workers": workers_rig,
    "dask": dask_rig,
}
