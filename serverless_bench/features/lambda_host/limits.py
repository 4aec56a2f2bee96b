"""Limits of an execution environment: memory and CPUs.

Limits use control groups, version 2 or 1, if this process has the right to create them, as root
has in most containers. Otherwise the size of a process' data is limited (``RLIMIT_DATA``):
allocations then fail, whereas Lambda kills the process.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.units import MIB

_ROOT: Final = Path("/sys/fs/cgroup")
_PERIOD_US: Final = 100_000
"""The kernel's default (Documentation/scheduler/sched-bwc.rst)."""


class EnvironmentLimits:
    """Creates the limits of each environment.

    Parameters
    ----------
    memory, cpu
        Whether to limit each resource, as far as this machine can.
    """

    def __init__(self, *, memory: bool, cpu: bool) -> None:
        wanted = [name for name, limited in (("memory", memory), ("cpu", cpu)) if limited]
        self._groups = {controller: _group(controller) for controller in wanted}

    def describe(self) -> str:
        """Return a line about the limits in effect."""
        fallbacks = {"memory": "by RLIMIT_DATA", "cpu": "not here (no cgroup)"}
        descriptions = dict.fromkeys(fallbacks, "not limited")
        for controller, group in self._groups.items():
            version = "v2" if group and (group / "cgroup.controllers").exists() else "v1"
            descriptions[controller] = f"by cgroup {version}" if group else fallbacks[controller]
        return f"limits: memory {descriptions['memory']}, CPUs {descriptions['cpu']}"

    def new_limits(self, name: str, memory_mib: int, cpus: float) -> dict[str, Any]:
        """Return limits of ``memory_mib`` and ``cpus`` CPUs for a new environment.

        They are part of an order to a fork server: ``cgroups`` to enter, and ``data_bytes`` for
        RLIMIT_DATA, 0 for none.
        """
        size, quota_us = memory_mib * MIB, max(round(cpus * _PERIOD_US), 1000)
        groups: dict[Path, None] = {}
        for controller, group in self._groups.items():
            if group is not None:
                groups[_created(group / name)] = None
                _limit(group / name, controller, size, quota_us)
        needs_rlimit = "memory" in self._groups and self._groups["memory"] is None
        return {"cgroups": [*map(str, groups)], "data_bytes": size if needs_rlimit else 0}

    def close(self) -> None:
        """Remove the groups, after the environments have ended."""
        for group in self._groups.values():
            if group is not None:
                _remove(group)


def _limit(group: Path, controller: str, size: int, quota_us: int) -> None:
    """Write the limits for which a group has files, of version 2 or version 1."""
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
    """Create a group for ``controller`` and return it; None without the right to create it."""
    for top in _tops(controller):
        _remove_leftovers(top)
        group = top / f"sbench-lambda-{os.getpid()}"
        try:
            _created(group)
            with suppress(OSError):
                (group / "cgroup.subtree_control").write_text(f"+{controller}")
            trial = _created(group / "trial")
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
    """Return directories in which groups could be created: the process' group, or its parent.

    Version 2 gives no controllers to the children of a group that has processes.
    """
    tops = [top for top in (_mine(controller), _mine("")) if top is not None]
    return [*tops, *(top.parent for top in tops if (top.parent / "cgroup.procs").exists())]


def _mine(controller: str) -> Path | None:
    """Return the group of this process; version 2 for an empty controller."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            tops = [_ROOT / controllers] if controllers else [_ROOT, _ROOT / "unified"]
            # In a container the path may be that outside of the container.
            for top in (*(t / path.lstrip("/") for t in tops), *tops):
                if (top / "cgroup.procs").exists():
                    return top
    return None


def _remove_leftovers(top: Path) -> None:
    """Remove groups left by hosts that were killed."""
    for old in top.glob("sbench-lambda-*/"):
        if not Path("/proc", old.name.rpartition("-")[2]).exists():
            _remove(old)


def _created(group: Path) -> Path:
    group.mkdir(exist_ok=True)
    return group


def _remove(group: Path) -> None:
    for directory in (*group.glob("*/"), group):
        with suppress(OSError):
            directory.rmdir()
