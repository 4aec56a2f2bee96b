"""Undo the repair of each finding in a scratch copy, and check that its test fails with it.

    make findings                               # every one
    make findings FINDINGS="'figures F9' use"   # those whose names begin so

``findings.toml`` has a test for each finding of an audit, the reversal of its repair as
replacements of text in definitions of the package, and the line with which the test fails then; or
the reason why no test can show it. That all entries still match is checked first; CI checks
neither, so that code can be moved and renamed without them.
"""

import ast
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from tests.house.measures import NAME
from tests.house.scratch import Scratch, scratch_copy
from tests.house.symbols import full_test_id, span_of

_NUMBER: Final = re.compile(r"\d+(\.\d+)?(e[-+]?\d+)?")
_FAILED: Final = 1
"""Exit code of pytest if tests were run, and one failed."""
_PYTEST: Final = ("-m", "pytest", "-vv", "--tb=short", "-p", "no:cacheprovider", "-m", "")


class Undo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text of the package, and the text before the repair."""

    of: str
    """End of the name of the definition that has it, or of the path of a file of data."""
    old: str
    new: str


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding that is mended."""

    name: str
    """Its document and number; some numbers have several findings."""
    wrong: str
    test: str
    """Its name, after that of its file if others have the same name."""
    fails: str
    """Line of pytest with the wrong figure or word, or its telling part; numbers may be others."""
    undo: tuple[Undo, ...]


class Register(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All numbered findings."""

    numbered: Mapping[str, tuple[str, ...]]
    """Numbers by document."""
    not_shown: Mapping[str, str]
    """Reasons why a finding cannot be shown here, by its name."""
    finding: tuple[Finding, ...]


def register() -> Register:
    """Return the contents of findings.toml."""
    text = Path(__file__).with_name("findings.toml").read_bytes()
    return msgspec.toml.decode(text, type=Register)


@contextmanager
def undone(scratch: Scratch, finding: Finding) -> Iterator[set[Path]]:
    """Undo the mending of a finding for a while; yield the files that it changes.

    Raises
    ------
    LookupError
        If a text to replace is not there exactly once.
    """
    texts: dict[Path, str] = {}
    try:
        for undo in finding.undo:
            place = span_of(undo.old, undo.of, scratch.root / NAME)
            texts.setdefault(place.path, place.path.read_text("utf-8"))
            place.replace(undo.new)
        yield {*texts}
    finally:
        for path, text in texts.items():
            path.write_text(text, "utf-8")


def mismatch(scratch: Scratch, finding: Finding) -> str:
    """Return why a finding cannot be tried again, or nothing."""
    try:
        full_test_id(finding.test, scratch.root)
        with undone(scratch, finding) as changed:
            for path in changed:
                if path.suffix == ".py":
                    ast.parse(path.read_text("utf-8"))
    except (LookupError, SyntaxError) as exc:
        return f"{finding.name}, {finding.wrong!r}: {exc}"
    return ""


def failing_line(scratch: Scratch, finding: Finding) -> str:
    """Return the line with which the test fails without the mending.

    Raises
    ------
    AssertionError
        If it passes, or fails with another line.
    """
    with undone(scratch, finding):
        test = full_test_id(finding.test, scratch.root)
        output = scratch.run(*_PYTEST, test, code=_FAILED)
    return telling_line(output, finding.fails)


def telling_line(output: str, expected: str) -> str:
    """Return the line of pytest's errors that has a text; its numbers may be others.

    Raises
    ------
    AssertionError
        If there is none.
    """
    errors = [line[1:].strip() for line in output.splitlines() if line.startswith("E ")]
    expected = _NUMBER.sub("0", expected)
    lines = [line for line in errors if expected in _NUMBER.sub("0", line)]
    assert lines, "\n".join(["it fails otherwise:", *errors])
    return lines[0]


def main(beginnings: Sequence[str]) -> int:
    """Try the findings whose names begin so; return 1 if a test did not fail."""
    asked = register()
    tried = [one for one in asked.finding if one.name.startswith(tuple(beginnings or [""]))]
    if not tried:
        sys.exit(f"no finding begins with {' or '.join(map(repr, beginnings))}")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        scratch = scratch_copy(Path(folder) / "copy")
        if wrong := [why for one in tried if (why := mismatch(scratch, one))]:
            sys.exit("\n".join(["tests/verdicts/findings.toml does not match:", *wrong]))
        tests = {full_test_id(finding.test, scratch.root) for finding in tried}
        scratch.run(*_PYTEST, *sorted(tests))
        for finding in tried:
            try:
                words = failing_line(scratch, finding)
            except AssertionError as exc:
                failed += 1
                words = f"NOT NOTICED: {exc}"
            sys.stdout.write(f"{finding.name}: {words}\n")
            sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
