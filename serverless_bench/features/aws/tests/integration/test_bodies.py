"""Functions with the library of a client: built by the recipe, and run on the Lambda host."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.clients import CLIENTS
from serverless_bench.features.aws.stack.template import (
    ARCHITECTURES,
    DEFAULT_MEMORY,
    RUNTIMES,
    THIN,
    template,
)
from tests.clouds.lambda_hosts import NAME, running_host
from tests.clouds.sam import body, body_for_here, build, size
from tests.commands.command import Sbench
from tests.stores.servers import Server

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="functions need Linux"),
    pytest.mark.on_change(
        "serverless_bench/features/aws",
        "serverless_bench/features/lambda_host",
        "serverless_bench/features/remote/handler.py",
        "serverless_bench/clients",
    ),
]
MOST_BYTES = 250 * MIB
"""AWS Lambda quotas: a deployment package, unzipped."""
LIBRARIES = sorted({*CLIENTS} - {THIN})


def records(run: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "records.jsonl").read_text().splitlines())
    return [line["record"] for line in lines if "record" in line]


def test_a_library_is_in_functions_of_its_client_alone(tmp_path: Path) -> None:
    folder = build(tmp_path, *DEFAULT_MEMORY, clients=[THIN, "boto3"])
    thin, own = sorted(folder.glob("Worker*"))
    libraries = {path.name for path in own.iterdir()} - {path.name for path in thin.iterdir()}
    assert libraries == {"boto3", "s3transfer"}
    client = "serverless_bench/clients/boto3.py"
    assert (own / client).exists()
    assert not (thin / client).exists()
    # Of 400 services only one is described.
    services = [path.name for path in (own / "botocore/data").iterdir() if path.is_dir()]
    assert services == ["s3"]


@pytest.mark.parametrize(
    "client",
    [pytest.param(name, marks=() if name == "boto3" else pytest.mark.full) for name in CLIENTS],
)
def test_a_function_of_each_client_runs_under_the_genuine_runtime_client(
    client: str, embedded: Server, tmp_path: Path
) -> None:
    code = body_for_here(tmp_path, client)
    assert size(code) < MOST_BYTES
    environment = {**embedded.environment, "SBENCH_IMPORT_CLIENT": client}
    with running_host(environment, ["--code", code, "--pass", "SBENCH_IMPORT_CLIENT"]) as host:
        sbench = Sbench(tmp_path, host.environment).apart
        flags = ("--executor", "lambda", "--function", NAME, "--client", client)
        place = ("--bucket", embedded.bucket, "--endpoint-url", embedded.endpoint_url)
        wrote = sbench("write", *flags, *place, "--number", 2, "--mb", 8, "--name", "wrote")
        assert wrote.code == 0, wrote.err
        read = sbench("read", *flags, "--from", "wrote", "--name", "read", "--format", "json")
        assert read.code == 0, read.err
        assert read.json["verified_bytes"] == 2 * 8 * MIB
    of_runs = [
        record for name in ("wrote", "read") for record in records(tmp_path / "sbench-runs" / name)
    ]
    assert {record["python"] for record in of_runs} == {sys.version.split()[0]}
    # One of the functions has an environment that the probe has started.
    assert any(record["import_ns"] for record in of_runs if record["cold_start"])


@pytest.mark.full
@pytest.mark.parametrize("client", LIBRARIES)
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_refused_is_what_has_no_wheels(
    client: str, arch: str, runtime: str, tmp_path: Path
) -> None:
    try:
        template(arch=[arch], runtime=runtime, clients=[client])
    except UsageError:
        with pytest.raises(AssertionError, match="has no usable wheels"):
            body(tmp_path, client, runtime, arch)
    else:
        assert size(body(tmp_path, client, runtime, arch)) < MOST_BYTES
