"""Combine style, text, charts and the chart library in a single HTML file.

A page consists of HTML elements. All other content is text, and is escaped.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

import vl_convert

from serverless_bench.base.escaping import for_html
from serverless_bench.features.plot.palette import NAMED
from serverless_bench.version import __version__

_LIBRARY: Final = "window.vegaEmbed = vegaEmbed;"
"""Entry point of the library used by pages; the rest is removed from the bundle."""
_THEMES: Final = ("auto", "light", "dark")
Content = str | Iterable["Content"]
"""Elements, texts and nested iterables of both."""
_VOID: Final = frozenset({"input", "meta"})


class Html(str):
    """Escaped HTML."""

    __slots__ = ()


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Html:
    """Return an element.

    Parameters
    ----------
    name
        Name of the element.
    content
        Content of the element: ``Html`` is inserted unchanged, other text is escaped.
    attributes
        Attributes; None and False are omitted, ``class_`` becomes ``class``, and
        ``data_value`` becomes ``data-value``.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Content) -> Html:
    """Return the concatenation of elements and texts."""
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return Html(for_html(content))
    return Html("".join(map(joined, content)))


def _attribute(name: str, value: str | int | bool | None) -> str:  # noqa: FBT001 - HTML has boolean attributes
    if value is None or value is False:
        return ""
    html_name = name.removesuffix("_").replace("_", "-")
    return f" {html_name}" if value is True else f' {html_name}="{for_html(str(value))}"'


Part = tuple[str, Content]
"""A part of a page: heading and content."""


def document(
    title: str, lead: Content, parts: Sequence[Part], definitions: Iterable[Html] = ()
) -> str:
    """Return a complete page.

    Parameters
    ----------
    title
        Title of the page.
    lead
        Introduction with the verdict as text.
    parts
        Parts that follow the introduction.
    definitions
        Definitions of its values, shown on demand.
    """
    style = Html(f":root{{{variables()}}}{_file('page.css')}")
    scripts = [_library(), _script(_file("page.js"))]
    places = {title: "-".join(title.lower().split()) for title, _ in parts}
    sections = (
        tag("section", tag("h2", name, id=places[name]), content) for name, content in parts
    )
    links = tag(
        "ul", (tag("li", tag("a", name, href=f"#{place}")) for name, place in places.items())
    )
    body = joined(
        [
            tag("header", _theme(), tag("h1", title), lead),
            tag("nav", links, aria_label="In this report"),
            tag("main", sections),
            tag("footer", tag("p", f"Made by sbench {__version__}.")),
            list(definitions),
            (tag("script", text) for text in scripts),
        ]
    )
    head = joined(
        [
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy", content=_policy(scripts)),
            tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            tag("title", title),
            tag("style", style),
        ]
    )
    page = tag("html", tag("head", head), tag("body", body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _policy(scripts: Sequence[str]) -> str:
    """Return a policy that only allows these scripts, and no requests."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none';"
        f" style-src 'unsafe-inline'; script-src {allowed}"
    )


def variables() -> str:
    """Return the declarations of all colours for the page's style."""
    return "".join(f"--{name}:light-dark({light},{dark});" for name, (light, dark) in NAMED.items())


@cache
def _library() -> Html:
    """Return the library, which takes a second to bundle."""
    return _script(vl_convert.javascript_bundle(_LIBRARY))


def _script(text: str) -> Html:
    """Return a script, escaped so that it does not end early."""
    return Html(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def _file(name: str) -> str:
    return (files("serverless_bench.features.page") / name).read_text(encoding="utf-8")


def _theme() -> Html:
    """Return the switch between colour themes, which needs no script."""
    choices = (
        tag("label", tag("input", type="radio", name_="theme", id=name, checked=not at), name)
        for at, name in enumerate(_THEMES)
    )
    return tag("fieldset", tag("legend", "Colours"), choices, class_="theme")
