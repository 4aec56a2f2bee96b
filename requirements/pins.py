"""What the files of pinned requirements pin, and what is decided about it in ``policy.toml``."""

import re
import tomllib
from pathlib import Path
from typing import Final

import msgspec
from packaging.utils import canonicalize_name

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
FEATURES: Final = ROOT / "serverless_bench" / "features"
_PIN: Final = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A package whose licence asks for more than a notice, and why it may be installed."""

    licence: str
    why: str


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``policy.toml``."""

    allowed: frozenset[str]
    """SPDX identifiers of licences that ask for no more than a notice."""
    spellings: dict[str, str]
    """Identifiers of SPDX by what packages write in place of them."""
    stated: dict[str, str]
    """Licences of packages whose metadata do not say them clearly."""
    accepted: dict[str, Accepted]
    go_modules: dict[str, str]
    """Go's names of programs by the wheels that hold them."""
    advisories: dict[str, str]
    """Why advisories do not reach us, by their identifiers."""


def policy() -> Policy:
    """Return what is decided about licences and advisories."""
    text = (HERE / "policy.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Policy)


def locks() -> dict[str, Path]:
    """Return the files that pin, by what they are for."""
    ours = {path.stem: path for path in sorted(HERE.glob("*.txt"))}
    named = ((path, path.relative_to(FEATURES).parts[0]) for path in FEATURES.rglob("*.txt"))
    of_features = {
        path.stem if path.stem.isalpha() else f"{feature} {path.stem}": path
        for path, feature in sorted(named)
        if pins(path)
    }
    return ours | of_features


def pins(lock: Path) -> frozenset[tuple[str, str]]:
    """Return the packages that a file pins, by normalised name, and their versions.

    There may be several of one package, for several Pythons.
    """
    found = _PIN.findall(lock.read_text(encoding="utf-8"))
    return frozenset((str(canonicalize_name(name)), version) for name, version in found)
