"""Commands and answers of series: keep one, find it, and show it again."""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from serverless_bench.base.errors import SbenchError, UsageError
from serverless_bench.base.plugins import TOOLS
from serverless_bench.cli.flags.options import PAGE
from serverless_bench.cli.output.terminal import complain, show, width
from serverless_bench.rundir.listing import HEADER

if TYPE_CHECKING:
    from serverless_bench.features.answers.answer import Answer, Drawing


def keep_and_show(
    root: Path,
    style: str,
    lines: Callable[[str, int], Iterable[str]],
    **parts: Any,
) -> None:
    """Keep the answer of a series as ``keep`` does, and print it as text, markdown or json."""
    keep(root, lines, **parts)
    show(style, parts["document"], () if style == "json" else lines(style, width()))


def keep(
    root: Path,
    lines: Callable[[str, int], Iterable[str]],
    *,
    command: str,
    headline: str,
    document: Any,
    drawings: "Sequence[Drawing]" = (),
) -> None:
    """Keep the answer of a series in the directory of its runs; complain if that fails.

    Parameters
    ----------
    root
        Directory of the series.
    lines
        Returns the lines of a style for a width.
    command, headline, document, drawings
        Same as ``command``, ``headline``, ``result`` and ``drawings`` of ``Answer``.
    """
    from serverless_bench.features.answers.answer import save_answer

    text, markdown = (lines(other, sys.maxsize) for other in ("text", "markdown"))
    try:
        save_answer(
            root,
            command=command,
            headline=headline,
            text=text,
            markdown=markdown,
            result=document,
            drawings=drawings,
        )
    except SbenchError as exc:
        complain(exc)


def answer_of(name: str, run_dir: Path) -> "tuple[Path, Answer] | None":
    """Return a series by name or directory, with the answer; None if there is none."""
    from serverless_bench.features.answers.answer import load_answer

    paths = [path for path in (Path(name), run_dir / name) if path.is_dir()]
    if any((path / HEADER).is_file() for path in paths):
        return None
    found = ((path, answer) for path in paths if (answer := load_answer(path)) is not None)
    return next(found, None)


def show_again(name: str, run_dir: Path, style: str) -> bool:
    """Show the result of a series in a format; return False if none is kept.

    Raises
    ------
    UsageError
        If it cannot be shown in this format.
    """
    if (series := answer_of(name, run_dir)) is None:
        return False
    show_answer(series[1], name, style)
    return True


def show_answer(answer: "Answer", name: str, style: str) -> None:
    """Print an answer as text, markdown, json or html.

    Raises
    ------
    UsageError
        If it cannot be shown in this format.
    """
    if style == PAGE:
        click.echo(TOOLS.load("answer-page")(answer, name), nl=False)
    else:
        show(style, answer.result, _lines(answer, name, style))


def in_short(path: Path) -> Mapping[str, str]:
    """Return the command of a series and its headline, as fields of a row; empty without them."""
    from serverless_bench.features.answers.answer import load_answer

    with suppress(SbenchError):
        if answer := load_answer(path):
            return {"command": answer.command, "answer": answer.headline}
    return {}


def _lines(answer: "Answer", name: str, style: str) -> tuple[str, ...]:
    """Return the lines of an answer.

    Raises
    ------
    UsageError
        If there are none in this style.
    """
    styles = {"text": answer.text, "full": answer.text, "markdown": answer.markdown, "json": ()}
    if style not in styles:
        hint = f"it is shown as {', '.join((*styles, PAGE))}"
        raise UsageError(f"{name} is a series of runs, without a {style} report", hint=hint)
    return styles[style]
