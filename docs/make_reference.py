"""Make the content of docs/reference.md from the docstrings of the public names."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import serverless_bench
from serverless_bench.features import PUBLIC

SETUP: Final = """\
from dataclasses import replace
from pathlib import Path

import serverless_bench as sbench

MIB = 1 << 20

with sbench.embedded_target() as target:
    writing = sbench.JobSpec(workload="write", target=target, number=4, size=MIB)
    written, again = sbench.run_job(writing), sbench.run_job(writing)
    reading = sbench.JobSpec(workload="read", target=target, number=4)
    read = sbench.run_job(reading, keys=written.keys())
run = written
Path("requests.csv").write_text("time,op,key,size\\n0,PUT,a,1000\\n0.5,GET,a,1000\\n")
"""
"""Variables that the examples use."""
_LOADS: Final = tuple(name for name, place in PUBLIC.items() if place.endswith(".load"))
_JOBS: Final = tuple(name for name, place in PUBLIC.items() if place == "python.jobs")
"""Functions of workloads; the settings that they share are those of ``write``."""
CHAPTERS: Final = {
    "Run a workload": (*_JOBS, "Result", "Durations", "load_run", "import_results"),
    "Say what to do": ("JobSpec", "Target", "Transfer", "Load", *_LOADS, "embedded_target"),
    "Do it": (
        *("plan", "JobPlan", "simulate", "run_job", "resume_job", "RunProgress"),
        "FunctionContext",
    ),
    "Look at a run": (*("Run", "summarize", "Summary", "timeline", "Timeline", "plot", "Picture"),),
    "Compare and check": ("compare", "RunComparison", "check", "CheckedRun"),
    "Run again and again": (
        *("ab", "scale", "ScaleFit", "limit", "Limit", "why", "Why"),
        *("history_add", "history_check", "history_check_interleaved", "HistoryCheck"),
    ),
    "Hand over and clean up": ("render", "export", "clean", "Cleaned"),
    "Errors": ("SbenchError", "CutShort"),
}
_TITLES: Final = ("Parameters", "Attributes", "Returns", "Raises")
_SECTION: Final = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_ENTRY: Final = re.compile(r"^(?=\S)", re.MULTILINE)
_FUNCTION: Final = re.compile(r"<function .*? at \w+>")

_HEAD: Final = """\
The examples go on from three small runs on the embedded store:

```python
{setup}```
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documented:
    """The docstring of a public name, in its parts."""

    name: str
    text: str
    """Text before the first section."""
    sections: dict[str, str]
    """Sections by title."""


def made() -> str:
    """Return the chapters as Markdown."""
    return "\n".join([_HEAD.format(setup=SETUP), *_chapters()])


def documented(name: str) -> Documented:
    """Return the docstring of a public name."""
    text, *rest = _SECTION.split(inspect.getdoc(getattr(serverless_bench, name)) or "")
    titles, bodies = rest[::2], rest[1::2]
    sections = {title: body.strip() for title, body in zip(titles, bodies, strict=True)}
    return Documented(name=name, text=text.strip(), sections=sections)


def entries(section: str) -> Iterator[tuple[str, str]]:
    """Yield names and meanings of a section like Parameters."""
    for entry in filter(None, _ENTRY.split(section)):
        name, _, meaning = entry.partition("\n")
        yield name, " ".join(inspect.cleandoc(meaning).split())


def _chapters() -> Iterator[str]:
    for title, names in CHAPTERS.items():
        # A removed feature has no public names.
        there = [name for name in names if name in serverless_bench.__all__]
        if there:
            yield f"## {title}\n"
        for name in there:
            yield from _lines(documented(name), getattr(serverless_bench, name))


def _lines(found: Documented, thing: object) -> Iterator[str]:
    yield f"### {found.name}\n"
    if not inspect.isclass(thing) and callable(thing):
        yield f"```text\n{_signature(found.name, thing)}\n```\n"
    is_other = found.name in _JOBS[1:]
    text = found.text.partition("\n\n")[0] if is_other else found.text
    yield f"{_markdown(text)}\n"
    if thing is serverless_bench.Summary:
        yield "Its fields are those of [the report](figures.md), and besides:\n"
    members = dict(entries(found.sections.get("Parameters", "")))
    if inspect.isclass(thing) and not members:
        members = _attributes(thing)
    if is_other:
        common = dict(entries(documented(_JOBS[0]).sections["Parameters"]))
        yield f"`{_JOBS[0]}` has the other parameters, too.\n"
        members = {name: text for name, text in members.items() if common.get(name) != text}
    for title in ("Parameters",) if is_other else _TITLES:
        named = members if title == "Parameters" else entries(found.sections.get(title, ""))
        rows = dict(named)
        if rows:
            yield f"| {title.lower()} | |\n| --- | --- |"
            yield from (f"| `{name}` | {_cell(text)} |" for name, text in rows.items())
            yield ""
    if inspect.isclass(thing):
        yield from _methods(thing)
    yield f"```pycon\n{found.sections.get('Examples', '')}\n```\n"


def _signature(name: str, thing: Callable[..., object]) -> str:
    """Return a call without the types, which the table below has in words."""
    found = inspect.signature(thing)
    parameters = [each.replace(annotation=each.empty) for each in found.parameters.values()]
    brief = found.replace(parameters=parameters, return_annotation=found.empty)
    return f"{name}{_FUNCTION.sub('...', str(brief))}"


def _attributes(thing: type) -> dict[str, str]:
    """Return the fields of a class with the text below each, if any."""
    tree = ast.parse(inspect.getsource(thing)).body[0]
    body = tree.body if isinstance(tree, ast.ClassDef) else []
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                found[name] = " ".join(meaning.split())
            case _:
                pass
    return found


def _methods(thing: type) -> Iterator[str]:
    public = [
        (name, inspect.getdoc(member))
        for name, member in vars(thing).items()
        if not name.startswith("_")
        and (inspect.isfunction(member) or isinstance(member, property | cached_property))
    ]
    if public:
        yield "| has | |\n| --- | --- |"
        for name, text in public:
            brackets = "()" if inspect.isfunction(vars(thing)[name]) else ""
            yield f"| `{name}{brackets}` | {_cell((text or '').partition(chr(10) * 2)[0])} |"
        yield ""


def _cell(text: str) -> str:
    return " ".join(_markdown(text).split()).replace("|", "\\|")


def _markdown(text: str) -> str:
    return text.replace("``", "`")
