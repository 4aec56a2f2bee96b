"""Core-milliseconds per object with each client: bare, and in the harness.

    python -m benchmarks.clients [--rounds 7] [--client wire] [--size 4096] [--scheme http]

*Bare* is the library called directly, as its authors recommend for the size, with a body that
exists before and is not read after. *In the harness* is the same library with the same
settings in the code that runs in a function: every byte generated or compared, everything recorded.
Three other subjects show costs that no client can avoid: a *socket* that sends one buffer and
receives into one; the *bytes*, generated and compared without a transfer; and a *draft*, which
signs, transfers and verifies in plain Python and records four times per object.

One round runs every subject once, each in a process of its own, in an order that rotates;
differences and ratios are taken within a round. Only the client's own CPU time is counted.
The server is the loopback store, which discards written bytes and generates the read ones.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.common import cpu_s, make_parser, rotated, run_alone
from benchmarks.subjects.bare import bare
from benchmarks.subjects.draft import Run, drafted, made, over_socket
from benchmarks.subjects.harness import harnessed
from serverless_bench.base.units import KIB, MIB
from serverless_bench.clients import CLIENTS
from serverless_bench.features.loopback.process import served
from serverless_bench.job.keys import object_key
from tests.stores.network import bundle_of, certificate

KINDS: Final = ("put", "get")
SIZES: Final = (4 * KIB, 64 * KIB, 315 * KIB, MIB, 64 * MIB)
BESIDE: Final[dict[str, Callable[[str, int, int], Run]]] = {
    "socket": over_socket,
    "bytes": made,
    "draft": drafted,
}
CELL_S: Final = 0.15
"""CPU time that one value of one round is measured over."""
MOST: Final = 4000
"""Objects of it."""
COLUMNS: Final = (
    *("scheme", "KiB", "threads", "operation", "client", "bare", "in the harness"),
    *("lowest to highest", "difference", "beyond the bytes", "x draft", "x socket"),
)
Cost = dict[str, float]
"""Core-milliseconds per object by operation and way, as in ``put bare``."""


def one(subject: str, url: str, size: int, threads: int, objects: int) -> Cost:
    """Return the cost of one subject in this process."""
    if subject in BESIDE:
        ways = {"bare": BESIDE[subject](url, size, threads)}
    else:
        ways = {
            way: make(subject, url, size, threads)
            for way, make in (("bare", bare), ("in the harness", harnessed))
        }
    return {
        f"{kind} {way}": cost(run, kind, size, threads, objects)
        for kind in KINDS
        for way, run in ways.items()
    }


def cost(run: Run, kind: str, size: int, threads: int, objects: int) -> float:
    """Return core-milliseconds per object, once connections and code are warm.

    Without ``objects``, their number is chosen to fill ``CELL_S``.
    """
    name = partial(object_key, prefix="sbench/", run_id="benchmark", launch=0, number=0)
    keys = [name(index=index, size=size) for index in range(objects or MOST)]
    run(kind, keys[: 2 * threads])
    number = objects or 2 * threads
    each_s = _timed(run, kind, keys[:number])
    # Increase the number until the fixed cost of a run is negligible.
    while not objects and each_s * number < CELL_S and number < MOST:
        number = min(MOST, 16 * number, int(1.3 * CELL_S / each_s) + 1)
        each_s = _timed(run, kind, keys[:number])
    return each_s * 1e3


def _timed(run: Run, kind: str, keys: Sequence[str]) -> float:
    before_s = cpu_s()
    run(kind, keys)
    return (cpu_s() - before_s) / len(keys)


def rows(subjects: Sequence[str], found: dict[str, list[Cost]]) -> Iterator[tuple[str, ...]]:
    """Yield operation, client and figures: medians, also of differences within a round."""
    for kind in KINDS:
        base = {name: [each[f"{kind} bare"] for each in found[name]] for name in BESIDE}
        for subject in subjects:
            alone = [each[f"{kind} bare"] for each in found[subject]]
            harness, added = alone, ["", ""]
            if subject not in BESIDE:
                harness = [each[f"{kind} in the harness"] for each in found[subject]]
                more = _less(harness, alone)
                added = [_ms(median(more)), _ms(median(_less(more, base["bytes"])))]
            yield (
                kind,
                subject,
                _ms(median(alone)),
                "" if subject in BESIDE else _ms(median(harness)),
                f"{_ms(min(harness))} to {_ms(max(harness))}",
                *added,
                *(f"{_ratio(harness, base[name]):.2f}" for name in ("draft", "socket")),
            )


def _less(these: Sequence[float], those: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(these, those, strict=True)]


def _ratio(these: Sequence[float], those: Sequence[float]) -> float:
    return median(a / b for a, b in zip(these, those, strict=True))


def _ms(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3f}"


def table(
    scheme: str, url: str, size: int, threads: int, clients: Sequence[str], times: tuple[int, int]
) -> None:
    """Measure every subject ``times[0]`` times, in turn, and print rows."""
    subjects = [*BESIDE, *clients]
    rounds, objects = times
    found: dict[str, list[Cost]] = {subject: [] for subject in subjects}
    for subject in rotated(subjects, rounds):
        done = run_alone("benchmarks.clients", subject, url, size, threads, objects)
        found[subject].append(done)
    for row in rows(subjects, found):
        cells = (scheme, f"{size / KIB:g}", str(threads), *row)
        print(f"| {' | '.join(cells)} |", flush=True)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = make_parser(__doc__, rounds=7)
    made.add_argument("--threads", type=int, action="append", help="1, if none is named")
    made.add_argument("--size", type=int, action="append", help="bytes")
    made.add_argument("--scheme", action="append", choices=["http", "https"])
    made.add_argument("--client", action="append", choices=CLIENTS, help="all, if none is named")
    return made


def main() -> None:
    """Make the table."""
    asked = parser().parse_args()
    sizes = asked.size or ([4 * KIB] if asked.smallest else SIZES)
    # A round of two objects, or as many as needed.
    times = (1, 2) if asked.smallest else (asked.rounds, 0)
    with tempfile.TemporaryDirectory() as scratch:
        pem = certificate(Path(scratch))
        bundle = str(bundle_of(pem))
        # minio-py and the connector read the second variable.
        os.environ |= {"AWS_CA_BUNDLE": bundle, "SSL_CERT_FILE": bundle, "AWS_REGION": "us-east-1"}
        os.environ |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        print(f"| {' | '.join(COLUMNS)} |")
        print("| --- | ---: | ---: | --- | --- |" + " ---: |" * 7, flush=True)
        clients = asked.client or list(CLIENTS)
        for scheme in asked.scheme or ["http", "https"]:
            tls = ("--tls", str(pem)) if scheme == "https" else ()
            with served("--check", "none", *tls) as url:
                for size in sizes:
                    for threads in asked.threads or [1]:
                        table(scheme, url, size, threads, clients, times)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        subject, url, *numbers = sys.argv[2:]
        size, threads, objects = map(int, numbers)
        print(json.dumps(one(subject, url, size, threads, objects)))
    else:
        main()
