"""Foreign text is shown without effects on the terminal or page."""

import json

from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.escaping import (
    for_html,
    for_json,
    for_markdown,
    for_markdown_row,
    for_terminal,
)
from tests.tables import each_row

OBEYED = ["\x1b]0;owned\x07", "\x1b[2J", "\r", "\n", "\x00", "\x9b", "\u202e", "\u2066", "\u2028"]


@each_row("text", OBEYED)
def test_text_has_no_effect_on_a_terminal(text: str) -> None:
    assert for_terminal(f"a{text}b").isprintable()
    assert for_markdown(f"a{text}b").isprintable()
    assert for_html(f"a{text}b").isprintable()


def test_words_of_any_language_are_shown_as_they_are() -> None:
    assert for_terminal("größe-測試 😀") == "größe-測試 😀"


def test_a_row_of_markdown_has_its_cells_and_no_others() -> None:
    row = for_markdown_row(["a|b", "<img src=x>", "`c`", "[d](e)", "-", "p < 0.05", "snake_case"])
    assert row == r"| a\|b | \<img src=x> | \`c\` | [d\](e) | - | p < 0.05 | snake_case |"


@each_row(
    ("text", "shown"),
    [("# a", r"\# a"), ("1. a", r"1\. a"), ("- a", r"\- a"), ("> a", r"\> a"), ("2**3", r"2\*\*3")],
)
def test_a_paragraph_of_markdown_is_one(text: str, shown: str) -> None:
    assert for_markdown(text) == shown


def test_html_is_text() -> None:
    assert for_html("<script>'") == "&lt;script&gt;&#x27;"


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner, max_size=3)))
def test_json_means_the_same(value: object) -> None:
    shown = for_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert shown.isprintable()
