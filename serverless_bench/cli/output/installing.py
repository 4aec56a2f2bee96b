"""Commands that install a library into the environment of this sbench."""

import re
import shlex
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_PIP: Final = re.compile(r"(?<!-m )(?<!uv )pip install (?:'serverless-bench\[([\w-]+)\]'|([\w-]+))")
_OF_EXTRA: Final = re.compile(r"([^;]+?) *;.*extra == .([\w-]+).")
"""Requirement of an extra: the library with a version, and the extra."""


def fitted(hint: str) -> str:
    """Return a hint whose ``pip install`` fits this installation.

    sbench is on no index, so that pip finds no extras of it, but their libraries.
    """
    return _PIP.sub(lambda match: _command(match[1] or "", match[2] or ""), hint)


def of_extras() -> Iterator[tuple[str, str]]:
    """Yield the libraries of the extras, with their versions, and the extra of each."""
    try:
        declared = requires("serverless-bench") or ()
    except PackageNotFoundError:
        # A folder of modules without an installation.
        return
    yield from ((match[1], match[2]) for match in map(_OF_EXTRA.match, declared) if match)


def _command(extra: str, library: str) -> str:
    libraries = [requirement for requirement, of in of_extras() if of == extra]
    named = shlex.join(libraries or [library or f"serverless-bench[{extra}]"])
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx inject {prefix.name} {named}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:
        # An environment of uv, for instance of `uv tool install`.
        return f"uv pip install --python {python} {named}"
    return f"{python} -m pip install {named}"
