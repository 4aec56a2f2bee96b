"""Find a plugin by name and import nothing but that one.

Every family (clients, workloads, executors, reporters, ...) has a registry of strings,
``name -> "module:attribute"``. Other packages add theirs through the entry point group
``serverless_bench.FAMILY``; they cannot replace a built-in.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from serverless_bench.errors import PluginError

T = TypeVar("T")


class Registry(Generic[T]):
    """The plugins of one family; iterating gives the names of the built-in ones.

    Parameters
    ----------
    family
        Its name, in the plural.
    builtin
        By name, ``"module:attribute"``.
    """

    def __init__(self, family: str, builtin: Mapping[str, str]) -> None:
        self.family = family
        self.kind = family.removesuffix("s")
        self.builtin = dict(builtin)

    def __iter__(self) -> Iterator[str]:
        return iter(self.builtin)

    def __contains__(self, name: object) -> bool:
        return name in self.builtin

    def __len__(self) -> int:
        return len(self.builtin)

    def load(self, name: str) -> T:
        """Return the plugin called ``name``, importing only that one.

        Raises
        ------
        PluginError
            If the name is unknown, two packages claim it, or its library is not installed.
        """
        # Built-ins first: looking at entry points takes 20-60 ms, a cold start is billed.
        value = self.builtin.get(name) or self._external().get(name)
        if value is None:
            raise self._unknown(name)
        module_name, _, attribute = value.partition(":")
        with extra(name, f"{self.kind} {name!r}"):
            return cast("T", getattr(import_module(module_name), attribute))

    def check(self, name: str) -> None:
        """Refuse a name that nobody has; nothing is imported.

        Raises
        ------
        PluginError
            If the name is unknown; the hint lists those that are known.
        """
        if name not in self.builtin and name not in self._external():
            raise self._unknown(name)

    def names(self) -> list[str]:
        """Return every name that a user may type, sorted."""
        return sorted({*self.builtin, *self._external()})

    def _unknown(self, name: str) -> PluginError:
        from difflib import get_close_matches  # noqa: PLC0415 - for errors only

        names = self.names()
        close = get_close_matches(name, names, n=1)
        known = f"known {self.family}: {', '.join(names)}"
        hint = f"did you mean {close[0]!r}? {known}" if close else known
        return PluginError(f"unknown {self.kind} {name!r}", hint=hint)

    def _external(self) -> dict[str, str]:
        from importlib.metadata import entry_points  # noqa: PLC0415 - slow, see load

        found: dict[str, str] = {}
        for entry in entry_points(group=f"serverless_bench.{self.family}"):
            if entry.name in self.builtin or found.get(entry.name, entry.value) != entry.value:
                raise PluginError(
                    f"two packages provide {self.kind} {entry.name!r}",
                    hint=f"uninstall or rename the one at {entry.value}",
                )
            found[entry.name] = entry.value
        return found


TOOLS: Registry[Any] = Registry("tools", {})
"""Tools that flags of the core use and other packages bring; the wing ``lab`` has

``audit``
    holds a run against what the store saw of it;
``check-ceiling``, ``measure-ceiling``
    run a job against a store that keeps nothing;
``loopback``
    starts that store;
``simulation``
    makes a run directory of what a command would do, by a model.
"""


@contextmanager
def extra(name: str, what: str, *, otherwise: str = "") -> Iterator[None]:
    """Have an import in this block that fails name the extra to install.

    Parameters
    ----------
    name
        Of the extra.
    what
        What needs it.
    otherwise
        What else the user may do, for the end of the hint.

    Raises
    ------
    PluginError
        If a library is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as exc:
        raise PluginError(
            f"{what} needs {exc.name!r}, which is not installed",
            hint=f"pip install 'serverless-bench[{name}]'{otherwise}",
        ) from exc
