"""Start-up cost of a command and a function: processor time from start to end.

    python -m benchmarks.start [--rounds 9] [--before CHECKOUT]

Every subject is started once per round, with its child processes, in turns; the ratio to a Python
that imports click is taken within a round. The written object (1 MiB) goes to the loopback store,
which runs all the time and is not counted. The cold start is that of the function's folder as
``sam build`` makes it, with the libraries of this environment, in an interpreter without other
modules: the handler is imported and the thin client opened. `--before` adds the same of another
checkout.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path

from benchmarks.common import cpu_s, make_parser, rotated
from serverless_bench.lab.loopback.process import served

ROOT = Path(__file__).parents[1]
RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"
FLOOR = "Python that imports click"
MAIN = "import serverless_bench.__main__"
COLD = """
import sys
sys.path.append(sys.argv[1])
import serverless_bench.worker.handler
from serverless_bench.clients import open_client
from serverless_bench.job.target import Target
from serverless_bench.job.transfer import Transfer
open_client(Target(bucket="b", endpoint_url="http://127.0.0.1:1"), Transfer())
"""
LIBRARIES = ("cffi", "cryptography", *("botocore", "jmespath", "python-dateutil", "six", "urllib3"))
"""Libraries from ``function.txt`` that a cold start could load."""


@dataclass(frozen=True)
class Subject:
    """A process to start."""

    name: str
    command: Sequence[str]
    checkout: Path = ROOT


def cold_folder(checkout: Path, folder: Path) -> Path:
    """Make the function's folder as ``sam build`` does, but without the installation."""
    for library in LIBRARIES:
        for file in files(library) or ():
            to = folder / file
            if ".." not in file.parts and "data" not in file.parts[1:2] and file.suffix != ".pyc":
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(file.read_binary())
    stack = folder.with_name("stack")
    said = ["aws", "stack", str(stack), "--runtime", RUNTIME]
    writing = Subject("", [sys.executable, "-c", MAIN, *said], checkout)
    started(writing, environment(checkout), folder)
    # A checkout that is compared may have it elsewhere.
    (pack,) = stack.rglob("pack.py")
    subprocess.run([sys.executable, pack, folder, RUNTIME], check=True)
    return folder


def subjects(checkout: Path, scratch: Path, url: str) -> list[Subject]:
    """Return the commands of a checkout; a small run is in ``scratch`` afterwards."""
    write = [
        *("write", "--endpoint-url", url, "--bucket", "any", "--number", "1", "--mb", "1"),
        *("--run-dir", str(scratch)),
    ]
    made = Subject("", [sys.executable, "-c", MAIN, *write, "--name", "run"], checkout)
    started(made, environment(checkout), scratch)
    run = str(scratch / "run")
    commands = {
        "sbench --help": ["--help"],
        "sbench write --help": ["write", "--help"],
        "sbench report RUN": ["report", run],
        "sbench report RUN --format json": ["report", run, "--format", "json"],
        "sbench write of one object": write,
    }
    found = [Subject(n, [sys.executable, "-c", MAIN, *c], checkout) for n, c in commands.items()]
    folder = cold_folder(checkout, scratch / "function")
    bare = [sys.executable, "-I", "-S", "-B", "-c", COLD, str(folder)]
    return [*found, Subject("cold start of the function", bare, checkout)]


def environment(checkout: Path) -> Mapping[str, str]:
    """Return the environment of a subject, without settings of the user."""
    # With bytecode, like an installed package.
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("AWS_", "SBENCH_", "PYTHON"))}
    keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    return {**kept, **keys, "PYTHONPATH": str(checkout)}


def started(subject: Subject, variables: Mapping[str, str], scratch: Path) -> float:
    """Return the processor time of a subject, and of all that it starts, in seconds."""
    before = cpu_s(resource.RUSAGE_CHILDREN)
    subprocess.run(
        subject.command, env=variables, cwd=scratch, stdout=subprocess.DEVNULL, check=True
    )
    return cpu_s(resource.RUSAGE_CHILDREN) - before


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__, rounds=9)
    made.add_argument("--before", type=Path, help="another checkout")
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    checkouts = [ROOT, *([asked.before.resolve()] if asked.before else [])]
    with tempfile.TemporaryDirectory() as place, served() as url:
        everything = [Subject(FLOOR, [sys.executable, "-c", "import click"])]
        numpy = "import click, numpy"
        everything.append(
            Subject("Python that imports click and NumPy", [sys.executable, "-c", numpy])
        )
        for number, checkout in enumerate(checkouts):
            scratch = Path(place, str(number))
            scratch.mkdir()
            everything += subjects(checkout, scratch, url)
        keys = [str(number) for number in range(len(everything))]
        took: dict[str, list[float]] = defaultdict(list)
        rounds = 1 if asked.smallest else asked.rounds
        for key in rotated(keys, rounds + 1):
            subject = everything[int(key)]
            took[key].append(started(subject, environment(subject.checkout), Path(place)))
    print("| command | checkout | core-ms | lowest to highest | x click |")
    print("| --- | --- | ---: | ---: | ---: |")
    for key, subject in zip(keys, everything, strict=True):
        # The first round makes the bytecode.
        row, floor = took[key][1:], took["0"][1:]
        ratio = statistics.median(a / b for a, b in zip(row, floor, strict=True))
        checkout = "now" if subject.checkout == ROOT else "before"
        print(
            f"| {subject.name} | {checkout} | {statistics.median(row) * 1e3:.0f} "
            f"| {min(row) * 1e3:.0f} to {max(row) * 1e3:.0f} | {ratio:.2f} |"
        )


if __name__ == "__main__":
    main()
