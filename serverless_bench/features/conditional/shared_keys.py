"""Keys that all functions of a run write to, and the content of their objects.

The registers, claims and logs of a run are below ``PREFIX RUN/conditional/``; a log is a folder of
manifests, numbered from 1. The content names the writer and the version it was meant to replace::

    {"run_id":"...","token":"3.0.17","base":"1.0.9","value":42}
    8d5f0c7a91b3e264

The second line is a digest of the first. A token is unique within a run: index and launch of the
function, and a number. With tokens and bases, the versions of a key can be put in order afterwards.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

MAX_BYTES: Final = 1024
"""Most bytes of an object at a shared key."""
FOREIGN: Final = "?"
"""Prefix of a version that represents bytes not written by any function."""
_MOST: Final = 1 << 62
_KEY: Final = re.compile(
    r"(?:.*/)?([^/]+)/conditional/(?:register|claim|log)-[0-9]{8}(?:/[0-9]{8})?", re.DOTALL
)
_BEGINS: Final = re.compile(rb'\{"run_id":"([^"]+)","token":"')
_TOKEN: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,12})")


class Pattern(StrEnum):
    """Pattern of contention between the functions of a run."""

    INCREMENT = "increment"
    """Functions write the next value of a register."""
    CLAIM = "claim"
    """Functions write a key that does not exist."""
    APPEND = "append"
    """Functions write the next manifest of a log."""


_NAMES: Final[Mapping[Pattern, str]] = {
    Pattern.INCREMENT: "register",
    Pattern.CLAIM: "claim",
    Pattern.APPEND: "log",
}


class Version(NamedTuple):
    """One state of a shared key."""

    token: str
    """Identifies the version."""
    base: str | None
    """Token of the version to replace; None if the key was to be new."""
    value: int
    """Number of increments of a register, number of a manifest, or 1 for a claim."""


def shared_key(prefix: str, run_id: str, pattern: Pattern, number: int) -> str:
    """Return the key of a register, of a claim, or of a log."""
    return f"{prefix}{run_id}/conditional/{_NAMES[pattern]}-{number:08}"


def manifest_key(log: str, number: int) -> str:
    """Return the key of a manifest of a log; the first has number 1."""
    return f"{log}/{number:08}"


def is_shared_key(key: str) -> bool:
    """Return whether the functions of a run share a key."""
    return _KEY.fullmatch(key) is not None


def encode(run_id: str, version: Version) -> bytes:
    """Return the content of an object for a version."""
    line = json.dumps({"run_id": run_id, **version._asdict()}, separators=(",", ":")).encode()
    return line + b"\n" + _digest(line) + b"\n"


def decode(run_id: str, data: bytes) -> Version | None:
    """Return the version in the content of an object; None if no function of the run wrote it."""
    line, _, digest = data.partition(b"\n")
    if digest != _digest(line) + b"\n":
        return None
    try:
        fields = json.loads(line)
        version = Version(fields["token"], fields["base"], fields["value"])
        is_ours = _is_possible(version) and encode(run_id, version) == data
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    return version if is_ours else None


def _is_possible(version: Version) -> bool:
    """Return whether a function can have written a version: stores may send anything."""
    tokens = (version.token,) if version.base is None else (version.token, version.base)
    value = version.value
    return all(map(_TOKEN.fullmatch, tokens)) and type(value) is int and 0 < value < _MOST


def foreign(data: bytes) -> str:
    """Return the version that represents bytes not written by any function."""
    return FOREIGN + _digest(data).decode()


def launch_of(token: str) -> tuple[int, int] | None:
    """Return index and launch of the function that a token belongs to; None for other texts."""
    match = _TOKEN.fullmatch(token)
    return (int(match[1]), int(match[2])) if match else None


def is_of_key(key: str, data: bytes) -> bool:
    """Return whether bytes, complete or truncated, belong to the run that a key names."""
    match, begins = _KEY.fullmatch(key), _BEGINS.match(data)
    # A prefix without a trailing slash is directly followed by the run id.
    return bool(match and begins and match[1].encode().endswith(begins[1]))


def _digest(line: bytes) -> bytes:
    import hashlib

    return hashlib.blake2b(line, digest_size=8).hexdigest().encode()
