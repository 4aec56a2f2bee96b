"""Functions of several sizes and architectures in a stack, and copies; the host counts runs.

moto has the stack and its buckets, the Lambda host runs the functions.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.features.doctor.tests.integration.test_doctor import Cloud
from tests.clouds.lambda_hosts import LambdaHost, running_host
from tests.commands.command import Done, Sbench
from tests.house.members import uses
from tests.stores.servers import Server

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux")

CLIENTS = ("wire", "boto3")
KINDS = [(memory, arch) for memory in (1769, 3538) for arch in ("arm64", "x86_64")]
FIELDS = {"client": ("control.client", "target.client")}
"""Fields of a job that a setting changes, if they have other names."""
BLOCKS, NUMBER = 6, 2


@pytest.fixture(scope="module")
def cloud(moto: Server) -> Cloud:
    return Cloud(moto)


@contextmanager
def deployed(cloud: Cloud, name: str, functions: list[str], *flags: str) -> Iterator[LambdaHost]:
    """Deploy a stack with outputs that name these functions, and run them."""
    cloud.deploy(name, functions=functions)
    each = [word for one in functions for word in ("--function", one.split()[0])]
    with running_host(cloud.environment, [*each, *flags]) as host:
        yield host


def named(stack: str, memory: int, arch: str, copy: str = "", client: str = "wire") -> str:
    """An output as the template writes it."""
    suffix = "" if client == "wire" else f"-{client}"
    return f"{stack}-worker-{memory}-{arch}{suffix}{copy} {memory} {arch} {client}"


def environment(cloud: Cloud, host: LambdaHost) -> dict[str, str]:
    return {**host.environment, "AWS_ENDPOINT_URL": cloud.environment["AWS_ENDPOINT_URL"]}


@pytest.fixture(scope="module")
def several(cloud: Cloud) -> Iterator[tuple[LambdaHost, Sbench]]:
    functions = [named("several", *kind, client=client) for client in CLIENTS for kind in KINDS]
    with deployed(cloud, "several", functions) as host:
        yield host, Sbench(Path(), environment(cloud, host))


def accepted(host: LambdaHost) -> dict[str, int]:
    """Number of events sent to each function, by its name after the stack's."""
    found = host.status()["functions"]
    return {name.partition("-worker-")[2]: count for name, count in found.items()}


def more(after: dict[str, int], before: dict[str, int]) -> dict[str, int]:
    return {name: n - before.get(name, 0) for name, n in after.items() if n > before.get(name, 0)}


@pytest.mark.parametrize(
    ("setting", "values", "ran"),
    [
        ("memory", (1769, 3538), ("1769-arm64", "3538-arm64")),
        ("arch", ("arm64", "x86_64"), ("1769-arm64", "1769-x86_64")),
        ("client", ("wire", "boto3"), ("1769-arm64", "1769-arm64-boto3")),
    ],
)
def test_ab_compares_what_one_stack_has(
    several: tuple[LambdaHost, Sbench],
    tmp_path: Path,
    setting: str,
    values: tuple[Any, Any],
    ran: tuple[str, str],
) -> None:
    host, called = several
    jobs = [tmp_path / f"{value}.toml" for value in values]
    for job, value in zip(jobs, values, strict=True):
        job.write_text(
            'command = "write"\nexecutor = "lambda"\nstack = "several"\nsize = "4KiB"\n'
            # The processes behind both CPUs are of this machine's, which a probe would see.
            f"probe = false\nnumber = {NUMBER}\n{setting} = {json.dumps(value)}\n"
        )
    before = accepted(host)
    done = Sbench(tmp_path, called.environment)(
        *("ab", *map(str, jobs)),
        *("--blocks", BLOCKS, "--warm-up-blocks", 0, "--keep", "--format", "json"),
    )
    # Neither side has to be faster, and four runs may not decide.
    assert done.code in {0, 9, 10}, done.err
    assert done.json["differing"] == {
        "function": [[f"several-worker-{one}"] for one in ran],
        **{name: list(values) for name in FIELDS.get(setting, (setting,))},
    }
    assert more(accepted(host), before) == dict.fromkeys(ran, BLOCKS * NUMBER)


