"""Make the table of docs/settings.md from the settings, and from the help of their flags.

make settings
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Final, get_type_hints

import click

from serverless_bench.cli.call import command as call
from serverless_bench.cli.stages import WORKLOADS, command_of
from serverless_bench.driver.schema import words
from serverless_bench.driver.settings import JobSettings, field_of, setting_names

PAGE: Final = Path(__file__).parent / "settings.md"
BEGIN, END = "<!-- begin of the table: make settings -->\n", "<!-- end of the table -->\n"
COMMANDS: Final = {**{name: command_of(name) for name in WORKLOADS}, "function": call}
_DEFAULT: Final = re.compile(r"\s*\[(?:default: )?(.*)\]$")
_MORE: Final = {
    "workload": "What the functions do: write, read, mixed, array or function; no flag, but the"
    " command.",
    "code": "The function of `sbench call`, as `driver.pickling.pack` makes it.",
    "operation": "What to do with arrays; behind `sbench array`.",
}


def main() -> None:
    """Put the table into the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")


def table() -> str:
    """Return all settings as Markdown."""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows())


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the heading, and a row for every setting."""
    yield ("setting", "also", "is", "default", "of", "what")
    yield ("---",) * 6
    types = get_type_hints(JobSettings)
    for one in fields(JobSettings):
        flags = dict(_flags(one.name))
        what = next(
            (flag.help or "" for flag in flags.values() if isinstance(flag, click.Option)), ""
        )
        other = field_of(one.name)
        yield (
            f"`{one.name}`",
            f"`{other}`" if other else "",
            words(types[one.name]).replace("|", "\\|"),
            _default(flags),
            "" if len(flags) == len(COMMANDS) else ", ".join(flags),
            _DEFAULT.sub("", _MORE.get(one.name, what)),
        )


def _flags(name: str) -> Iterator[tuple[str, click.Parameter]]:
    """Yield the flag of a setting in each command that has it, by workload."""
    for workload, command in COMMANDS.items():
        if name in setting_names(workload):
            yield from ((workload, one) for one in command.params if one.name == name)


def _default(flags: Mapping[str, click.Parameter]) -> str:
    """Return the default of a setting, by workload where workloads differ."""
    found: dict[str, list[str]] = {}
    for workload, flag in flags.items():
        said = _DEFAULT.search(getattr(flag, "help", "") or "")
        text = said[1] if said else flag.default
        # click has a mark for flags without a default.
        if isinstance(text, str | int | float):
            found.setdefault(str(text), []).append(workload)
    if len(found) < 2:
        return "".join(f"`{text}`" if " " not in text else text for text in found)
    return ", ".join(f"{text} ({', '.join(names)})" for text, names in found.items())


if __name__ == "__main__":
    main()
