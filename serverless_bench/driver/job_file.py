"""Job files: stages that run one after the other, as TOML.

This module knows how a job file is built, and nothing of what may be set in it: that is
what the commands' flags are, and ``cli`` knows those.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from serverless_bench.driver.schema import checked, converted, located
from serverless_bench.errors import UsageError

Setting = str | int | float | bool | tuple[str, ...]
"""What a flag can be set to in a job file."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOP: Final = ("name", "target", "run", "stages")
_OWN: Final = ("name", "kind", "workload", "keys")
"""Keys of a stage that are no flags."""


class Kind(StrEnum):
    """What a stage is for."""

    PREPARE = "prepare"
    """Makes what later stages need: without it they do not run."""
    EXECUTE = "execute"
    CLEANUP = "cleanup"
    """Deletes what the stages before it wrote; it runs whatever happened to them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One run, or one deletion of what earlier runs wrote."""

    name: str
    kind: Kind
    workload: str | None = None
    """What the functions do; None for a cleanup."""
    keys: str | None = None
    """Name of the earlier stage whose objects this one reads."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Flags of this stage, as the file spells them."""

    @property
    def where(self) -> str:
        """The stage as a message names it."""
        return f"stage {self.name!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """Stages, and what holds for all of them."""

    name: str
    target: Mapping[str, Setting] = field(default_factory=dict)
    """Flags that say where objects are, for every stage that has them."""
    run: Mapping[str, Setting] = field(default_factory=dict)
    """All other flags, the same way."""
    stages: tuple[Stage, ...]
    path: Path = field(default=Path(), compare=False)
    """The file, for messages."""

    def wrong(self, where: str, what: str, *, hint: str = "") -> UsageError:
        """Return the error that names the file, the place in it, and what is wrong there."""
        return wrong(self.path, where, what, hint=hint)


def wrong(path: Path, where: str, what: str, *, hint: str = "") -> UsageError:
    """Return the error that names a file, the place in it, and what is wrong there."""
    return UsageError(f"{path}: {where}: {what}", hint=hint)


def load_job_file(path: Path) -> JobFile:
    """Return what a job file says.

    Raises
    ------
    UsageError
        If the file cannot be read, lacks something, or has a key that means nothing.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise UsageError(
            f"cannot read the job file {path}: {reason}", hint="docs/job-files.md has an example"
        ) from exc
    top = "the top of the file"
    _refuse_others(path, top, data, _TOP)
    tables = data.get("stages")
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise wrong(path, top, "there are no [[stages]]", hint="docs/job-files.md has an example")
    stages = tuple(_stage(path, number, table) for number, table in enumerate(tables, start=1))
    _check_order(path, stages)
    return JobFile(
        name=_plain_name(path, top, data),
        target=_settings(path, "[target]", data.get("target", {})),
        run=_settings(path, "[run]", data.get("run", {})),
        stages=stages,
        path=path,
    )


def dump_job_file(job: JobFile, remarks: Iterable[str] = ()) -> str:
    """Return the text that ``load_job_file`` reads ``job`` from, below remarks.

    Parameters
    ----------
    job
        What to write.
    remarks
        Lines of comment for the top.
    """
    # A remark may quote something with line breaks, and must not become a setting.
    lines = [f"# {_printable(remark)}".rstrip() for remark in remarks]
    lines += [""] if lines else []
    lines.append(f"name = {_value(job.name)}")
    for title, settings in (("target", job.target), ("run", job.run)):
        if settings:
            lines += ["", f"[{title}]", *_lines(settings)]
    for stage in job.stages:
        own = {name: getattr(stage, name) for name in _OWN if getattr(stage, name) is not None}
        lines += ["", "[[stages]]", *_lines(own), *_lines(stage.settings)]
    return "\n".join(lines) + "\n"


def _stage(path: Path, number: int, table: Mapping[str, Any]) -> Stage:
    where = f"stage {number}"
    name = _plain_name(path, where, table)
    where = f"stage {name!r}"
    with located(f"{path}: {where}"):
        own = {key: checked(Stage, key, table[key]) for key in _OWN if key in table}
    for key, example in (("kind", "execute"), ("workload", "write")):
        if not own.get(key) and own.get("kind") is not Kind.CLEANUP:
            raise wrong(path, where, f"{key} is missing", hint=f'as in {key} = "{example}"')
    if own["kind"] is Kind.CLEANUP:
        _refuse_others(path, where, table, ("name", "kind"))
    settings = {key: value for key, value in table.items() if key not in _OWN}
    return Stage(**own, settings=_settings(path, where, settings))


def _check_order(path: Path, stages: Iterable[Stage]) -> None:
    """Refuse names that stand twice, and keys of a stage that is not there by then."""
    seen: set[str] = set()
    there: set[str] = set()
    for stage in stages:
        if stage.name in seen:
            raise wrong(path, stage.where, "this name stands twice")
        if stage.keys is not None and stage.keys not in there:
            gone = stage.keys in seen
            raise wrong(
                path,
                stage.where,
                f"keys names {stage.keys!r}, "
                + ("whose objects are deleted by then" if gone else "which is no earlier stage"),
                hint='keys = "NAME" reads the objects of an earlier stage',
            )
        seen.add(stage.name)
        if stage.kind is Kind.CLEANUP:
            there.clear()
        else:
            there.add(stage.name)


def _plain_name(path: Path, where: str, table: Mapping[str, Any]) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        what = f"name is {name!r}" if "name" in table else "name is missing"
        raise wrong(
            path,
            where,
            what,
            hint="letters, digits, dots, hyphens and underscores: it names a directory",
        )
    return name


def _settings(path: Path, where: str, table: object) -> dict[str, Setting]:
    if not isinstance(table, dict):
        raise wrong(path, where, f"it must be a table, got {table!r}")
    with located(f"{path}: {where}"):
        return {key: converted(Setting, key, value) for key, value in table.items()}


def _refuse_others(
    path: Path, where: str, table: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    for key in table:
        if key not in known:
            raise wrong(path, where, f"unknown key {key!r}", hint=f"known: {', '.join(known)}")


def _lines(settings: Mapping[str, Setting]) -> Iterator[str]:
    for key, value in settings.items():
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", key)
        yield f"{key if bare else _value(key)} = {_value(value)}"


def _value(value: Setting) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # JSON's strings are TOML's basic strings, but for one character.
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return repr(value)


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
