"""Make the content of docs/commands.md: every command with its flags, from their help texts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc
from typing import Final

import click

from docs.make_flags import flag_row
from docs.make_index import FEATURES
from docs.tables import HERE, markdown
from serverless_bench.cli.main import GROUPS, open_command
from serverless_bench.cli.output.terminal import in_sections, sectioned
from serverless_bench.features import COMMANDS

SHARED_BY: Final = 5
"""Number of commands from which a flag stands in the tables of common flags."""
_HEADING: Final = ("flag", "takes", "default", "does")
Row = tuple[str, ...]
"""Names of a flag, its values, its default and its meaning."""


@dataclass(frozen=True)
class Described:
    """A command, with its words as they are typed."""

    words: str
    command: click.Command

    @cached_property
    def flags(self) -> dict[Row, str]:
        """The section of each flag by its row."""
        return {
            flag_row(self.command, option): title
            for title, options in sectioned(in_sections(self.command))
            for option in options
            if "--help" not in option.opts
        }


def made() -> str:
    """Return the common flags and all commands as Markdown."""
    described = {name: list(_described(name)) for group in GROUPS.values() for name in group}
    every = [one for commands in described.values() for one in commands]
    used = Counter(row for one in every for row in one.flags).most_common()
    most = {row[0]: row for row, times in reversed(used) if times >= SHARED_BY}
    sections = _sections({*most.values()}, every)
    parts = ["## Common flags"]
    for title, rows in sections.items():
        parts += [f"### {title}", markdown([_HEADING, *rows])]
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        parts += [p for name in names for one in described[name] for p in _parts(one, sections)]
    return "\n\n".join(part.strip() for part in parts)


def _described(name: str) -> Iterator[Described]:
    command = open_command(name)
    if not isinstance(command, click.Group):
        yield Described(f"sbench {name}", command)
        return
    context = click.Context(command)
    for inner in command.list_commands(context):
        if (found := command.get_command(context, inner)) is not None:
            yield Described(f"sbench {name} {inner}", found)


def _sections(common: set[Row], every: list[Described]) -> dict[str, list[Row]]:
    """Return the common flags by section, in the order of the help texts."""
    sections: dict[str, list[Row]] = {}
    for one in every:
        for row, title in one.flags.items():
            if row in common:
                sections.setdefault(title, []).append(row)
                common.remove(row)
    return sections


def _parts(one: Described, sections: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    context = click.Context(one.command, info_name=one.words)
    yield f"### {one.words}"
    yield f"```text\n{one.command.get_usage(context)}\n```"
    for paragraph in cleandoc(one.command.help or "").split("\n\n"):
        is_as_written = paragraph.startswith("\b")
        text = paragraph.removeprefix("\b\n")
        yield f"```text\n{text}\n```" if is_as_written else " ".join(text.split())
    common = {row for rows in sections.values() for row in rows}
    if own := [row for row in one.flags if row not in common]:
        yield markdown([_HEADING, *own])
    if texts := list(_shared(one, sections)):
        yield f"And the common flags: {'; '.join(texts)}."
    if (page := _page(one.words.split()[1])) is not None:
        yield page


def _shared(one: Described, sections: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield the common flags of a command by section: all, all but a few, or their names."""
    for title, rows in sections.items():
        link = f"[{title}](#{title.lower().replace(' ', '-')})"
        names = {row: f"`{row[0].strip('`').partition(',')[0].partition(' /')[0]}`" for row in rows}
        has = [name for row, name in names.items() if row in one.flags]
        lacks = [name for row, name in names.items() if row not in one.flags]
        if not lacks:
            yield f"all of {link}"
        elif len(lacks) < len(has):
            yield f"{link} but {', '.join(lacks)}"
        elif has:
            yield f"of {link} {', '.join(has)}"


def _page(command: str) -> str | None:
    if command not in COMMANDS:
        return None
    feature = COMMANDS[command].place.partition(".")[0]
    path = (FEATURES / feature / "README.md").relative_to(HERE.parent).as_posix()
    return f"See [its page](../{path})."
