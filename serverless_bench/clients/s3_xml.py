"""The XML of a store's responses: read, never trusted.

S3 sends no document type, no NUL and no more than some ten thousand tags in one document, so
what has more of that is not read at all. Expat bounds what is left: it opens no other file, and
ends what grows when it is read (``XML_SetBillionLaughsAttackProtectionMaximumAmplification``).
"""

import xml.etree.ElementTree as ET
from typing import Final

from serverless_bench.clients.s3_errors import s3_error
from serverless_bench.errors import BadResponse

_MOST_TAGS: Final = 100_000
"""A page of a thousand keys has 26,000 if it says all that S3 can say of each."""
_REFUSED: Final = (b"<!DOCTYPE", b"<!ENTITY", b"\0")
"""The last one would be there in UTF-16, which hides the others."""
_NO_ANSWERS: Final = frozenset({"html", "HTML"})
"""What somebody else says who answers in the store's place."""


def parse(text: bytes) -> ET.Element | None:
    """Return the document that a body holds; None if it is no XML that S3 would send."""
    start = text.lstrip()
    if not start.startswith(b"<") or start.count(b"<") > _MOST_TAGS:
        return None
    if any(refused in start for refused in _REFUSED):
        return None
    try:
        return ET.fromstring(start)  # noqa: S314 - see above
    except (ET.ParseError, LookupError, ValueError):
        # The latter two of encodings that are none.
        return None


def element(text: bytes, name: str) -> str:
    """Return the text of the first element called ``name`` in any namespace, or ''."""
    return next(iter(elements(text, name)), "")


def elements(text: bytes, name: str) -> list[str]:
    """Return the texts of all elements called ``name`` in any namespace."""
    root = parse(text)
    return [] if root is None else texts(root, name)


def texts(root: ET.Element, name: str) -> list[str]:
    """Return the texts of all elements called ``name`` in any namespace of a document."""
    return [each.text or "" for each in root.iter() if local_name(each) == name]


def document(text: bytes, name: str, what: str) -> ET.Element:
    """Return the document of a response of success.

    Parameters
    ----------
    text
        Its body.
    name
        What its root is called.
    what
        What the store should have said, for the message.

    Raises
    ------
    OperationError
        If it is another document, or an error, or nothing.
    """
    root = parse(text)
    if root is None or local_name(root) != name:
        check_success(text)
        raise BadResponse(f"the store's response does not say {what}", status=200)
    return root


def check_success(text: bytes) -> None:
    """Look for an error in a response of success.

    S3 answers 200 before it has put parts together or copied an object, and if it deleted
    only some of many.

    Raises
    ------
    OperationError
        If there is one, or the document is not whole.
    """
    if not text.lstrip().startswith(b"<"):
        return
    root = parse(text)
    if root is None or local_name(root) in _NO_ANSWERS:
        raise BadResponse("the store's response is not the XML of S3", status=200)
    codes = texts(root, "Code")
    if codes or local_name(root) == "Error":
        message = next(iter(texts(root, "Message")), "")
        raise s3_error(500, next(iter(codes), ""), message, {})


def local_name(each: ET.Element) -> str:
    """Return an element's name without its namespace."""
    return each.tag.rpartition("}")[2]
