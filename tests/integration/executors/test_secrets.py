"""Credentials only reach the code that signs with them: no argument, file or message."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from serverless_bench.clients import CLIENTS
from serverless_bench.features.loopback.process import served
from serverless_bench.features.loopback.server import LoopbackServer, serving
from tests.clouds.dask_clusters import running_cluster
from tests.clouds.lambda_hosts import running_host
from tests.commands.command import Apart, Sbench
from tests.commands.credentials import ENVIRONMENT, PROXY_PASSWORD, SECRETS, leaking, shown, watched
from tests.contract.declared import info_of
from tests.house.members import uses
from tests.stores.faulty import Exchange, FaultServer
from tests.stores.servers import credentials

pytestmark = pytest.mark.on_change(
    "launching functions",
    "serverless_bench/features/dask",
    "serverless_bench/features/lithops",
    "serverless_bench/features/workers",
)

JOB = ("--number", 3, "--mb", 1, "--name", "w", "--run-dir", ".")
SBENCH, FORKS = "serverless_bench", "forked_environments.py"
LOCAL, LITHOPS = (
    "serverless_bench.executors.local_workers",
    "serverless_bench.features.lithops.host",
)

PYTHON = Path(sys.executable).name
"""Name of a Dask worker here that ``multiprocessing`` starts."""
DASK_FUNCTIONS = "serverless_bench.features.dask.worker"
DASK = ("serverless_bench.features.dask.host", DASK_FUNCTIONS, PYTHON)
"""The host of a cluster that is started here passes credentials on to its workers."""


PASSING = {"uname", "git"}
"""Started by Python's ``platform``, and to look for a checkout; they end immediately."""


