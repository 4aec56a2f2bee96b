"""``sbench lambda-host`` as a process of its own."""

import io
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serverless_bench.executors.base import RunProgress
from serverless_bench.features.aws_lambda.client import LambdaClient
from tests.clouds.aws_clients import open_client
from tests.commands.processes import PATIENCE_S
from tests.stores.servers import DIRECT, credentials

NAME = "sbench-worker"


@dataclass(frozen=True)
class LambdaHost:
    """A host that runs."""

    url: str
    environment: Mapping[str, str]
    """Variables for its clients, with the credentials that the host was given."""
    process: subprocess.Popen[str]
    startup_output: Sequence[str]
    """Its output at the start."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def status(self, *, memory: bool = False) -> dict[str, Any]:
        """Its work so far; ``memory`` also looks at every environment."""
        return self._ask("GET", "/sbench/status" + "?memory=1" * memory)

    def set_faults(self, faults: Mapping[str, Any]) -> None:
        """Have these faults from now on, and no others."""
        self._ask("PUT", "/sbench/faults", faults)

    def release(self) -> int:
        """Deliver the held events; return their number."""
        return int(self._ask("POST", "/sbench/release")["released"])

    def _ask(self, method: str, path: str, content: object = None) -> dict[str, Any]:
        body = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self.url + path, data=body, method=method)
        with DIRECT.open(request, timeout=PATIENCE_S) as answer:
            done: dict[str, Any] = json.load(answer)
        return done


@contextmanager
def running_host(
    environment: Mapping[str, str] | None = None,
    flags: Sequence[str | Path | float] = (),
    files: int | None = None,
) -> Iterator[LambdaHost]:
    """Run a host for the length of a block.

    Parameters
    ----------
    environment
        Additional variables: usually credentials, because the host has none.
    flags
        Flags of ``sbench lambda-host``.
    files
        Limit of its open files; None for this process's limit.
    """
    own = {**KEYS, **(environment or {})}
    limit = [] if files is None else ["prlimit", f"--nofile={files}"]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [*limit, sys.executable, "-m", "serverless_bench", "lambda-host", *map(str, flags)],
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        assert process.stdout is not None
        lines = []
        while line := process.stdout.readline():
            lines.append(line.rstrip("\n"))
            if line.startswith("statistics"):
                break
        if not line:
            process.wait()
            errors.seek(0)
            raise AssertionError(errors.read() + "\n".join(lines))
        url = lines[0].split()[-1]
        clients = {
            **own,
            "AWS_ENDPOINT_URL_LAMBDA": url,
            "AWS_ENDPOINT_URL_STS": url,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        try:
            yield LambdaHost(url, clients, process, lines)
        finally:
            process.terminate()
            process.stdout.read()
            process.stdout.close()
            process.wait()
            errors.seek(0)
            reported = errors.read()
        assert not reported, reported


@contextmanager
def lambda_client(
    url: str, progress: RunProgress, *, patient: bool = True
) -> Iterator[LambdaClient]:
    """Open a client of a host, or of a scripted server, instead of AWS."""
    with (
        credentials({**KEYS, "AWS_ENDPOINT_URL_LAMBDA": url}),
        closing(LambdaClient("us-east-1", progress, connections=1, patient=patient)) as client,
    ):
        yield client


def install(host: LambdaHost, name: str, files: Mapping[str, bytes | str], handler: str) -> None:
    """Create a function; with ``--share-packages`` its code finds this installation."""
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    with credentials(host.environment):
        open_client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.11",
            Role="arn:aws:iam::123456789012:role/worker",
            Handler=handler,
            Code={"ZipFile": code.getvalue()},
        )


KEYS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "not-a-secret"}
