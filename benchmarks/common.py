"""Common parts of benchmarks: flags, separate processes, bare sockets and rows of tables."""

import argparse
import json
import resource
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

S = TypeVar("S")


def make_parser(doc: str, **numbers: int) -> argparse.ArgumentParser:
    """Return the parser of the command line: ``--smallest``, and numbers with their defaults."""
    made = argparse.ArgumentParser(description=doc.splitlines()[0])
    made.add_argument("--smallest", action="store_true", help="as little as shows that it runs")
    for name, default in numbers.items():
        made.add_argument(f"--{name}", type=int, default=default)
    return made


def run_alone(benchmark: str, *words: object) -> Any:
    """Return the output of one part of a benchmark in a process of its own."""
    command = [sys.executable, "-m", benchmark, "--one", *map(str, words)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def cpu_s(who: int = resource.RUSAGE_SELF) -> float:
    """Return user and system time so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


class Helper:
    """A process of a checkout that does what each line asks for, and answers with a number.

    Parameters
    ----------
    checkout
        Folder of the checkout.
    words
        Arguments of Python.
    """

    def __init__(self, checkout: Path, *words: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *map(str, words)],
            cwd=checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, *words: object) -> None:
        """Ask for something."""
        assert self.process.stdin is not None
        print(*words, file=self.process.stdin, flush=True)

    def end(self) -> float:
        """Return the answer."""
        assert self.process.stdout is not None
        return float(self.process.stdout.readline())


def rotated(subjects: Sequence[S], rounds: int) -> Iterator[S]:
    """Yield every subject once per round, with another first subject in each round."""
    for number in range(rounds):
        turn = number % len(subjects)
        yield from subjects[turn:]
        yield from subjects[:turn]


def bare_request(
    line: socket.socket,
    method: str,
    path: str,
    size: int,
    room: memoryview,
    blocks: Sequence[memoryview] = (),
) -> None:
    """Send ``blocks``, or receive ``size`` bytes into ``room``, without reading them."""
    length = sum(map(len, blocks))
    line.sendall(f"{method} {path} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())
    for block in blocks:
        line.sendall(block)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += line.recv(4096)
    assert answer.startswith(b"HTTP/1.1 200"), answer
    left = 0 if blocks else size - len(answer.partition(b"\r\n\r\n")[2])
    while left:
        left -= line.recv_into(room[:left])


def costs(rows: Sequence[dict[str, float]], floor: Sequence[dict[str, float]]) -> str:
    """Return the cells of a subject: CPU time, that of the floor in one round, rate."""
    cpu = [row["cpu"] for row in rows]
    ratio = statistics.median(c / b["cpu"] for c, b in zip(cpu, floor, strict=True))
    rate = statistics.median(row["rate"] for row in rows)
    span = f"{min(cpu):.2f} to {max(cpu):.2f}"
    return f"{statistics.median(cpu):.2f} | {span} | {ratio:.2f} | {rate:.0f} |"
