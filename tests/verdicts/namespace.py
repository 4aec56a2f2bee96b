"""A network namespace that is reached over links of known rates, each a kernel's token bucket."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import psutil

_NUMBERS: Final = count()
_NAME: Final = re.compile(r"sb(\d+)[a-z]")
_QUEUE: Final = ("burst", "32kb", "latency", "2s")
"""A small bucket, so that no burst passes; a long queue, so that TCP loses little."""


def missing() -> str | None:
    """Return the reason why no namespace can be made here; None if one can."""
    if not shutil.which("ip") or not shutil.which("tc"):
        return "ip and tc are not installed"
    if os.geteuid():
        return "only root can make a network namespace"
    try:
        with namespace() as made:
            made.link("1mbit")
    except subprocess.CalledProcessError as exc:
        return f"the kernel makes no namespace with a token bucket: {exc.stderr.strip()}"
    return None


@dataclass
class Namespace:
    """A namespace with the name of this process, and the links that lead to it."""

    name: str
    undo: ExitStack
    links: Iterator[int] = field(default_factory=count)

    @property
    def command(self) -> tuple[str, ...]:
        """Words in front of a command that runs inside."""
        return ("ip", "netns", "exec", self.name)

    def link(self, rate: str = "") -> str:
        """Add a link and return the address of its inner end.

        Parameters
        ----------
        rate
            Rate in each direction, in the format of ``tc``; without it there is no limit.
        """
        number = next(self.links)
        outer, inner = f"{self.name}-{number}o", f"{self.name}-{number}i"
        # From 198.18.0.0/15, which is for benchmarks (RFC 2544); each process has a network of its
        # own.
        process = os.getpid()
        subnet = f"198.{18 + process % 2}.{process // 2 % 256}"
        here, inside = (f"{subnet}.{4 * number + host}" for host in (1, 2))
        _run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
        self.undo.callback(_try, "ip", "link", "del", outer)
        _run("ip", "link", "set", inner, "netns", self.name)
        _run("ip", "addr", "add", f"{here}/30", "dev", outer)
        _run("ip", "-n", self.name, "addr", "add", f"{inside}/30", "dev", inner)
        _run("ip", "link", "set", outer, "up")
        _run("ip", "-n", self.name, "link", "set", inner, "up")
        if rate:
            bucket = ("root", "tbf", "rate", rate, *_QUEUE)
            _run("tc", "qdisc", "add", "dev", outer, *bucket)
            _run("tc", "-n", self.name, "qdisc", "add", "dev", inner, *bucket)
        return inside


@contextmanager
def namespace() -> Iterator[Namespace]:
    """Have a namespace for the length of a block; its links go with it."""
    name = f"sb{os.getpid()}{chr(ord('a') + next(_NUMBERS) % 26)}"
    _sweep()
    with ExitStack() as undo:
        _run("ip", "netns", "add", name)
        undo.callback(_try, "ip", "netns", "del", name)
        _run("ip", "-n", name, "link", "set", "lo", "up")
        yield Namespace(name, undo)


def _sweep() -> None:
    """Delete the remains of killed processes: namespaces and links with their names."""
    for name in _listed("ip", "-o", "netns", "list"):
        own = _NAME.fullmatch(name)
        if own is None or psutil.pid_exists(int(own[1])):
            continue
        for pid in _listed("ip", "netns", "pids", name):
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        for link in Path("/sys/class/net").glob(f"{name}-*"):
            _try("ip", "link", "del", link.name)
        _try("ip", "netns", "del", name)


def _listed(*command: str) -> list[str]:
    """Return the first word of each line that a command prints."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return [line.split()[0] for line in done.stdout.splitlines() if line.strip()]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _try(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)
