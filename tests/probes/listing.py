"""Listings: their content, order and pages."""

from tests.probes.place import BODY, Place

NAMES = sorted(("B", "a-b", "a.b", "a/b", "a0", "b", "\u00e9"), key=str.encode)
"""In the order of their UTF-8; a file system would have `a/` before `a-b`, or `b` before `B`."""


def order(at: Place) -> str:
    for name in NAMES:
        at.put(name)
    return ordered(at.names(), NAMES)


def order_beyond_bmp(at: Place) -> str:
    """Have a key first by UTF-8 that is last by UTF-16."""
    names = ["\uffee", "\U0001f600"]
    for name in names:
        at.put(name)
    return ordered(at.names(), names)


def ordered(found: list[str], wanted: list[str]) -> str:
    if sorted(found) != sorted(wanted):
        return "not complete"
    orders = {
        "by UTF-8": wanted,
        "by UTF-8 between slashes": sorted(wanted, key=lambda key: key.encode().split(b"/")),
        "by UTF-16": sorted(wanted, key=lambda key: key.encode("utf-16-be")),
    }
    return next((name for name, keys in orders.items() if keys == found), "another")


def start_after(at: Place) -> str:
    """Begin after a key that does not exist."""
    for name in ("1", "3", "5"):
        at.put(name)
    found = at.names(StartAfter="2")
    return "what is behind it" if found == ["3", "5"] else f"{len(found)} of 3 keys"


def pages(at: Place) -> str:
    for name in NAMES:
        at.put(name)
    found: list[str] = []
    answer = at.listed(MaxKeys=2)
    while answer["IsTruncated"] and len(found) < len(NAMES):
        found += answer["names"]
        answer = at.listed(MaxKeys=2, ContinuationToken=answer["NextContinuationToken"])
    return "complete" if sorted(found + answer["names"]) == sorted(NAMES) else "not complete"


def delimiter(at: Place) -> str:
    for name in ("a", "d/1", "d/2", "e"):
        at.put(name)
    document = at.listed(Delimiter="/")
    below = [
        entry["Prefix"].removeprefix(at.prefix) for entry in document.get("CommonPrefixes", [])
    ]
    return "grouped" if (document["names"], below) == (["a", "e"], ["d/"]) else "not grouped"


def part_of_a_name(at: Place) -> str:
    for name in ("ab1", "ab2", "b"):
        at.put(name)
    return "any text" if at.names(Prefix="ab") == ["ab1", "ab2"] else "directories only"


def size_and_etag(at: Place) -> str:
    etag = at.put("a")
    [entry] = at.listed()["Contents"]
    if entry["Size"] != len(BODY):
        return "another size"
    words = {
        etag: "those of the object",
        etag.strip('"'): "the ETag without quotes",
        None: "no ETag",
    }
    return words.get(entry.get("ETag"), "another ETag")
