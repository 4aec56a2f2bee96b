"""What an execution environment may use: memory and processors.

Control groups, version 2 or 1, where this process may make some; it needs the right to,
as root has it in most containers. Without them the size of a process' data is limited
(``RLIMIT_DATA``): allocations fail then, where Lambda kills.
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from serverless_bench.units import MIB

_ROOT: Final = Path("/sys/fs/cgroup")
_PERIOD_US: Final = 100_000
"""The kernel's own default (Documentation/scheduler/sched-bwc.rst)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLimits:
    """Where one environment is put before it runs."""

    cgroups: tuple[Path, ...] = ()
    data_bytes: int = 0
    """RLIMIT_DATA; 0 for none."""


class Limits:
    """Makes a box for every environment.

    Parameters
    ----------
    memory, cpu
        Whether each is limited, as far as this machine can.
    """

    def __init__(self, *, memory: bool, cpu: bool) -> None:
        name = f"sbench-lambda-{os.getpid()}"
        self._memory = _group("memory", name) if memory else None
        self._cpu = _group("cpu", name) if cpu else None
        self._wanted = (memory, cpu)

    def describe(self) -> str:
        """Return one line about what holds here."""
        memory, cpu = self._wanted
        words = {
            "memory": f"by {_kind(self._memory)}" if self._memory else "by RLIMIT_DATA",
            "processors": f"by {_kind(self._cpu)}" if self._cpu else "not here (no cgroup)",
        }
        requested = {"memory": memory, "processors": cpu}
        return "limits: " + ", ".join(
            f"{what} {words[what] if wanted else 'none asked for'}"
            for what, wanted in requested.items()
        )

    def new_limits(self, name: str, memory_mib: int, cpus: float) -> ResourceLimits:
        """Return a new box that holds ``memory_mib`` and ``cpus`` processors."""
        made: dict[Path, None] = {}
        if self._memory is not None:
            group = self._memory / name
            made[_made(group)] = None
            _limit_memory(group, memory_mib * MIB)
        if self._cpu is not None:
            group = self._cpu / name
            made[_made(group)] = None
            _limit_cpu(group, max(round(cpus * _PERIOD_US), 1000))
        rough = self._wanted[0] and self._memory is None
        return ResourceLimits(cgroups=tuple(made), data_bytes=memory_mib * MIB if rough else 0)

    def close(self) -> None:
        """Remove the groups; the environments have ended."""
        for group in {self._memory, self._cpu} - {None}:
            assert group is not None  # noqa: S101 - for the type checker
            for inner in group.glob("*/"):
                _remove(inner)
            _remove(group)


def _limit_memory(group: Path, size: int) -> None:
    if (group / "memory.max").exists():
        (group / "memory.max").write_text(str(size))
        with suppress(OSError):
            (group / "memory.swap.max").write_text("0")
        return
    (group / "memory.limit_in_bytes").write_text(str(size))
    with suppress(OSError):
        (group / "memory.memsw.limit_in_bytes").write_text(str(size))


def _limit_cpu(group: Path, quota_us: int) -> None:
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
        return
    (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(quota_us))


def _group(controller: str, name: str) -> Path | None:
    """Return a group of ours for ``controller``; None where we may make none."""
    for top in _tops(controller):
        _remove_leftovers(top)
        group = top / name
        try:
            _made(group)
            with suppress(OSError):
                (group / "cgroup.subtree_control").write_text(f"+{controller}")
            trial = _made(group / "trial")
            files = ("memory.max", "memory.limit_in_bytes", "cpu.max", "cpu.cfs_quota_us")
            can = any((trial / f).exists() for f in files if f.startswith(controller))
            _remove(trial)
        except OSError:
            can = False
        if can:
            return group
        _remove(group)
    return None


def _tops(controller: str) -> list[Path]:
    """Return where groups could be made: below our own one, or beside it.

    Version 2 gives no controllers to the children of a group that has processes.
    """
    tops = [top for top in (_mine(controller), _mine("")) if top is not None]
    return [*tops, *(top.parent for top in tops if (top.parent / "cgroup.procs").exists())]


def _mine(controller: str) -> Path | None:
    """Return the group that this process is in; version 2 for no controller."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            tops = [_ROOT / controllers] if controllers else [_ROOT, _ROOT / "unified"]
            # In a container the path may be the one outside.
            for top in (*(t / path.lstrip("/") for t in tops), *tops):
                if (top / "cgroup.procs").exists():
                    return top
    return None


def _remove_leftovers(top: Path) -> None:
    """Remove what hosts that were killed have left."""
    for old in top.glob("sbench-lambda-*/"):
        if not Path("/proc", old.name.rpartition("-")[2]).exists():
            for inner in old.glob("*/"):
                _remove(inner)
            _remove(old)


def _made(group: Path) -> Path:
    group.mkdir(exist_ok=True)
    return group


def _remove(group: Path) -> None:
    with suppress(OSError):
        group.rmdir()


def _kind(group: Path | None) -> str:
    return "cgroup v2" if group and (group / "cgroup.controllers").exists() else "cgroup v1"
