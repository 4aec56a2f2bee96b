"""Find a plugin by name and import only that plugin.

Each family (clients, workloads, executors, reporters, ...) has a registry of strings, ``name ->
"module:attribute"``. Other packages add plugins through the entry point group
``serverless_bench.FAMILY``; they cannot replace a built-in plugin.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Generic, TypeVar, cast

from serverless_bench.base.errors import PluginError, suggestion
from serverless_bench.features import PLUGINS, full

T = TypeVar("T")


class Registry(Generic[T]):
    """The plugins of one family; iterating gives the names of the built-in plugins.

    Parameters
    ----------
    family
        Name of the family, in the plural.
    builtin
        ``"module:attribute"`` by name; those of the features are added.
    kind
        What messages call a plugin; None for the singular of ``family``.
    """

    def __init__(self, family: str, builtin: Mapping[str, str], *, kind: str | None = None) -> None:
        self.family = family
        self.kind = kind or family.removesuffix("s")
        of_features = {name: full(at) for name, at in PLUGINS.get(family, {}).items()}
        self.builtin = dict(sorted({**builtin, **of_features}.items()))

    def __iter__(self) -> Iterator[str]:
        return iter(self.builtin)

    def __contains__(self, name: object) -> bool:
        return name in self.builtin

    def __len__(self) -> int:
        return len(self.builtin)

    def load(self, name: str) -> T:
        """Return the plugin called ``name``, importing only that plugin.

        Raises
        ------
        PluginError
            If the name is unknown, two packages claim it, or its library is not installed.
        """
        # Built-ins first: reading entry points takes 20-60 ms, and a cold start is billed.
        value = self.builtin.get(name) or self._external().get(name)
        if value is None:
            raise self._unknown(name)
        module_name, _, attribute = value.partition(":")
        with extra(name, f"{self.kind} {name!r}"):
            return cast("T", getattr(import_module(module_name), attribute))

    def checked(self, name: str) -> str:
        """Return a name if it is known, without imports.

        Raises
        ------
        PluginError
            If the name is unknown; the hint lists the known names.
        """
        if name not in self.builtin and name not in self._external():
            raise self._unknown(name)
        return name

    def names(self) -> list[str]:
        """Return all names that a user may type, sorted."""
        return sorted({*self.builtin, *self._external()})

    def _unknown(self, name: str) -> PluginError:
        return PluginError(f"unknown {self.kind} {name!r}", hint=suggestion(name, self.names()))

    def _external(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        plugins: dict[str, str] = {}
        for entry in entry_points(group=f"serverless_bench.{self.family}"):
            if entry.name in self.builtin or plugins.get(entry.name, entry.value) != entry.value:
                raise PluginError(
                    f"two packages provide {self.kind} {entry.name!r}",
                    hint=f"uninstall or rename the one at {entry.value}",
                )
            plugins[entry.name] = entry.value
        return plugins


TOOLS: Registry[Any] = Registry("tools", {})
"""Tools of features that the core calls by their names:

``answer``, ``answer-in-short``, ``answer-page``
    show the result of a series of runs again, in a few words, and as a page;
``audit``
    compares a run with the requests that the store logged;
``bill``, ``budget``, ``cost-limit``, ``prices``
    are the costs of a run, their limit, the check of its flags, and the prices of a file;
``directory-bucket``, ``zone``
    check a job with a directory bucket, and the region of its zone;
``load-function``, ``pack-function``, ``function-load``
    read a function of the user from a file, turn it into text for workers, and put that into a
    load;
``loopback``
    starts a store that discards all objects;
``outlook``
    prints what a job file would run;
``simulation``
    generates a run directory for a command from a model;
``versions``
    counts and deletes the versions that a bucket keeps of a run's objects.
"""


@contextmanager
def extra(name: str, what: str, *, otherwise: str = "") -> Iterator[None]:
    """Name the extra to install when an import in the block fails.

    Parameters
    ----------
    name
        Name of the extra.
    what
        Feature that needs it.
    otherwise
        Alternative for the user, appended to the hint.

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
