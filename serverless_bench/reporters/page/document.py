"""One file that is a page: style, words, pictures and the library that draws them again.

It is made of elements of HTML. Whatever is no element is text, and shown as it is.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Final

import vl_convert

from serverless_bench.escaping import for_html
from serverless_bench.reporters.page import palette
from serverless_bench.version import __version__

_LIBRARY: Final = "window.vegaEmbed = vegaEmbed;"
"""What of the library pages use: all of it is one function."""
_THEMES: Final = ("auto", "light", "dark")
Content = str | Iterable["Content"]
"""Elements, texts and lists of both."""
_VOID: Final = frozenset({"input", "meta"})


class Html(str):
    """A piece of a page, escaped where it has to be."""

    __slots__ = ()


def tag(name: str, *content: Content, **attributes: str | int | bool | None) -> Html:
    """Return an element.

    Parameters
    ----------
    name
        Of the element.
    content
        What is in it: ``Html`` as it is, any other text escaped.
    attributes
        Without those that are None or False; ``class_`` is ``class``, ``data_value`` is
        ``data-value``.
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Content) -> Html:
    """Return elements and texts one after the other."""
    if isinstance(content, Html):
        return content
    if isinstance(content, str):
        return Html(for_html(content))
    return Html("".join(map(joined, content)))


def _attribute(name: str, value: str | int | bool | None) -> str:  # noqa: FBT001 - as HTML has them
    if value is None or value is False:
        return ""
    shown = name.removesuffix("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{for_html(str(value))}"'


Part = tuple[str, Content]
"""A part of a page: its heading, and what is below."""


def document(
    title: str, lead: Content, parts: Sequence[Part], definitions: Iterable[Html] = ()
) -> str:
    """Return a whole page.

    Parameters
    ----------
    title
        Of the page.
    lead
        What it opens with: the verdict in words.
    parts
        What follows.
    definitions
        Of its figures, each shown on demand.
    """
    style = Html(f":root{{{palette.variables()}}}{_file('page.css')}")
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
            tag("nav", links, aria_label="On this page"),
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
    """Return a policy that lets these scripts run and no others, and nothing be fetched."""
    digests = (hashlib.sha256(text.encode()).digest() for text in scripts)
    allowed = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none';"
        f" style-src 'unsafe-inline'; script-src {allowed}"
    )


@cache
def _library() -> Html:
    """Return the library, which takes a second to put together."""
    return _script(vl_convert.javascript_bundle(_LIBRARY))


def _script(text: str) -> Html:
    """Return a script that does not end before its end."""
    return Html(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))


def _file(name: str) -> str:
    return (files("serverless_bench.reporters.page") / name).read_text(encoding="utf-8")


def _theme() -> Html:
    """Return the switch of colours, which needs no script."""
    choices = (
        tag("label", tag("input", type="radio", name_="theme", id=name, checked=not at), name)
        for at, name in enumerate(_THEMES)
    )
    return tag("fieldset", tag("legend", "Colours"), choices, class_="theme")