STUDY = Path(__file__).parents[5] / "examples" / "clients_on_lambda.toml"


def test_a_study_sweeps_client_memory_and_cpu(
    several: tuple[LambdaHost, Sbench], tmp_path: Path
) -> None:
    host, called = several
    before = accepted(host)
    done = Sbench(tmp_path, called.environment)(
        *("study", "run", STUDY, "--stack", "several", "--repeats", 2, "--keep"),
        *("--only", f"client={','.join(CLIENTS)}", "--set", "size=1MiB", "--format", "json"),
        # The processes behind both CPUs are of this machine's, which a probe would see.
        *("--set", "probe=false"),
    )
    assert done.code == 0, done.err
    ran = more(accepted(host), before)
    assert set(ran) == {
        f"{memory}-{arch}{suffix}" for memory, arch in KINDS for suffix in ("", "-boto3")
    }
    # Two functions in each of two rounds, and one run to warm up the store.
    assert sorted(ran.values()) == [*[4] * 7, 6]


def refused(several: tuple[LambdaHost, Sbench], tmp_path: Path, *words: str | Path | int) -> Done:
    _, called = several
    done = Sbench(tmp_path, called.environment)(*words)
    assert (done.code, done.out) == (2, "")
    return done


@uses("client awscrt")
def test_functions_missing_in_the_stack_are_refused_before_a_run(
    several: tuple[LambdaHost, Sbench], tmp_path: Path
) -> None:
    write = ("write", "--executor", "lambda", "--stack", "several", "--mb", 1)
    done = refused(several, tmp_path, *write, "--memory", 512)
    assert "--memory asks for 512 MB, and the stack has 1769 MB on arm64" in done.err
    done = refused(several, tmp_path, *write, "--client", "awscrt")
    assert "--client asks for awscrt, and the functions of the stack have wire, boto3" in done.err
    file = tmp_path / "functions.toml"
    text = STUDY.read_text()
    file.write_text(text.replace("3538", "512"))
    done = refused(several, tmp_path, "study", "run", file, "--stack", "several")
    assert "--memory asks for 512 MB" in done.err
    done = refused(several, tmp_path, "study", "run", STUDY, "--stack", "several")
    assert "--client asks for minio, and the functions of the stack have wire, boto3" in done.err
    done = refused(
        several, tmp_path, "study", "run", file, "--function", "several-worker-1769-arm64"
    )
    assert "chooses among the functions of a stack" in done.err
    # Processes of this machine offer no choice of functions.
    done = refused(several, tmp_path, "write", "--mb", 1, "--arch", "arm64")
    assert "--arch does not apply to --executor local" in done.err


@pytest.mark.parametrize(("copies", "number"), [(1, 4), (5, 10)])
def test_copies_launch_as_many_times_as_fast(
    cloud: Cloud, tmp_path: Path, copies: int, number: int
) -> None:
    """AWS's rates in small: two environments of each function at once, then one every 5 s.

    The host counts the events that had to wait for an environment.
    """
    stack, concurrency = f"copies{copies}", 2
    functions = [
        named(stack, 1769, "arm64", f"-{copy}" if copy > 1 else "") for copy in range(1, copies + 1)
    ]
    rates = (
        "--scripted",
        "--duration",
        "30",
        "--launch-burst",
        str(concurrency),
        "--launch-rate",
        "0.2",
    )
    with deployed(cloud, stack, functions, *rates) as host:
        done = Sbench(tmp_path, environment(cloud, host))(
            *("write", "--executor", "lambda", "--stack", stack, "--number", number),
            # A probe would keep an environment busy as long as any other event.
            *("--size", "4KiB", "--format", "json", "--no-probe"),
        )
        status = host.status()
    assert (done.code, done.json["ok"]) == (0, number), done.err
    assert set(status["functions"].values()) == {number // copies}
    # On a busy machine the last event may come so late that it does not wait, but not all of them.
    assert (status["waited"] > 0) == (copies == 1)
