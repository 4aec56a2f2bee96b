"""Keys that all functions of a run write to, and what stands there.

Below ``PREFIX RUN/contend/`` are the registers, claims and logs of a run; a log is a
folder of manifests, numbered from 1. What is written there says who wrote it and which
version it was to replace::

    {"run_id":"...","token":"3.0.17","base":"1.0.9","value":42}
    8d5f0c7a91b3e264

The second line is a digest of the first. A token is given once in a run: index and launch
of the function, and a number. So the versions of a key can be put in a row afterwards.
"""

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

MAX_BYTES: Final = 1024
"""Of what stands at a shared key."""
FOREIGN: Final = "?"
"""How the version begins that stands for bytes that no function wrote."""
_MOST: Final = 1 << 62
_KEY: Final = re.compile(
    r"(?:.*/)?([^/]+)/contend/(?:register|claim|log)-[0-9]{8}(?:/[0-9]{8})?", re.DOTALL
)
_BEGINS: Final = re.compile(rb'\{"run_id":"([^"]+)","token":"')
_TOKEN: Final = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,12})")


class Pattern(StrEnum):
    """What the functions of a run contend for."""

    INCREMENT = "increment"
    """The next value of a register."""
    CLAIM = "claim"
    """A key that nobody has."""
    APPEND = "append"
    """The next manifest of a log."""


_NAMES: Final[Mapping[Pattern, str]] = {
    Pattern.INCREMENT: "register",
    Pattern.CLAIM: "claim",
    Pattern.APPEND: "log",
}


class Version(NamedTuple):
    """One state of a shared key."""

    token: str
    """Names the version."""
    base: str | None
    """Token of the version that it was to replace; None if the key was to be new."""
    value: int
    """Of a register how often it was incremented, of a manifest its number, of a claim 1."""


def shared_key(prefix: str, run_id: str, pattern: Pattern, number: int) -> str:
    """Return the key of a register, of a claim, or of a log."""
    return f"{prefix}{run_id}/contend/{_NAMES[pattern]}-{number:08}"


def manifest_key(log: str, number: int) -> str:
    """Return the key of a manifest of a log; the first has number 1."""
    return f"{log}/{number:08}"


def is_shared_key(key: str) -> bool:
    """Tell whether a key is one that the functions of a run share."""
    return _KEY.fullmatch(key) is not None


def encode(run_id: str, version: Version) -> bytes:
    """Return the bytes that stand for a version."""
    line = json.dumps({"run_id": run_id, **version._asdict()}, separators=(",", ":")).encode()
    return line + b"\n" + _digest(line) + b"\n"


def decode(run_id: str, data: bytes) -> Version | None:
    """Return the version that bytes stand for; None if no function of the run wrote them."""
    line, _, digest = data.partition(b"\n")
    if digest != _digest(line) + b"\n":
        return None
    try:
        found = json.loads(line)
        version = Version(found["token"], found["base"], found["value"])
        is_ours = _is_possible(version) and encode(run_id, version) == data
    except (KeyError, RecursionError, TypeError, ValueError):
        return None
    return version if is_ours else None


def _is_possible(version: Version) -> bool:
    """Tell whether a version can be of a function: a store may say anything."""
    tokens = (version.token,) if version.base is None else (version.token, version.base)
    value = version.value
    return all(map(_TOKEN.fullmatch, tokens)) and type(value) is int and 0 < value < _MOST


def foreign(data: bytes) -> str:
    """Return the version that stands for bytes that no function wrote."""
    return FOREIGN + _digest(data).decode()


def launch_of(token: str) -> tuple[int, int] | None:
    """Return index and launch of the function that a token belongs to; None if it is none."""
    match = _TOKEN.fullmatch(token)
    return (int(match[1]), int(match[2])) if match else None


def is_of_key(key: str, data: bytes) -> bool:
    """Tell whether bytes, whole or only their beginning, are of the run that a key names."""
    match, begins = _KEY.fullmatch(key), _BEGINS.match(data)
    # A prefix need not end in a slash: then it stands before the id of the run.
    return bool(match and begins and match[1].encode().endswith(begins[1]))


def _digest(line: bytes) -> bytes:
    import hashlib  # noqa: PLC0415 - with OpenSSL, for which help and reports need not wait

    return hashlib.blake2b(line, digest_size=8).hexdigest().encode()
