"""What comes from elsewhere, as each medium shows it: one function per medium.

Keys, names, endpoints, errors of stores and paths may be somebody else's words. On a
terminal an escape moves the cursor, renames the window or hides what was printed; U+202E
turns the order of letters round; in Markdown and HTML a text becomes a table, a link or a
script; in a spreadsheet a cell becomes a formula. Data for programs, JSON above all, stay
what they are.
"""

import re
from collections.abc import Iterable
from typing import Final, TypeVar

T = TypeVar("T")

_INLINE: Final = re.compile(
    r"""
    [\\`*|]                             # code, emphasis, table cells, and what escapes them
    | <(?=[A-Za-z/!?])                  # HTML and automatic links
    | &(?=\#?\w+;)                      # entities
    | \](?=[(\[:])                      # links and images
    | (?<![^\W_])_ | _(?![^\W_])        # emphasis; not within a word
    | ~(?=~)
    """,
    re.VERBOSE,
)
_BLOCK: Final = re.compile(r"^(?:#|>|[+-](?=\s)|[=-](?=[=-])|\d{1,9}(?=[.)]\s))")
"""Headings, quotes, rules and lists, which are in no table."""
_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a spreadsheet takes for the begin of a formula (OWASP, "CSV Injection"), with the full
widths of the same; tabs and line ends are escaped before."""


def for_terminal(text: str) -> str:
    r"""Return a line of text without anything that a terminal would obey.

    What cannot be printed is written as Python writes it: control characters, line ends,
    marks that change the direction of text, halves of surrogate pairs.

    Examples
    --------
    >>> for_terminal("a key\x1b[2J \u202e")
    'a key\\x1b[2J \\u202e'
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def for_markdown(text: str) -> str:
    r"""Return a paragraph of Markdown that shows a line of text as it is.

    Examples
    --------
    >>> print(for_markdown("- <img src=x> `c` snake_case"))
    \- \<img src=x> \`c\` snake_case
    """
    return _BLOCK.sub(_backslashed, _inline(text))


def for_markdown_row(cells: Iterable[str]) -> str:
    r"""Return a row of a table in Markdown, with cells that show what they are.

    Examples
    --------
    >>> print(for_markdown_row(["a|b", "-"]))
    | a\|b | - |
    """
    return f"| {' | '.join(map(_inline, cells))} |"


def for_html(text: str) -> str:
    """Return a line of text that HTML shows as it is."""
    from html import escape  # noqa: PLC0415 - commands that write HTML are few

    return escape(for_terminal(text))


def for_cell(value: T) -> T | str:
    """Return a cell of a CSV table that no spreadsheet takes for a formula; numbers stay numbers.

    Examples
    --------
    >>> for_cell("=HYPERLINK(1)"), for_cell(-1.5), for_cell("a-b")
    ("'=HYPERLINK(1)", -1.5, 'a-b')
    """
    if not isinstance(value, str):
        return value
    text = for_terminal(value)
    # Some spreadsheets leave out blanks that a cell begins with.
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def for_json(text: str) -> str:
    r"""Return a JSON document that means the same, and that a terminal only shows.

    Examples
    --------
    >>> print(for_json('{"key":"\u202e\x9b"}'))
    {"key":"\u202e\u009b"}
    """
    if text.isprintable():
        return text
    # Below U+0020 nothing can stand in a text of JSON, and line ends between values stay.
    return "".join(one if one.isprintable() or one < " " else _json_escaped(one) for one in text)


def for_toml(value: object) -> str:
    """Return a text, or a list of texts, as TOML writes it with characters that can be printed."""
    import json  # noqa: PLC0415 - as above

    # All else in JSON is TOML.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else _toml_escaped(one) for one in text)


def _inline(text: str) -> str:
    return _INLINE.sub(r"\\\g<0>", for_terminal(text))


def _escaped(one: str) -> str:
    return one.encode("unicode_escape", "surrogatepass").decode()


def _toml_escaped(one: str) -> str:
    # TOML has no halves of surrogate pairs.
    return "\\ufffd" if "\ud800" <= one <= "\udfff" else f"\\U{ord(one):08x}"


def _json_escaped(one: str) -> str:
    data = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def _backslashed(found: re.Match[str]) -> str:
    # Of a list's number it is the dot that makes it one.
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"
