"""Escaping of external text: one function per output medium.

Keys, names, endpoints, errors of stores and paths may come from other people. On a terminal an
escape sequence moves the cursor, renames the window or hides earlier output; U+202E reverses the
order of letters; in Markdown and HTML a text becomes a table, a link or a script; in a spreadsheet
a cell becomes a formula. Data for programs, JSON in particular, is not changed.
"""

import os
import re
import sys
from collections.abc import Iterable
from typing import Final, TextIO

_INLINE: Final = re.compile(
    r"""
    [\\`*|]                             # code, emphasis, table cells, and the escape character
    | <(?=[A-Za-z/!?])                  # HTML and automatic links
    | &(?=\#?\w+;)                      # entities
    | \](?=[(\[:])                      # links and images
    | (?<![^\W_])_ | _(?![^\W_])        # emphasis; not within a word
    | ~(?=~)
    """,
    re.VERBOSE,
)
_BLOCK: Final = re.compile(r"^(?:#|>|[+-](?=\s)|[=-](?=[=-])|\d{1,9}(?=[.)]\s))")
"""Headings, quotes, rules and lists, which do not occur in tables."""


def is_colored(out: TextIO) -> bool:
    """Return whether to write colours: on a terminal, unless NO_COLOR or TERM=dumb is set."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns_of(out: TextIO) -> int:
    """Return the columns of a terminal; a file has no limit."""
    if not out.isatty():
        return sys.maxsize
    import shutil

    return shutil.get_terminal_size().columns


def for_terminal(text: str) -> str:
    r"""Return a line of text without characters that control a terminal.

    Unprintable characters are written as in Python: control characters, line ends, marks that
    change the direction of text, halves of surrogate pairs.

    Examples
    --------
    >>> for_terminal("a key\x1b[2J \u202e")
    'a key\\x1b[2J \\u202e'
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def for_markdown(text: str) -> str:
    r"""Return a paragraph of Markdown that shows a line of text unchanged.

    Examples
    --------
    >>> print(for_markdown("- <img src=x> `c` snake_case"))
    \- \<img src=x> \`c\` snake_case
    """
    return _BLOCK.sub(_backslashed, _inline(text))


def for_markdown_row(cells: Iterable[str]) -> str:
    r"""Return a row of a table in Markdown, with cells that show the texts unchanged.

    Examples
    --------
    >>> print(for_markdown_row(["a|b", "-"]))
    | a\|b | - |
    """
    return f"| {' | '.join(map(_inline, cells))} |"


def for_html(text: str) -> str:
    """Return HTML that shows a line of text unchanged."""
    from html import escape

    return escape(for_terminal(text))


def for_json(text: str) -> str:
    r"""Return an equivalent JSON document that is safe to show on a terminal.

    Examples
    --------
    >>> print(for_json('{"key":"\u202e\x9b"}'))
    {"key":"\u202e\u009b"}
    """
    if text.isprintable():
        return text
    # JSON texts cannot contain characters below U+0020; line ends between values are kept.
    return "".join(c if c.isprintable() or c < " " else _json_escaped(c) for c in text)


def _inline(text: str) -> str:
    return _INLINE.sub(r"\\\g<0>", for_terminal(text))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode()


def _json_escaped(char: str) -> str:
    data = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))


def _backslashed(match: re.Match[str]) -> str:
    # The number of a list item needs the backslash before the dot.
    return f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}"
