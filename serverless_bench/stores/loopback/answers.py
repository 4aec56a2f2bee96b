"""S3's XML, both ways, as far as the clients need it."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

NAMESPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"
_DECLARATION: Final = b'<?xml version="1.0" encoding="UTF-8"?>\n'

Element = tuple[str, "str | Sequence[Element]"]
"""A name with a text, or with further elements."""


class S3Error(Exception):
    """An answer that refuses.

    Parameters
    ----------
    status, code, message
        As in the Amazon S3 API reference, "Error responses".
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def xml(name: str, children: Sequence[Element], *, namespace: str = NAMESPACE) -> bytes:
    """Return a document."""
    root = ET.Element(name, {"xmlns": namespace} if namespace else {})
    _fill(root, children)
    return _DECLARATION + ET.tostring(root)


def _fill(parent: ET.Element, children: Sequence[Element]) -> None:
    for name, inside in children:
        child = ET.SubElement(parent, name)
        if isinstance(inside, str):
            child.text = inside
        else:
            _fill(child, inside)


def error_xml(error: S3Error, resource: str, request_id: str) -> bytes:
    """Return the body of an answer that refuses."""
    return xml(
        "Error",
        [
            ("Code", error.code),
            ("Message", error.message),
            ("Resource", resource),
            ("RequestId", request_id),
        ],
        namespace="",
    )


def parse(body: bytes) -> ET.Element:
    """Return the root of a request's document.

    Raises
    ------
    S3Error
        If it is none.
    """
    try:
        # Expat bounds what a document can cost, and the body's length is bounded, too.
        return ET.fromstring(body)  # noqa: S314
    except ET.ParseError as exc:
        raise S3Error(400, "MalformedXML", f"the body is no XML: {exc}") from None


def texts(root: ET.Element, item: str, *names: str) -> Iterable[tuple[str, ...]]:
    """Yield the texts of the elements ``names`` in each element ``item``, in any namespace."""
    for element in root.iter():
        if _plain(element) == item:
            found = {_plain(child): child.text or "" for child in element}
            yield tuple(found.get(name, "") for name in names)


def _plain(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def spelled(key: str, encoding: str) -> str:
    """Return a key as a listing spells it: XML cannot hold every character."""
    return quote(key, safe="/") if encoding == "url" else key
