"""Check the licences of everything that is pinned, and write them to docs/licences.csv.

make licences
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageMetadata, distributions
from typing import Final

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.utils import canonicalize_name

from docs.tables import markdown, read_rows, write_rows
from requirements.pins import FEATURES, ROOT, Policy, locks, pins, policy

FILE: Final = ROOT / "docs" / "licences.csv"
_GROUP: Final = re.compile(r"\(([^()]*)\)")


def main() -> int:
    """Check, and write the file; return 1 if a licence is unknown or not allowed."""
    rules = policy()
    found = licences(environments(), rules)
    wrong = [*problems(found, rules), *uncovered(found)]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        return 1
    write_rows(FILE, [("package", "licence"), *found])
    print(f"{len({name for name, _ in found})} packages, {len(rules.accepted)} accepted by name")
    return 0


def environments() -> Iterator[str]:
    """Yield where packages are installed: .venv, .venv-sam and LocalStack's own."""
    homes = [ROOT / ".venv", ROOT / ".venv-sam"]
    if (FEATURES / "localstack").exists():
        from serverless_bench.features.localstack import server

        localstack = server.prepare(server.default_directory(), print)
        homes.append(localstack.python.parents[1])
    for home in homes:
        yield from map(str, home.glob("lib/python*/site-packages"))


def licences(paths: Iterable[str], rules: Policy) -> list[tuple[str, str]]:
    """Return packages and their licences, of what is pinned and installed in ``paths``, or stated.

    A licence is an expression of SPDX, and empty where nothing says it clearly. A package that is
    installed in two versions may have two.
    """
    pinned = {pin for lock in locks().values() for pin in pins(lock)}
    names = {name for name, _ in pinned}
    found = set()
    for one in distributions(path=list(paths)):
        name = str(canonicalize_name(one.metadata["Name"]))
        if (name, one.version) in pinned:
            found.add((name, licence_of(one.metadata, rules) or rules.stated.get(name, "")))
    absent = names - {name for name, _ in found}
    found.update((name, rules.stated[name]) for name in absent if name in rules.stated)
    return sorted(found)


def licence_of(metadata: PackageMetadata, rules: Policy) -> str:
    """Return the licence that a package's metadata state, or nothing where they are not clear."""
    lines = metadata.get_all("Classifier") or []
    classifiers = [line.split(" :: ")[-1] for line in lines if line.startswith("License :: ")]
    texts = [
        *(metadata.get_all("License-Expression") or []),
        *(metadata.get_all("License") or []),
        # Several may be a choice, or hold together.
        *(classifiers if len(classifiers) == 1 else []),
    ]
    for text in texts:
        try:
            return str(canonicalize_license_expression(rules.spellings.get(text, text)))
        except InvalidLicenseExpression:
            continue
    return ""


def problems(found: Iterable[tuple[str, str]], rules: Policy) -> Iterator[str]:
    """Yield which licences are not allowed, and which exceptions are none any more."""
    for name, licence in found:
        accepted = rules.accepted.get(name)
        if accepted is None and not is_allowed(licence, rules.allowed):
            yield (
                f"{name}: {licence or 'a licence that is not clear'} is not allowed;"
                " requirements/policy.toml has to say what it is, or why it may be installed"
            )
        elif accepted is not None and accepted.licence != licence:
            yield f"{name}: accepted as {accepted.licence}, and is {licence}"


def uncovered(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield what is pinned and neither installed nor stated."""
    known = {name for name, _ in found}
    for lock, path in locks().items():
        for name in sorted({name for name, _ in pins(path)} - known):
            yield f"{name} of {lock}: not installed here; state its licence in policy.toml"


def is_allowed(expression: str, allowed: frozenset[str]) -> bool:
    """Return whether an expression of SPDX leaves a choice that is allowed."""
    while group := _GROUP.search(expression):
        inner = "yes" if is_allowed(group[1], allowed) else "no"
        expression = f"{expression[: group.start()]}{inner}{expression[group.end() :]}"
    choices = [choice.split(" AND ") for choice in expression.split(" OR ")]
    return any(all(one == "yes" or one in allowed for one in choice) for choice in choices)


def table() -> str:
    """Return the tables of docs/licences.md: exceptions, and the others by licence."""
    accepted = policy().accepted
    by_licence: dict[str, list[str]] = defaultdict(list)
    for name, licence in read_rows(FILE)[1:]:
        if name not in accepted:
            by_licence[licence].append(name)
    most_first = sorted(by_licence.items(), key=lambda item: (-len(item[1]), item[0]))
    exceptions = (
        (name, one.licence, ", ".join(_places(name)), one.why)
        for name, one in sorted(accepted.items())
    )
    others = ((licence, str(len(names)), ", ".join(names)) for licence, names in most_first)
    return "\n".join(
        (
            markdown(
                [("package", "licence", "pinned for", "reason for the exception"), *exceptions]
            ),
            markdown([("licence", "packages", "names"), *others]),
        )
    )


def _places(name: str) -> Iterator[str]:
    for lock, path in locks().items():
        if any(name == one for one, _ in pins(path)):
            yield lock


if __name__ == "__main__":
    sys.exit(main())
