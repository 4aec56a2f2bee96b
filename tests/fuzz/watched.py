"""Commands, each in a child of one warm process, with all their effects outside of their directory.

Starting an interpreter for each of ten thousand inputs would take hours: the nursery imports
the modules of the commands once, and forks. The child is watched from inside by an audit hook,
which Python calls for all system effects, and from outside by ``wait4`` and a deadline.
"""

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

HANGS_S: Final = 120
"""Time after which a command counts as hanging, on a busy machine, too."""
MOST_CPU_S: Final = 10
"""CPU time that only an input made to be hard to read can explain."""
MOST_BYTES: Final = 500 * 2**20
"""Memory that only a false size in an input can explain."""
_MEMORY: Final = 8 * 2**30
"""Limit of a child's memory, so that a false size in an input cannot stop the machine."""
_WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES: Final = frozenset(
    {
        "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
        "os.symlink", "os.truncate", "os.utime", "shutil.copyfile", "shutil.move", "shutil.rmtree",
    }
)  # fmt: skip
_STARTS: Final = frozenset({"os.exec", "os.posix_spawn", "os.system", "subprocess.Popen"})
_TALKS: Final = frozenset({"socket.connect", "socket.getaddrinfo", "socket.sendto"})


@dataclass(frozen=True)
class Ended:
    """Result of a command."""

    code: int
    """Its exit code, or minus the number of the signal that ended it."""
    out: str
    err: str
    cpu_s: float
    peak_bytes: int
    touched: tuple[str, ...]
    """Files outside of its directory that it wrote or changed, processes that it started."""
    asked: tuple[str, ...]
    """Hosts that it looked up or connected to."""

    def check(self, *codes: int) -> None:
        """Assert that it answered like a command, for any input."""
        output = f"\n{self.err[-2000:]}"
        assert self.code != -signal.SIGKILL, f"hung{output}"
        assert self.cpu_s < MOST_CPU_S, f"{self.cpu_s:.0f} s of a CPU{output}"
        assert self.code in codes, f"exit code {self.code}{output}"
        assert self.peak_bytes < MOST_BYTES, f"{self.peak_bytes >> 20} MiB{output}"
        assert "Traceback" not in self.err, output
        assert not self.touched, f"{self.touched}{output}"


@contextmanager
def nursery(*modules: str) -> "Iterator[Nursery]":
    """Yield a warm process that has imported the modules besides ``sbench``'s own."""
    with subprocess.Popen(
        [sys.executable, "-m", __name__, *modules],
        # Without variables that s3dlio may have set in this process behind Python's back.
        env=dict(os.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()


@dataclass(frozen=True)
class Nursery:
    """Runs commands in sequence."""

    process: "subprocess.Popen[str]"

    def __call__(
        self,
        directory: Path,
        *arguments: str | Path | int,
        environment: Mapping[str, str] | None = None,
        limit_s: float = HANGS_S,
        call: str = "",
    ) -> Ended:
        """Run ``sbench`` with these arguments in the directory, the only writable one.

        ``call``, as in ``module:function``, names a function to call instead.
        """
        order = {
            "arguments": [*map(str, arguments)],
            "directory": str(directory),
            "environment": dict(environment or {}),
            "limit_s": limit_s,
            "call": call,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return Ended(
            **{**answer, "touched": tuple(answer["touched"]), "asked": tuple(answer["asked"])}
        )


def _serve(modules: Sequence[str]) -> None:
    for name in ("serverless_bench.cli.main", *modules):
        __import__(name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_run(json.loads(line))) + "\n")
        sys.stdout.flush()


def _run(order: dict[str, Any]) -> dict[str, Any]:
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as seen,
    ):
        child = os.fork()
        if child == 0:
            _child(order, out.fileno(), err.fileno(), seen.fileno())
        handle = os.pidfd_open(child)
        try:
            if not select.select([handle], [], [], order["limit_s"])[0]:
                os.killpg(child, signal.SIGKILL)
        finally:
            os.close(handle)
        _, status, usage = os.wait4(child, 0)
        events = [json.loads(line) for line in _read(seen.fileno()).splitlines()]
        return {
            "code": os.waitstatus_to_exitcode(status),
            "out": _read(out.fileno()),
            "err": _read(err.fileno()),
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "peak_bytes": usage.ru_maxrss * 1024,
            "touched": sorted({what for kind, what in events if kind == "touched"}),
            "asked": sorted({what for kind, what in events if kind == "asked"}),
        }


def _read(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read().decode(errors="replace")


def _child(order: dict[str, Any], out: int, err: int, seen: int) -> NoReturn:
    code = 70
    try:
        os.setsid()
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.chdir(order["directory"])
        os.environ.update(order["environment"])
        # Not its address space: V8, which draws, reserves more of that than there is memory.
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.dont_write_bytecode = True
        _watch(order["directory"], seen)
        # Imported by the nursery.
        module, _, name = (order["call"] or "serverless_bench.cli.main:main").partition(":")
        code = getattr(sys.modules[module], name)(order["arguments"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _watch(directory: str, seen: int) -> None:
    """Log all effects of this process outside of the directory."""
    inside = os.path.realpath(directory) + os.sep
    free = (inside, "/dev/null", "/dev/tty", f"/proc/{os.getpid()}/")

    def outside(path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        # The target of a link is the written file.
        return not os.path.realpath(os.fsdecode(path)).startswith(free)

    def note(kind: str, what: str) -> None:
        os.write(seen, (json.dumps([kind, what]) + "\n").encode())

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            changed = isinstance(flags, int) and flags & _WRITES and outside(path)
        else:
            changed = event in _CHANGES and any(outside(each) for each in arguments[:2])
        if changed or event in _STARTS:
            note("touched", f"{event} {arguments!r}")
        elif event in _TALKS:
            note("asked", f"{event} {arguments[-1] if 'connect' in event else arguments!r}")

    sys.addaudithook(hook)


if __name__ == "__main__":
    _serve(sys.argv[1:])
