"""Mutation tests: small faults are planted in named functions, one at a time.

    make mutants                          # a sample of each area, about half an hour
    make mutants MUTANTS="--all"          # every mutant
    make mutants MUTANTS="--seed 7 --sample 50 --area meter"

``mutants.toml`` has the functions and the equivalent mutants (with the reason); that all of them
are there is checked first. mutmut makes the mutants and runs the tests that reach each of them, in
process. The exit code is 1 if fewer than four fifths of an area's mutants are found.
"""

import argparse
import contextlib
import fnmatch
import json
import random
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mutmut.mutation.diff_apply import find_mutant, get_diff_for_mutant

from tests.house.measures import PACKAGE
from tests.house.symbols import full_name, spans

ROOT: Final = Path(__file__).parents[1]
MUTANTS: Final = ROOT / "mutants"
LIST: Final = ROOT / "tests" / "mutants.toml"
LEAST: Final = 0.8
_SURVIVED: Final = {0: "survived", 33: "no test reaches it", 5: "no test reaches it"}
"""Exit codes of tests that did not find a mutant; most others, time-outs too, mean that they did.
"""
_NOT_RUN: Final = {4, 255}
"""Exit codes of pytest for an unknown test, and of mutmut for a mutant that was not tried."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """Results for the mutants of one area."""

    area: str
    made: int
    equivalent: int
    survivors: Sequence[tuple[str, str]]
    """Names, and why they are alive."""

    @property
    def killed(self) -> float:
        """Share of the mutants that change something and were found."""
        counted = self.made - self.equivalent
        return 1.0 if not counted else 1 - len(self.survivors) / counted


def mutmut(*arguments: str) -> str:
    """Run mutmut and return its output."""
    command = [str(Path(sys.executable).with_name("mutmut")), *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in {0, 1}:
        raise SystemExit(f"mutmut ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def mutants_of(patterns: Sequence[str]) -> list[str]:
    """Return the names of the mutants of some functions, as ``MODULE.FUNCTION`` patterns."""
    return sorted(name for name in _exit_codes() if _is_of(name, patterns))


def function_of(mutant: str) -> str:
    """Return the function that a mutant is of, as ``MODULE.CLASS.FUNCTION``."""
    name, _, _ = mutant.rpartition("__mutmut_")
    module, _, function = name.rpartition(".x")
    return f"{module}.{function.removeprefix('_').strip('ǁ').replace('ǁ', '.')}"


def change_of(mutant: str) -> str:
    """Return a mutant's change, as ``OLD => NEW``, without indentation."""
    with contextlib.chdir(ROOT):
        lines = get_diff_for_mutant(mutant, path=find_mutant(mutant).path).splitlines()
    changed = [line for line in lines if not line.startswith(("+++", "---"))]
    old, new = ([x[1:].strip() for x in changed if x.startswith(sign)] for sign in "-+")
    return f"{' '.join(old)} => {' '.join(new)}".strip()


def _full(pattern: str) -> str:
    name = pattern.removesuffix(".*")
    return full_name(name) + pattern[len(name) :]


def _is_of(mutant: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(function_of(mutant), pattern) for pattern in patterns)


def _exit_codes() -> dict[str, int | None]:
    codes: dict[str, int | None] = {}
    for path in MUTANTS.rglob("*.py.meta"):
        codes |= json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
    return codes


def _is_equivalent(mutant: str, equivalent: Sequence[Mapping[str, Any]]) -> bool:
    name = f".{function_of(mutant)}"
    changes = [
        change
        for known in equivalent
        if name.endswith(f".{known['function']}")
        for change in known["changes"]
    ]
    return bool(changes) and any(is_change(change, change_of(mutant)) for change in changes)


def is_change(change: str, of_lines: str) -> bool:
    """Tell whether a change of whole lines is this one of a part of them; blanks do not matter."""
    (old, new), (before, after) = _sides(change), _sides(of_lines)
    places = [match.start() for match in re.finditer(re.escape(old), before)]
    return any(before[:at] + new + before[at + len(old) :] == after for at in places)


def _sides(change: str) -> tuple[str, str]:
    old, _, new = change.partition(" => ")
    return "".join(old.split()), "".join(new.split())


