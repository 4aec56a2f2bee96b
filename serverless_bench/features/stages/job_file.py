"""Job files: stages that run one after the other, as TOML.

This module handles the structure of a job file. It does not know the settings in it: they are the
flags of the commands, which are defined in ``cli``.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from serverless_bench.base.errors import UsageError, check_known
from serverless_bench.base.user_files import read_toml
from serverless_bench.job.setting_schema import Setting, checked, converted, located

MAX_STAGES: Final = 200
"""Most stages; each is a run, and all are planned before the first starts."""
_EXAMPLE: Final = "sbench examples stages.toml writes an example"
_OWN: Final = ("name", "kind", "workload", "keys")
"""Keys of a stage that are not flags."""


class Kind(StrEnum):
    """Purpose of a stage."""

    PREPARE = "prepare"
    """Creates objects that later stages need: if it fails, they do not run."""
    EXECUTE = "execute"
    CLEANUP = "cleanup"
    """Deletes the objects of earlier stages; it runs even if they failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One run, or one deletion of objects that earlier runs wrote."""

    name: str
    kind: Kind
    workload: str | None = None
    """Workload of the functions; None for a cleanup."""
    keys: str | None = None
    """Name of the earlier stage that wrote the objects to read."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Flags of this stage, as spelled in the file."""

    @property
    def where(self) -> str:
        """The stage as named in messages."""
        return f"stage {self.name!r}"

    @property
    def title(self) -> str:
        """The stage with its kind and workload."""
        kind = f"{self.kind}, {self.workload}" if self.workload else self.kind
        return f"{self.name} ({kind})"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """Stages, and the settings common to all of them."""

    name: str
    target: Mapping[str, Setting] = field(default_factory=dict)
    """Flags for the location of objects, for all stages that have them."""
    run: Mapping[str, Setting] = field(default_factory=dict)
    """All other flags, likewise."""
    stages: tuple[Stage, ...]
    path: Path = field(default=Path(), compare=False)
    """The file, for messages."""


def load_job_file(path: Path) -> JobFile:
    """Return the contents of a job file.

    Raises
    ------
    UsageError
        If the file cannot be read, lacks something, or has an unknown key.
    """
    data = read_toml(path, "the job file", hint=_EXAMPLE)
    with located(f"{path}: the top of the file"):
        check_known(data, ("name", "target", "run", "stages"), "unknown key")
        tables = data.get("stages")
        if not tables or not isinstance(tables, list) or {*map(type, tables)} != {dict}:
            raise UsageError("there are no [[stages]]", hint=_EXAMPLE)
        if len(tables) > MAX_STAGES:
            raise UsageError(f"there are {len(tables)} [[stages]], at most {MAX_STAGES} allowed")
        name = _plain_name(data)
    stages = tuple(_stage(path, number, table) for number, table in enumerate(tables, start=1))
    _check_order(path, stages)
    return JobFile(
        name=name,
        target=_settings(path, "[target]", data.get("target", {})),
        run=_settings(path, "[run]", data.get("run", {})),
        stages=stages,
        path=path,
    )


def dump_job_file(job: JobFile, remarks: Iterable[str] = ()) -> str:
    """Return the text of a job file that ``load_job_file`` reads back, below remarks.

    Parameters
    ----------
    job
        Job file to write.
    remarks
        Lines of comment for the top.
    """
    # A remark may quote a text with line breaks, which must not become settings.
    printable = ("".join(c if c.isprintable() else " " for c in remark) for remark in remarks)
    lines = [f"# {remark}".rstrip() for remark in printable]
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
    with located(f"{path}: stage {number}"):
        where = f"stage {_plain_name(table)!r}"
    with located(f"{path}: {where}"):
        own = {key: checked(Stage, key, table[key]) for key in _OWN if key in table}
        cleanup = own.get("kind") is Kind.CLEANUP
        for key, example in (("kind", "execute"), ("workload", "write")):
            if not own.get(key) and not cleanup:
                raise UsageError(f"{key} is missing", hint=f'as in {key} = "{example}"')
        if cleanup:
            check_known(table, ("name", "kind"), "unknown key")
    settings = {key: value for key, value in table.items() if key not in _OWN}
    return Stage(**own, settings=_settings(path, where, settings))


def _check_order(path: Path, stages: Iterable[Stage]) -> None:
    """Check that names are unique, and that ``keys`` names an earlier stage with objects."""
    # By name of a stage, whether its objects still exist.
    has_objects: dict[str, bool] = {}
    for stage in stages:
        with located(f"{path}: {stage.where}"):
            if stage.name in has_objects:
                raise UsageError("another stage already has this name")
            if stage.keys is not None and not has_objects.get(stage.keys):
                gone = stage.keys in has_objects
                reason = (
                    "whose objects are deleted by then" if gone else "which is not an earlier stage"
                )
                raise UsageError(
                    f"keys names {stage.keys!r}, {reason}",
                    hint='keys = "NAME" reads the objects of an earlier stage',
                )
        if stage.kind is Kind.CLEANUP:
            has_objects = dict.fromkeys(has_objects, False)
        has_objects[stage.name] = stage.kind is not Kind.CLEANUP


def _plain_name(table: Mapping[str, Any]) -> str:
    name = table.get("name")
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise UsageError(
            f"name is {name!r}" if "name" in table else "name is missing",
            hint="use letters, digits, dots, hyphens and underscores: it names a directory",
        )
    return name


def _settings(path: Path, where: str, table: object) -> dict[str, Setting]:
    with located(f"{path}: {where}"):
        if not isinstance(table, dict):
            raise UsageError(f"it must be a table, got {table!r}")
        return {key: converted(Setting, key, value) for key, value in table.items()}


def _lines(settings: Mapping[str, Setting]) -> Iterator[str]:
    for key, value in settings.items():
        bare = re.fullmatch(r"[A-Za-z0-9_-]+", key)
        yield f"{key if bare else _value(key)} = {_value(value)}"


def _value(value: Setting) -> str:
    if isinstance(value, float):
        # JSON has no infinity.
        return repr(value)
    return for_toml(value)


def for_toml(value: object) -> str:
    """Return a text, or a list of texts, in TOML, with printable characters only."""
    # The rest of the JSON syntax is valid TOML.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else _toml_escaped(char) for char in text)


def _toml_escaped(char: str) -> str:
    # TOML has no surrogates.
    return "\\ufffd" if "\ud800" <= char <= "\udfff" else f"\\U{ord(char):08x}"
