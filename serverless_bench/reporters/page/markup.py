"""Elements of HTML. Whatever is no element is text, and shown as it is."""

from collections.abc import Iterable
from typing import Final

from serverless_bench.escaping import for_html

_VOID: Final = frozenset({"input", "meta"})


class Html(str):
    """A piece of a page, escaped where it has to be."""

    __slots__ = ()


Content = str | Iterable["Content"]
"""Elements, texts and lists of both."""


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
