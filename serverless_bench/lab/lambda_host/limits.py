"""What an execution environment may use: memory and processors.

Control groups, version 2 or 1, where this process may make some; it needs the right to,
as root has it in most containers. Without them the size of a process' data is limited
(``RLIMIT_DATA``): allocations fail then, where Lambda kills.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from serverless_bench.units import MIB

_ROOT: Final = Path("/sys/fs/cgroup")
_PERIOD_US: Final = 100_000
"""The kernel's own default (Documentation/scheduler/sched-bwc.rst)."""


class EnvironmentLimits:
    """Makes a box for every environment.

    Parameters
    ----------
    memory, cpu
        Whether each is limited, as far as this machine can.
    """

    def __init__(self, *, memory: bool, cpu: bool) -> None:
        wanted = [name for name, limited in (("memory", memory), ("cpu", cpu)) if limited]
        self._groups = {controller: _group(controller) for controller in wanted}

    def describe(self) -> str:
        """Return one line about what holds here."""
        without = {"memory": "by RLIMIT_DATA", "cpu": "not here (no cgroup)"}
        holds = dict.fromkeys(without, "none asked for")
        for controller, group in self._groups.items():
            version = "v2" if group and (group / "cgroup.controllers").exists() else "v1"
            holds[controller] = f"by cgroup {version}" if group else without[controller]
        return f"limits: memory {holds['memory']}, processors {holds['cpu']}"

    def new_limits(self, name: str, memory_mib: int, cpus: float) -> dict[str, Any]:
        """Return a new box that holds ``memory_mib`` and ``cpus`` processors.

        It is a part of what a fork server is ordered: ``cgroups`` to enter, and ``data_bytes``
        for RLIMIT_DATA, 0 for none.
        """
        size, quota_us = memory_mib * MIB, max(round(cpus * _PERIOD_US), 1000)
        made: dict[Path, None] = {}
        for controller, group in self._groups.items():
            if group is not None:
                made[_made(group / name)] = None
                _limit(group / name, controller, size, quota_us)
        rough = "memory" in self._groups and self._groups["memory"] is None
        return {"cgroups": [*map(str, made)], "data_bytes": size if rough else 0}

    def close(self) -> None:
        """Remove the groups; the environments have ended."""
        for group in self._groups.values():
            if group is not None:
                _remove(group)


def _limit(group: Path, controller: str, size: int, quota_us: int) -> None:
    """Write the limits that a group has files for: those of version 2, or of version 1."""
    limits = {
        "memory.max": size,
        "memory.swap.max": 0,
        "memory.limit_in_bytes": size,
        "memory.memsw.limit_in_bytes": size,
        "cpu.max": f"{quota_us} {_PERIOD_US}",
        "cpu.cfs_period_us": _PERIOD_US,
        "cpu.cfs_quota_us": quota_us,
    }
    for name, limit in limits.items():
        if name.startswith(controller) and (group / name).exists():
            (group / name).write_text(str(limit))


def _group(controller: str) -> Path | None:
    """Return a group of ours for ``controller``; None where we may make none."""
    for top in _tops(controller):
        _remove_leftovers(top)
        group = top / f"sbench-lambda-{os.getpid()}"
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
            _remove(old)


def _made(group: Path) -> Path:
    group.mkdir(exist_ok=True)
    return group


def _remove(group: Path) -> None:
    for each in (*group.glob("*/"), group):
        with suppress(OSError):
            each.rmdir()
