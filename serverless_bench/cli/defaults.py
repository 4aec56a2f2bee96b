"""The user's own defaults for flags, from ``sbench.toml``.

Flags at the top of the file apply to every command that has them, flags in a table
named after a command to that one. SBENCH_CONFIG names another file; without it the
current directory is looked at. Environment variables and the command line win.
"""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from serverless_bench.cli.options import spelled
from serverless_bench.errors import UsageError


def defaults_for(command: click.Command) -> dict[str, Any]:
    """Return the defaults for ``command``, by parameter name.

    Raises
    ------
    UsageError
        If the file cannot be read, or names a flag that the command does not have.
    """
    asked = os.environ.get("SBENCH_CONFIG")
    path = Path(asked or "sbench.toml")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if asked:
            raise UsageError(f"there is no {path}, which SBENCH_CONFIG names") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise UsageError(f"cannot read {path}: {exc}") from exc
    known = dict(_parameters(command))
    common = {name: value for name, value in data.items() if not isinstance(value, dict)}
    own = data.get(str(command.name), {})
    unknown = sorted(name for name in own if spelled(name) not in known)
    if unknown:
        raise UsageError(
            f"{path}: [{command.name}] has no flag {unknown[0]!r}",
            hint=f"known flags: {', '.join(sorted(known))}",
        )
    return {known[spelled(n)]: v for n, v in {**common, **own}.items() if spelled(n) in known}


def _parameters(command: click.Command) -> Iterator[tuple[str, str]]:
    """Yield how each flag is spelled, and the name of its parameter."""
    for parameter in command.params:
        if isinstance(parameter, click.Option) and parameter.name:
            yield spelled(parameter.name), parameter.name
