"""What the report of a failed test says beside the error, for a look without a second run."""

import os
import resource
import shlex
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from serverless_bench.base.clock import monotonic_ns, wall_ns
from serverless_bench.base.units import NS_PER_S

_LINES: Final = 20
"""Last lines of a log."""
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_STEAL: Final = 7
"""Column of /proc/stat: time that the machine itself did not get."""
_IDLE: Final = slice(3, 5)
_USED: Final = slice(0, 8)


@dataclass(frozen=True, slots=True)
class Machine:
    """Use of the machine's CPUs until now."""

    at_ns: int
    wall_ns: int
    own_s: float
    """CPU time of this process and its ended children."""
    ticks: tuple[int, ...]
    """First line of /proc/stat; empty where there is none."""

    @classmethod
    def now(cls) -> "Machine":
        """Read the counters."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        try:
            line = Path("/proc/stat").read_text("ascii").splitlines()[0]
        except OSError:
            line = ""
        own_s = sum(one.ru_utime + one.ru_stime for one in used)
        return cls(monotonic_ns(), wall_ns(), own_s, tuple(map(int, line.split()[1:])))

    def since(self, before: "Machine") -> str:
        """Return the use between two readings, and the load of the last minute, as text."""
        took_s = (self.at_ns - before.at_ns) / NS_PER_S
        text = f"{took_s:.1f} s, own CPU time {self.own_s - before.own_s:.1f} s"
        text += f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
        if self.ticks and took_s > 0:
            spent = [b - a for a, b in zip(before.ticks, self.ticks, strict=True)]
            busy = sum(spent[_USED]) - sum(spent[_IDLE])
            text += f", {busy / _TICKS_PER_S / took_s:.2f} of them busy"
            text += f", {spent[_STEAL] / _TICKS_PER_S:.2f} s stolen"
        return text


_BEFORE: Final = pytest.StashKey[Machine]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    item.stash[_BEFORE] = Machine.now()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections += list(sections(item))
    return report


def sections(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """Yield the headings and texts of what is known about a test's circumstances."""
    how = "CI=1 " if "CI" in os.environ else ""
    yield "repeat it", f"{how}python -m pytest -n 0 -m '' {shlex.quote(item.nodeid)}"
    if item.config.getoption("hypothesisseed", None):
        yield "seed", f"--hypothesis-seed={item.config.getoption('hypothesisseed')}"
    if before := item.stash.get(_BEFORE, None):
        yield "the machine during the test", Machine.now().since(before)
    values = getattr(item, "funcargs", {})
    kept = [value for value in values.values() if isinstance(value, Path) and value.is_dir()]
    for folder in kept:
        runs = sorted({path.parent for path in folder.rglob("run.json")})
        yield f"kept in {folder}", "\n".join(f"run directory {run}" for run in runs)
    logs = {log for folder in kept for log in folder.rglob("*.log")}
    # Those of the session's servers that wrote something meanwhile.
    base: Path = item.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    since_ns = before.wall_ns if before else 0
    logs |= {log for log in base.glob("*/*.log") if log.stat().st_mtime_ns >= since_ns}
    for log in sorted(path for path in logs if path.is_file()):
        lines = log.read_text("utf-8", "replace").splitlines()
        yield f"end of {log}", "\n".join(lines[-_LINES:])