@pytest.fixture
def here(tmp_path: Path) -> Sbench:
    (tmp_path / "tmp").mkdir()
    own = {"TMPDIR": str(tmp_path / "tmp"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return Sbench(tmp_path, {**ENVIRONMENT, **own})


@pytest.fixture
def sbench(here: Sbench) -> Apart:
    return here.apart


@pytest.fixture
def store() -> Iterator[LoopbackServer]:
    with serving() as server:
        yield server


Place = Callable[[Apart, str], AbstractContextManager[tuple[Apart, Sequence[str]]]]
"""Takes the command and the store; yields the command and the value of ``--executor``."""


@contextmanager
def on_lambda(sbench: Apart, store: str) -> Iterator[tuple[Apart, Sequence[str]]]:
    del store
    logs = sbench.directory / "logs"
    with running_host(sbench.environment, ["--log-dir", logs]) as host:
        assert not shown(*host.startup_output)
        yield Apart(sbench.directory, host.environment), ("lambda", "--function", "sbench-worker")
        assert not shown(str(host.status()))


@contextmanager
def on_workers(sbench: Apart, store: str) -> Iterator[tuple[Apart, Sequence[str]]]:
    with sbench.start(
        "worker", "--control", "s3://any/sbench-control/", "--endpoint-url", store
    ) as worker:
        yield sbench, ("workers",)
        worker.terminate()
        assert not shown(*worker.communicate())


@contextmanager
def on_dask(sbench: Apart, store: str) -> Iterator[tuple[Apart, Sequence[str]]]:
    """Start a cluster of another user, with credentials in its workers."""
    del store
    with running_cluster(sbench.directory / "cluster", sbench.environment, 1) as cluster:
        yield sbench, ("dask", "--scheduler", cluster.address)


def by_itself(name: str) -> Place:
    return lambda sbench, _: nullcontext((sbench, (name,)))


@uses("executor workers", "executor dask")
@pytest.mark.parametrize(
    ("executor", "holders"),
    [
        (by_itself("inline"), {SBENCH}),
        (by_itself("local"), {SBENCH, LOCAL}),
        (by_itself("dask"), {SBENCH, *DASK}),
        (on_dask, {SBENCH, DASK_FUNCTIONS, "tests.clouds.dask_clusters"}),
        (by_itself("lithops"), {SBENCH, LITHOPS, "localhost-runner-v1.py"}),
        (on_lambda, {SBENCH, FORKS}),
        (on_workers, {SBENCH}),
    ],
    ids=["inline", "local", "dask", "a cluster", "lithops", "lambda", "workers"],
)
def test_no_executor_shows_credentials_to_anybody_else(
    sbench: Apart, store: LoopbackServer, executor: Place, holders: set[str]
) -> None:
    url = store.endpoint_url
    with watched(sbench.directory) as leaks, executor(sbench, url) as (run, named):
        done = run("write", *JOB, "--bucket", "any", "--endpoint-url", url, "--executor", *named)
        assert done.code == 0, done.err
    assert (leaks.arguments, leaks.files) == (set(), set())
    assert leaks.holders - PASSING <= holders
    assert not shown(done.out, done.err)


def test_the_embedded_store_never_gets_the_users_credentials(sbench: Apart) -> None:
    directory = sbench.directory / "store"
    with watched(sbench.directory) as leaks:
        done = sbench("write", *JOB, SBENCH_STORE_DIR=str(directory))
    assert done.code == 0, done.err
    assert (leaks.arguments, leaks.files) == (set(), set())
    assert leaks.holders - PASSING <= {SBENCH, LOCAL}


def test_nor_does_the_loopback_store(tmp_path: Path) -> None:
    with credentials(ENVIRONMENT), watched(tmp_path) as leaks, served():
        # Nor does it receive any of them, because it does not speak Azure's protocol.
        others = {PROXY_PASSWORD, SECRETS["AZURE_STORAGE_ACCOUNT_KEY"]}
        assert {*shown(*os.environ.values())} == others
    assert (leaks.arguments, leaks.holders) == (set(), set())


def echoes(exchange: Exchange) -> bool:
    """Refuse, and repeat everything that the request contained, as S3 does in part."""
    exchange.drain()
    told = "; ".join(f"{name}={value}" for name, value in exchange.headers.items())
    key = f"<AWSAccessKeyId>{SECRETS['AWS_ACCESS_KEY_ID']}</AWSAccessKeyId>"
    xml = f"<Error><Code>SignatureDoesNotMatch</Code><Message>{told}</Message>{key}</Error>"
    exchange.say(403, b"" if exchange.method == "HEAD" else xml.encode())
    return True


def refuses_objects(exchange: Exchange) -> bool:
    """Let the driver pass, and refuse the workers."""
    if exchange.method == "HEAD":
        exchange.say(200)
        return True
    return echoes(exchange)


@pytest.mark.parametrize("client", CLIENTS)
def test_credentials_in_a_stores_answer_are_not_kept(here: Sbench, client: str) -> None:
    sbench = here.apart if "one_store" in info_of(client).quirks else here
    with FaultServer([refuses_objects] * 99) as server:
        where = ("--bucket", "bucket", "--endpoint-url", server.endpoint_url)
        how = ("--executor", "inline", "--client", client, "--retries", 0)
        done = sbench("write", *JOB, *where, *how)
    assert done.code == 6, done.err
    assert not shown(done.out, done.err)
    assert [*leaking(sbench.directory)] == []


def test_the_driver_prints_no_credentials(here: Sbench) -> None:
    with FaultServer([echoes] * 99) as server:
        where = ("--bucket", "bucket", "--endpoint-url", server.endpoint_url)
        done = here("write", *JOB, *where)
    assert done.code == 5, done.err
    assert not shown(done.out, done.err)


WITH_PASSWORD = f"http://someone:{PROXY_PASSWORD}@127.0.0.1:9"


@pytest.mark.parametrize(
    "words",
    [
        ("write", "--bucket", "b", "--endpoint-url", WITH_PASSWORD),
        ("worker", "--control", "s3://any/c/", "--endpoint-url", WITH_PASSWORD),
        ("doctor", "--bucket", "b", "--endpoint-url", WITH_PASSWORD),
    ],
)
def test_a_password_in_an_endpoint_is_refused_and_not_repeated(
    here: Sbench, words: tuple[str, ...]
) -> None:
    done = here(*words)
    assert done.code == 2
    assert "contains a user or a password" in done.err
    assert not shown(done.out, done.err)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("AWS_ENDPOINT_URL_S3", ("write", "--bucket", "bucket")),
        ("AWS_ENDPOINT_URL", ("plan", "--stack", "mine", "write")),
        ("AWS_ENDPOINT_URL_LAMBDA", ("write", "--bucket", "bucket", "--executor", "lambda")),
    ],
)
def test_nor_is_one_that_the_environment_names(
    here: Sbench, name: str, words: tuple[str, ...]
) -> None:
    with FaultServer() as server:
        more = ("--endpoint-url", server.endpoint_url, "--function", "f")
        done = here(*words, *(more if "lambda" in words else ()), **{name: WITH_PASSWORD})
    assert done.code == 2, done.err
    assert "contains a user or a password" in done.err
    assert not shown(done.out, done.err)
    assert [*leaking(here.directory)] == []
