"""The answer of a series, kept in its directory."""

from pathlib import Path

import pytest

from serverless_bench.base.errors import ArchiveError
from serverless_bench.features.answers.answer import (
    ANSWER,
    Curve,
    Drawing,
    Mark,
    load_answer,
    save_answer,
)
from serverless_bench.features.answers.showing import answer_of, in_short

DRAWING = Drawing(
    title="t",
    says="one level",
    at="level",
    value="ms",
    marks=(Mark(at=1, value=2.0, low=1.5), Mark(at="name", value=3.0, group="g")),
    curves=(Curve(group="g", points=((1.0, 2.0),)),),
)


def kept(root: Path) -> Path:
    save_answer(
        root,
        command="limit",
        headline="7/s",
        text=["seven"],
        markdown=["**seven**"],
        result={"rate": float("inf")},
        drawings=[DRAWING],
    )
    return root


def test_an_answer_is_read_as_it_was_kept(tmp_path: Path) -> None:
    answer = load_answer(kept(tmp_path))
    assert answer is not None
    assert (answer.command, answer.headline) == ("limit", "7/s")
    assert (answer.text, answer.markdown) == (("seven",), ("**seven**",))
    assert answer.result == {"rate": None}
    assert answer.drawings == (DRAWING,)
    assert in_short(tmp_path) == {"command": "limit", "answer": "7/s"}


def test_a_series_without_an_answer_has_none(tmp_path: Path) -> None:
    assert load_answer(tmp_path) is None
    assert in_short(tmp_path) == {}
    assert answer_of("series", tmp_path) is None


def test_a_damaged_answer_is_an_error_but_not_in_a_list(tmp_path: Path) -> None:
    path = kept(tmp_path) / ANSWER
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ArchiveError, match=r"result\.json is damaged"):
        load_answer(tmp_path)
    assert in_short(tmp_path) == {}
