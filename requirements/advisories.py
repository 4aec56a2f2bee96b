"""Look for what is pinned in the advisories that OSV, the Open Source Vulnerabilities, has.

make audit
python -m requirements.advisories PyPI.zip Go.zip

OSV publishes all advisories about an ecosystem as one archive. It is fetched whole and
searched here: nobody learns what is pinned, and a machine without a network takes a copy.
"""

import argparse
import shutil
import sys
import urllib.request
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Final

import msgspec
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from requirements.pins import ROOT, Policy, locks, pins, policy

SOURCE: Final = "https://osv-vulnerabilities.storage.googleapis.com/{}/all.zip"
ECOSYSTEMS: Final = ("PyPI", "Go")
KEPT: Final = ROOT / ".venv" / "advisories"
_TIMEOUT_S: Final = 60
_LOWEST: Final = Version("0.dev0")

Pinned = Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
"""By ecosystem and name: versions, and what each is pinned for."""


class Event(msgspec.Struct, frozen=True):
    """Where a range of versions begins or ends."""

    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None


class Range(msgspec.Struct, frozen=True):
    """Ranges of versions, or of commits."""

    type: str
    events: tuple[Event, ...] = ()


class Package(msgspec.Struct, frozen=True):
    """What an advisory is about."""

    ecosystem: str
    name: str


class Affected(msgspec.Struct, frozen=True):
    """Which versions of a package an advisory is about."""

    package: Package | None = None
    ranges: tuple[Range, ...] = ()
    versions: tuple[str, ...] = ()


class Advisory(msgspec.Struct, frozen=True):
    """What is read of an advisory in the format of OSV."""

    id: str
    modified: str
    aliases: tuple[str, ...] = ()
    summary: str = ""
    withdrawn: str | None = None
    affected: tuple[Affected, ...] = ()


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    made = argparse.ArgumentParser(description="Known vulnerabilities of what is pinned.")
    made.add_argument("data", nargs="*", type=Path, help="archives of OSV, in place of today's")
    return made


def main() -> int:
    """Return 0 if nothing is known, 1 if something is, 2 if not everything was looked for."""
    archives: list[Path] = parser().parse_args().data
    could_look = bool(archives) or fetch(KEPT)
    rules = policy()
    ours, newest = pinned(rules), ""
    found: list[str] = []
    looked_in: set[str] = set()
    for archive in archives or sorted(KEPT.glob("*.zip")):
        try:
            for one in read(archive):
                newest = max(newest, one.modified)
                looked_in |= {part.package.ecosystem for part in one.affected if part.package}
                found += matches(one, ours, rules)
        except (OSError, zipfile.BadZipFile, zlib.error, msgspec.MsgspecError) as exc:
            print(f"{archive} is no archive of OSV's advisories: {exc}", file=sys.stderr)
            return 2
    print(*found, sep="\n", end="\n" if found else "")
    if newest:
        print(f"{len(found)} known, by advisories up to {newest}")
    missing = [one for one in ECOSYSTEMS if one not in looked_in]
    if missing or not could_look:
        what = f"advisories for {' and '.join(missing)}" if missing else "today's advisories"
        print(
            f"could not look for {what}: fetch the archives elsewhere, and"
            " `python -m requirements.advisories PyPI.zip Go.zip`",
            file=sys.stderr,
        )
        return 2
    return 1 if found else 0


def fetch(directory: Path) -> bool:
    """Fetch today's archives, and return whether that was possible; else older ones are kept."""
    directory.mkdir(exist_ok=True)
    for ecosystem in ECOSYSTEMS:
        part = directory / f"{ecosystem}.part"
        try:
            with (
                urllib.request.urlopen(  # noqa: S310 - SOURCE is https
                    SOURCE.format(ecosystem), timeout=_TIMEOUT_S
                ) as response,
                part.open("wb") as out,
            ):
                shutil.copyfileobj(response, out)
        except (OSError, HTTPException) as exc:
            print(f"no advisories for {ecosystem}: {exc}", file=sys.stderr)
            return False
        part.replace(directory / f"{ecosystem}.zip")
    return True


def read(archive: Path) -> Iterator[Advisory]:
    """Yield the advisories in an archive of OSV."""
    decoder = msgspec.json.Decoder(Advisory)
    with zipfile.ZipFile(archive) as files:
        for name in files.namelist():
            yield decoder.decode(files.read(name))


def pinned(rules: Policy) -> Pinned:
    """Return everything that is pinned; programs in Go by the names that Go has for them."""
    found: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for lock, path in locks().items():
        for name, version in sorted(pins(path)):
            found["PyPI", name][version].append(lock)
            if name in rules.go_modules:
                found["Go", rules.go_modules[name]][version].append(lock)
    return found


def matches(advisory: Advisory, ours: Pinned, rules: Policy) -> Iterator[str]:
    """Yield a line for every version pinned here that an advisory is about."""
    if advisory.withdrawn or not rules.advisories.keys().isdisjoint(_names(advisory)):
        return
    for one in advisory.affected:
        if one.package is None:
            continue
        name = one.package.name
        if one.package.ecosystem == "PyPI":
            name = canonicalize_name(name)
        for version, places in ours.get((one.package.ecosystem, name), {}).items():
            if is_affected(version, one):
                fixed = [
                    event.fixed
                    for part in _of_versions(one)
                    for event in part.events
                    if event.fixed
                ]
                yield (
                    f"{name} {version} ({', '.join(places)}): {', '.join(_names(advisory))}:"
                    f" {advisory.summary or 'no summary'}; fixed in {', '.join(fixed) or 'none'}"
                )


def is_affected(version: str, affected: Affected) -> bool:
    """Return whether an advisory is about a version."""
    return version in affected.versions or any(
        _is_within(_order(version), one.events) for one in _of_versions(affected)
    )


def _is_within(version: Version | None, events: Sequence[Event]) -> bool:
    """Return whether a version is in a range, by the rule of OSV; in doubt it is."""
    within = False
    marks = [(_order(one.introduced or one.fixed or one.last_affected), one) for one in events]
    for at, event in sorted(marks, key=lambda mark: mark[0] or _LOWEST):
        if event.introduced is not None:
            within = within or version is None or at is None or version >= at
        elif version is None or at is None:
            continue
        elif event.fixed is not None:
            within = within and version < at
        else:
            within = within and version <= at
    return within


def _order(version: str | None) -> Version | None:
    """Return what a version is compared by: Go's carry a date and a commit behind a dash."""
    for text in (version or "", (version or "").partition("-")[0]):
        try:
            return _LOWEST if text == "0" else Version(text)
        except InvalidVersion:
            continue
    return None


def _of_versions(affected: Affected) -> list[Range]:
    """Return the ranges of versions; the others are of commits."""
    return [one for one in affected.ranges if one.type in {"ECOSYSTEM", "SEMVER"}]


def _names(advisory: Advisory) -> list[str]:
    return [advisory.id, *advisory.aliases]


if __name__ == "__main__":
    sys.exit(main())
