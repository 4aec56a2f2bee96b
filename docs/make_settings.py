"""Make the table of docs/settings.md from the settings."""

from collections.abc import Iterator, Mapping

from docs.tables import markdown
from serverless_bench.cli.main import COMMANDS
from serverless_bench.job.meaning import Meaning
from serverless_bench.job.settings import declared, setting_names
from serverless_bench.job.types import words
from serverless_bench.job.workload import WORKLOADS, Workload, open_workload


def table() -> str:
    """Return all settings as Markdown."""
    return markdown(list(rows()))


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the heading, and a row for every setting."""
    yield ("setting", "type", "default", "of", "meaning")
    for name, (kind, default, one) in declared().items():
        yield (
            f"`{name}`",
            words(kind),
            _default(default, one, _having(name) if one.own else _having("")),
            ", ".join(_having(name)) if one.own else "",
            one.what,
        )


def _having(setting: str) -> Mapping[str, Workload]:
    """Return the workloads that declare a setting, or any, in the order of their commands."""
    commands = list(COMMANDS)
    names = sorted(WORKLOADS, key=lambda name: (*commands, name).index(name))
    workloads = {name: open_workload(name) for name in names}
    return {
        name: workload
        for name, workload in workloads.items()
        if (setting in setting_names(name) if setting else workload.settings)
    }


def _default(default: object, setting: Meaning, workloads: Mapping[str, Workload]) -> str:
    """Return the default of a setting, by workload where workloads differ."""
    usual = {name: setting.otherwise(workload) for name, workload in workloads.items()}
    found: dict[str, list[str]] = {}
    for workload, value in usual.items():
        if value is not None:
            found.setdefault(str(value), []).append(workload)
    if len(found) > 1:
        return ", ".join(f"{text} ({', '.join(names)})" for text, names in found.items())
    if isinstance(default, str | int | float):
        found[str(default)] = []
    return "".join(f"`{text}`" for text in found)
