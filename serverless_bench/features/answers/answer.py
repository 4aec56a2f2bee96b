"""The answer of a series of runs, kept beside its runs: as data, and as the text that was shown."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from serverless_bench.base.errors import ArchiveError
from serverless_bench.rundir.files import failing, open_file, replacing, write_all

ANSWER: Final = "result.json"
"""File in the directory of a series."""
_MOST_BYTES: Final = 16 << 20
_Line = Annotated[str, msgspec.Meta(max_length=10_000)]
_Lines = Annotated[tuple[_Line, ...], msgspec.Meta(max_length=10_000)]


_Name = Annotated[str, msgspec.Meta(max_length=200)]
_Group = Annotated[str, msgspec.Meta(max_length=30)]


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A value in a drawing, with an interval if known."""

    at: float | _Name
    """Place of the value: a number, or a name."""
    value: float
    low: float | None = None
    high: float | None = None
    group: _Group = ""
    """Name in the legend, by which values are coloured."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """A line in a drawing."""

    group: _Group
    points: Annotated[tuple[tuple[float, float], ...], msgspec.Meta(max_length=10_000)]
    """Places and values."""


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """A value in a heat map."""

    row: _Name
    at: _Name
    """Name of the column."""
    value: float


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """Data of a chart of an answer."""

    title: _Name
    says: Annotated[str, msgspec.Meta(max_length=500)]
    """Description in a sentence or two."""
    at: _Name
    """Title of the axis of places."""
    value: _Name
    """Title of the axis of values."""
    marks: Annotated[tuple[Mark, ...], msgspec.Meta(max_length=10_000)] = ()
    curves: Annotated[tuple[Curve, ...], msgspec.Meta(max_length=20)] = ()
    limits: Annotated[tuple[float, ...], msgspec.Meta(max_length=20)] = ()
    """Values marked by a dashed line."""
    tiles: Annotated[tuple[Tile, ...], msgspec.Meta(max_length=10_000)] = ()
    """Values of a heat map, in place of marks."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a series."""

    command: Annotated[str, msgspec.Meta(max_length=20)]
    """Command that made the series."""
    headline: Annotated[str, msgspec.Meta(max_length=500)]
    """The answer in a few words, for a list."""
    text: _Lines
    markdown: _Lines
    result: dict[str, Any] | list[Any]
    """JSON document of the command."""
    drawings: Annotated[tuple[Drawing, ...], msgspec.Meta(max_length=20)] = ()


def save_answer(
    root: Path,
    *,
    command: str,
    headline: str,
    text: Iterable[str],
    markdown: Iterable[str],
    result: Any,
    drawings: Sequence[Drawing] = (),
) -> None:
    """Write the answer of a series to its directory.

    Raises
    ------
    ArchiveError
        If it cannot be written.
    """
    import orjson

    # It turns infinity into null, and takes numbers of NumPy.
    document = {
        "command": command,
        "headline": headline,
        "text": [*text],
        "markdown": [*markdown],
        "result": result,
        "drawings": msgspec.to_builtins(drawings),
    }
    data = orjson.dumps(document, option=orjson.OPT_SERIALIZE_NUMPY)
    with failing(f"cannot write {root / ANSWER}"), replacing(root / ANSWER) as file:
        write_all(file, data)


def load_answer(root: Path) -> Answer | None:
    """Return the answer of a series; None without one.

    Raises
    ------
    ArchiveError
        If it is damaged.
    """
    path = root / ANSWER
    if not path.is_file():
        return None
    with open_file(path) as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ArchiveError(f"{path} has more than {_MOST_BYTES >> 20} MiB")
    try:
        return msgspec.json.decode(data, type=Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ArchiveError(f"{path} is damaged: {exc}") from exc