def mismatches(
    asked: Mapping[str, Any], config: Mapping[str, Any], package: Path = PACKAGE
) -> Iterator[str]:
    """Yield why entries of mutants.toml, or of mutmut's configuration, match nothing."""
    mutated = config["only_mutate"]
    paths = [*mutated, *config["pytest_add_cli_args_test_selection"]]
    yield from (f"there is no {path}" for path in paths if not (package.parent / path).is_file())
    modules = [path.removesuffix(".py").replace("/", ".") for path in mutated]
    for pattern in [name for area in asked["areas"].values() for name in area]:
        try:
            name = full_name(pattern.removesuffix(".*"), package)
        except LookupError as exc:
            yield str(exc)
        else:
            if not any(f"{name}.".startswith(f"{module}.") for module in modules):
                yield f"only_mutate in pyproject.toml lacks the file of {pattern}"
    for known in asked["equivalent"]:
        sources = ["".join(span.text.split()) for span in spans(known["function"], package)]
        if len(sources) != 1:
            yield f"{len(sources)} functions are called {known['function']}"
            continue
        lines = [change for change in known["changes"] if _sides(change)[0] not in sources[0]]
        yield from (f"{known['function']} has nothing to change as in {line!r}" for line in lines)


def judge(area: str, names: Sequence[str], equivalent: Sequence[Mapping[str, Any]]) -> Found:
    """Return the results for the tried mutants of an area."""
    codes = _exit_codes()
    if untried := [name for name in names if codes[name] is None or codes[name] in _NOT_RUN]:
        raise SystemExit(f"{len(untried)} mutants were not tried, {untried[0]} for one")
    alive = [(name, _SURVIVED[code]) for name in names if (code := codes[name]) in _SURVIVED]
    same = {name for name, _ in alive if _is_equivalent(name, equivalent)}
    survivors = [(name, why) for name, why in alive if name not in same]
    return Found(area=area, made=len(names), equivalent=len(same), survivors=survivors)


def report(found: Found) -> Iterator[str]:
    """Yield the lines about an area."""
    yield (
        f"{found.area}: {found.killed:.0%} of {found.made - found.equivalent} found,"
        f" {found.equivalent} equivalent"
    )
    reached = Counter(why for _, why in found.survivors)
    for why, count in reached.items():
        yield f"  {why}: {count}"
    for name, _ in found.survivors:
        yield f"  {function_of(name)}: {change_of(name)}"


def main() -> int:
    """Make mutants, try a sample of each area, and print the results."""
    parser = argparse.ArgumentParser(description="Would the tests notice?")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=120, help="mutants of each area")
    parser.add_argument("--all", action="store_true", help="every mutant")
    parser.add_argument("--area", action="append", help="only this area")
    options = parser.parse_args()
    asked = tomllib.loads(LIST.read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    if wrong := list(mismatches(asked, project["tool"]["mutmut"])):
        raise SystemExit("\n".join(["tests/mutants.toml or pyproject.toml is wrong:", *wrong]))
    areas = {n: p for n, p in asked["areas"].items() if n in (options.area or asked["areas"])}
    # Results of an earlier run do not apply to tests that have changed since.
    shutil.rmtree(MUTANTS, ignore_errors=True)
    # The mutants are made before the first is tried, so one function is enough.
    module, owner, method = full_name(asked["first"]).rsplit(".", 2)
    mutmut("run", f"{module}.xǁ{owner}ǁ{method}__mutmut_1")
    picked: dict[str, list[str]] = {}
    for area, patterns in areas.items():
        names = mutants_of([_full(pattern) for pattern in patterns])
        draw = random.Random(f"{options.seed}/{area}")
        wanted = len(names) if options.all else min(options.sample, len(names))
        picked[area] = draw.sample(names, wanted)
    mutmut("run", *[name for names in picked.values() for name in names])
    results = [judge(area, names, asked["equivalent"]) for area, names in picked.items()]
    for found in results:
        sys.stdout.write("\n".join(report(found)) + "\n")
    sys.stdout.write(f"seed {options.seed}; passed if every area has {LEAST:.0%} or more\n")
    return int(any(found.killed < LEAST for found in results))


if __name__ == "__main__":
    sys.exit(main())
