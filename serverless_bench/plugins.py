"""Find a plugin by name and import nothing but that one.

Every family (clients, workloads, executors, stores, reporters) has a table of strings,
``name -> "module:attribute"``. Other packages add theirs through the entry point group
``serverless_bench.FAMILY``; they cannot replace a built-in.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from serverless_bench.errors import PluginError


def load(family: str, builtin: Mapping[str, str], name: str) -> Any:  # noqa: ANN401 - any plugin
    """Return what ``name`` stands for in ``family``.

    Raises
    ------
    PluginError
        If the name is unknown, two packages claim it, or its library is not installed.
    """
    # Built-ins first: looking at entry points takes 20-60 ms, a cold start is billed.
    value = builtin.get(name) or _external(family, builtin).get(name)
    if value is None:
        raise PluginError(
            f"unknown {family.removesuffix('s')} {name!r}",
            hint=f"known {family}: {', '.join(names(family, builtin))}",
        )
    module_name, _, attribute = value.partition(":")
    try:
        return getattr(import_module(module_name), attribute)
    except ModuleNotFoundError as exc:
        raise PluginError(
            f"{family.removesuffix('s')} {name!r} needs {exc.name!r}, which is not installed",
            hint=f"pip install 'serverless-bench[{name}]'",
        ) from exc


def names(family: str, builtin: Mapping[str, str]) -> list[str]:
    """Return every name a user may type for ``family``, sorted."""
    return sorted({*builtin, *_external(family, builtin)})


def _external(family: str, builtin: Mapping[str, str]) -> dict[str, str]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - slow, see load

    found: dict[str, str] = {}
    for entry in entry_points(group=f"serverless_bench.{family}"):
        if entry.name in builtin or found.get(entry.name, entry.value) != entry.value:
            raise PluginError(
                f"two packages provide {family.removesuffix('s')} {entry.name!r}",
                hint=f"uninstall or rename the one at {entry.value}",
            )
        found[entry.name] = entry.value
    return found
