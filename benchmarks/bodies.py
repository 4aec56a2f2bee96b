"""Functions with the library of each client: size, CPU time of imports, and peak memory.

    python -m benchmarks.bodies [--rounds 9] [--mb 64]

The recipe of ``sam build`` makes their folders, for this machine and its Python. Imports are those
of an interpreter without other modules, until the handler is imported and the client opened, in
turns; the table has their median. The memory is that of a function on the Lambda host under the
genuine runtime client, which writes and reads an object of the loopback store.
"""

import argparse
import io
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections import defaultdict
from pathlib import Path

from benchmarks.common import make_parser, rotated
from serverless_bench.base.units import MIB
from serverless_bench.clients import CLIENTS
from serverless_bench.features.loopback.process import served
from tests.clouds.sam import body_for_here, size

IMPORT = """
import time
began = time.process_time()
import sys
sys.path.insert(0, sys.argv[1])
import serverless_bench.features.remote.handler
from serverless_bench.clients import open_client
from serverless_bench.job.target import Target, Transfer
open_client(Target(bucket="any", client=sys.argv[2], endpoint_url="http://127.0.0.1:1"), Transfer())
print(time.process_time() - began)
"""
REGION = {"AWS_REGION": "us-east-1"}


def import_ms(code: Path, client: str) -> float:
    """Return the CPU time from the start of a function's code until its client is open."""
    command = [sys.executable, "-I", "-S", "-B", "-c", IMPORT, str(code), client]
    variables = {**os.environ, **REGION, "SBENCH_IMPORT_CLIENT": client}
    done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout) * 1e3


def peak_mib(code: Path, client: str, mb: int, scratch: Path, url: str) -> float:
    """Return the peak memory of a function that writes and reads an object on the Lambda host."""
    sbench = [sys.executable, "-m", "serverless_bench"]
    how = ("--executor", "lambda", "--function", client, "--client", client, "--format", "json")
    place = ("--endpoint-url", url, "--bucket", "any", "--number", "1", "--mb", str(mb))
    commands = [
        [*sbench, "write", *how, *place, "--name", client],
        [*sbench, "read", *how, "--from", client],
    ]
    host = [*sbench, "lambda-host", "--code", str(code), "--function", client]
    done = subprocess.run(
        [
            *host,
            "--pass",
            "SBENCH_IMPORT_CLIENT",
            "--",
            "sh",
            "-c",
            " && ".join(map(shlex.join, commands)),
        ],
        env={**os.environ, **REGION, "SBENCH_IMPORT_CLIENT": client},
        cwd=scratch,
        capture_output=True,
        text=True,
        check=True,
    )
    reports = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return float(max(report["peak_rss_bytes"] for report in reports)) / MIB


def zipped(folder: Path) -> int:
    """Return the size of the zip of a folder."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in folder.rglob("*"):
            archive.write(path, path.relative_to(folder))
    return len(file.getvalue())


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    return make_parser(__doc__ or "", rounds=9, mb=64)


def main() -> None:
    """Print the table."""
    asked = parser().parse_args()
    rounds, mb = (1, 1) if asked.smallest else (asked.rounds, asked.mb)
    clients = sorted(CLIENTS, key=lambda name: (name != "wire", name))
    with tempfile.TemporaryDirectory() as folder, served() as url:
        scratch = Path(folder)
        codes = {client: body_for_here(scratch, client) for client in clients}
        times = defaultdict[str, list[float]](list)
        for client in rotated(clients, rounds):
            times[client].append(import_ms(codes[client], client))
        print("| client | zip MB | unzipped MB | imports, CPU-ms | peak MiB |")
        print("| --- | ---: | ---: | ---: | ---: |")
        for client, code in codes.items():
            sizes = f"{zipped(code) / 1e6:.1f} | {size(code) / 1e6:.1f}"
            memory = peak_mib(code, client, mb, scratch, url)
            print(f"| {client} | {sizes} | {statistics.median(times[client]):.0f} | {memory:.0f} |")


if __name__ == "__main__":
    main()
