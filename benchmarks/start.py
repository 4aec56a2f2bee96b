"""Start-up cost of a command and a function: CPU time from start to end.

    python -m benchmarks.start [--rounds 9] [--before CHECKOUT]

Every subject is started once per round, with its child processes, in turns; the ratios to a Python
that imports click, and to one that imports the libraries of a report, are taken within a round. Of
the wrong values in the tests, the slowest refusal and the middle one have a row. The written object
(1 MiB) goes to the loopback store, which runs all the time and is not counted. The cold start is
that of the function's folder as ``sam build`` makes it, with the libraries of this environment, in
an interpreter without other modules: the handler is imported and the thin client opened.
`--before` adds the same of another checkout.
"""

import argparse
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import files
from pathlib import Path

from benchmarks.common import cpu_s, make_parser, rotated
from serverless_bench.cli.output.terminal import ExitCode
from serverless_bench.features.loopback.process import served

ROOT = Path(__file__).parents[1]
RUNTIME = f"python{sys.version_info.major}.{sys.version_info.minor}"
FLOORS = {
    "Python that imports click": "import click",
    "Python that imports click, NumPy, msgspec, orjson and Rich": (
        "import click, numpy, msgspec, orjson, rich"
    ),
}
WRONG = ROOT / "tests" / "unit" / "cli" / "wrong_values.toml"
SIDES = ("a", "b")
RUNS_OF_A_SIDE = 6
MAIN = "import serverless_bench.__main__"
COLD = """
import sys
sys.path.append(sys.argv[1])
import serverless_bench.features.remote.handler
from serverless_bench.clients import open_client
from serverless_bench.job.target import Target
from serverless_bench.job.target import Transfer
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
    codes: tuple[int, ...] = (0,)
    """Exit codes that it may have."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables beside those of all."""
    folder: Path | None = None
    """Folder to start it in, if not any."""


def cold_folder(checkout: Path, folder: Path) -> Path:
    """Make the function's folder as ``sam build`` does, but without the installation."""
    for library in LIBRARIES:
        for file in files(library) or ():
            to = folder / file
            if ".." not in file.parts and "data" not in file.parts[1:2] and file.suffix != ".pyc":
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(file.read_binary())
    stack = folder.with_name("stack")
    output = ["aws", "stack", str(stack), "--runtime", RUNTIME]
    writing = Subject("", [sys.executable, "-c", MAIN, *output], checkout)
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
    sides = [f"{side}/{number}" for side in SIDES for number in range(RUNS_OF_A_SIDE)]
    for name in ("run", *sides):
        place = scratch / name
        words = [*write, "--run-dir", str(place.parent), "--name", place.name]
        made = Subject("", [sys.executable, "-c", MAIN, *words], checkout)
        started(made, environment(checkout), scratch)
    run = str(scratch / "run")
    commands = {
        "sbench --help": ["--help"],
        "sbench write --help": ["write", "--help"],
        "sbench study ls": ["study", "ls"],
        "sbench report RUN": ["report", run],
        "sbench report RUN --format json": ["report", run, "--format", "json"],
        "sbench check RUN": ["check", run],
        "sbench write of one object": write,
    }
    found = [Subject(n, [sys.executable, "-c", MAIN, *c], checkout) for n, c in commands.items()]
    both = [sys.executable, "-c", MAIN, "compare", *SIDES, "--run-dir", str(scratch)]
    # Six runs of a side are too few for a verdict, unless the machine changed between the sides.
    verdicts = (ExitCode.OK, ExitCode.SLOWER, ExitCode.UNDECIDED)
    found.append(Subject("sbench compare of twice six runs", both, checkout, codes=verdicts))
    # It keeps rows from one start to the next, and not for the user.
    state, listing = {"XDG_STATE_HOME": str(scratch)}, ["ls", "--run-dir", str(scratch / SIDES[0])]
    found.append(
        Subject("sbench ls", [sys.executable, "-c", MAIN, *listing], checkout, variables=state)
    )
    nothing = [sys.executable, "-c", MAIN, "clean", "nothing"]
    found.append(Subject("sbench clean of nothing", nothing, checkout, codes=(8,)))
    folder = cold_folder(checkout, scratch / "function")
    bare = [sys.executable, "-I", "-S", "-B", "-c", COLD, str(folder)]
    return [*found, Subject("cold start of the function", bare, checkout)]


