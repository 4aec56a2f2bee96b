"""Cost of the request log: the loopback store with it and without it, in turns.

    python -m benchmarks.request_log [--rounds 60] [--requests 200]

One store in this process serves a client in another one; its request log is attached and detached
between batches of requests, so that other load on the machine affects both. Only this process's
own CPU time counts. The smallest requests are the worst case: their bodies add no time.
"""

import http.client
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.common import cpu_s, make_parser
from serverless_bench.base.units import MIB
from serverless_bench.features.loopback.request_log import RequestLog
from serverless_bench.features.loopback.server import LoopbackServer, serving

AGENT: Final = {"User-Agent": "sbench/0 sbench-worker/machine.12345"}
KINDS: Final = {
    "head": ("HEAD", 16),
    "get": ("GET", 16),
    "put": ("PUT", 16),
    "get 1 MiB": ("GET", MIB),
}


def ask(port: int) -> None:
    """Make the requests that standard input lists; written bytes are not the keystream."""
    connection, number = http.client.HTTPConnection("127.0.0.1", port), 0
    for line in sys.stdin:
        method, size, count = line.split()
        body = b"x" * int(size) if method == "PUT" else None
        for _ in range(int(count)):
            number += 1
            name = f"note-{number:032x}" if body else f"{number:032x}.{size}"
            connection.request(method, f"/bucket/sbench/{name}", body, AGENT)
            connection.getresponse().read()
        print("done", flush=True)


def measure(server: LoopbackServer, client: subprocess.Popen[str], line: str) -> float:
    """Return the cost of one batch for the server."""
    assert client.stdin is not None
    assert client.stdout is not None
    before = cpu_s()
    client.stdin.write(line)
    client.stdin.flush()
    client.stdout.readline()
    server.state.request_log.settle()
    return cpu_s() - before


def main(rounds: int, requests: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name, serving() as server:
        path = Path(name) / "requests.jsonl"
        logs = [RequestLog(None), RequestLog(path)]
        command = [sys.executable, "-m", "benchmarks.request_log", "--ask"]
        with subprocess.Popen(
            [*command, str(server.server_address[1])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            print(f"{'request':>10} {'store us':>9} {'request_log us':>11} {'share':>7}")
            for kind, (method, size) in KINDS.items():
                costs: list[list[float]] = [[], []]
                for turn in range(rounds):
                    for which in (0, 1) if turn % 2 else (1, 0):
                        server.state.request_log = logs[which]
                        cost = measure(server, client, f"{method} {size} {requests}\n")
                        costs[which].append(cost / requests * 1e6)
                plain, seen = (statistics.median(each) for each in costs)
                print(f"{kind:>10} {plain:9.0f} {seen - plain:11.1f} {seen / plain - 1:7.1%}")
            assert client.stdin is not None
            client.stdin.close()
        count = rounds * requests * len(KINDS)
        print(f"{path.stat().st_size / count:.0f} bytes a request, of {count:,} requests")


parser = partial(make_parser, __doc__, rounds=60, requests=200)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        ask(int(sys.argv[2]))
    else:
        given = parser().parse_args()
        main(*((2, 5) if given.smallest else (given.rounds, given.requests)))