def refusals(checkout: Path, scratch: Path) -> Iterator[Subject]:
    """Yield a command for each wrong value."""
    for number, case in enumerate(tomllib.loads(WRONG.read_text())["wrong"]):
        folder = scratch / f"wrong{number}"
        folder.mkdir()
        if "file" in case:
            (folder / case["file"]).write_text(case["text"])
        variable, _, value = case.get("variable", "").partition("=")
        yield Subject(
            " ".join(["sbench", case["command"], case.get("variable", case.get("file", ""))]),
            [sys.executable, "-c", MAIN, *shlex.split(case["command"])],
            checkout,
            codes=(case.get("code", 2),),
            variables={variable: value} if variable else {},
            folder=folder,
        )


def environment(checkout: Path) -> Mapping[str, str]:
    """Return the environment of a subject, without settings of the user."""
    # With bytecode, like an installed package.
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("AWS_", "SBENCH_", "PYTHON"))}
    keys = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    return {**kept, **keys, "PYTHONPATH": str(checkout)}


def started(subject: Subject, variables: Mapping[str, str], scratch: Path) -> float:
    """Return the CPU time of a subject, and of all that it starts, in seconds."""
    before = cpu_s(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        subject.command,
        env={**variables, **subject.variables},
        cwd=subject.folder or scratch,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    took_s = cpu_s(resource.RUSAGE_CHILDREN) - before
    if done.returncode not in subject.codes:
        raise SystemExit(f"{subject.command} ended with {done.returncode}: {done.stderr!r}")
    return took_s


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__, rounds=9)
    made.add_argument("--before", type=Path, help="another checkout")
    return made


def ratio(row: Sequence[float], floor: Sequence[float]) -> float:
    """Return the middle ratio of the rounds, without the first, which makes the bytecode."""
    return statistics.median(a / b for a, b in zip(row[1:], floor[1:], strict=True))


def line(name: str, checkout: Path, row: Sequence[float], floors: Sequence[Sequence[float]]) -> str:
    """Return a row of the table."""
    kept_ms = [took_s * 1e3 for took_s in row[1:]]
    cells = [name, "now" if checkout == ROOT else "before", f"{statistics.median(kept_ms):.0f}"]
    cells.append(f"{min(kept_ms):.0f} to {max(kept_ms):.0f}")
    return f"| {' | '.join(cells + [f'{ratio(row, floor):.2f}' for floor in floors])} |"


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    checkouts = [ROOT, *([asked.before.resolve()] if asked.before else [])]
    with tempfile.TemporaryDirectory() as place, served() as url:
        everything = [Subject(n, [sys.executable, "-c", code]) for n, code in FLOORS.items()]
        wrong: list[Subject] = []
        for number, checkout in enumerate(checkouts):
            scratch = Path(place, str(number))
            scratch.mkdir()
            everything += subjects(checkout, scratch, url)
            wrong += [*refusals(checkout, scratch)][: 1 if asked.smallest else None]
        everything += wrong
        keys = [str(number) for number in range(len(everything))]
        took: dict[str, list[float]] = defaultdict(list)
        rounds = 1 if asked.smallest else asked.rounds
        for key in rotated(keys, rounds + 1):
            subject = everything[int(key)]
            took[key].append(started(subject, environment(subject.checkout), Path(place)))
    rows = [(subject, took[key]) for key, subject in zip(keys, everything, strict=True)]
    floors = [row for _, row in rows[: len(FLOORS)]]
    print("| command | checkout | CPU-ms | lowest to highest | x click | x libraries |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for subject, row in rows[: len(rows) - len(wrong)]:
        print(line(subject.name, subject.checkout, row, floors))
    for checkout in checkouts:
        refused = [(s, row) for s, row in rows[-len(wrong) :] if s.checkout == checkout]
        refused.sort(key=lambda pair: ratio(pair[1], floors[0]))
        for which, number in (("middle", len(refused) // 2), ("slowest", -1)):
            subject, row = refused[number]
            name = f"{which} of {len(refused)} refusals, `{subject.name.strip()}`"
            print(line(name, checkout, row, floors))


if __name__ == "__main__":
    main()
