"""Checks of GETs, listings, ranges and names, by all functions through all endpoints."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from serverless_bench.base.clock import http_date_s
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.qualify.trial import BrokenError, StoreTrial, UnsupportedError

_BLOCK: Final = 256 << 10
_PART: Final = 206
_MANY: Final = 2100
"""Objects of a listing: three pages."""
_PAGES: Final = 20
_LATE_S: Final = 3
"""Most that dates, which are whole seconds, may differ."""
_TRICKY: Final = ("!", "A", "B", "a b", "a-b", "a.b", "a/b", "a0", "ab", "b~", "\xe9", "\U0001f600")


def new(trial: StoreTrial) -> None:
    """Read an object right after it was written, after it was looked for."""
    trial.all_look("a")
    trial.put("a", b"new", trial.writer)
    trial.all_see("a", b"new", "a GET after the PUT does not find it")


def overwritten(trial: StoreTrial) -> None:
    """Read an object, or its head, right after it was overwritten."""
    for version in range(3):
        body = b"%d" % version * (version + 1)
        etag = trial.put("a", body, trial.writer)
        for seen in trial.together(
            lambda function, gate: trial.look(
                "a", function, method="HEAD" if function % 2 else "GET", gate=gate
            )
        ):
            is_same = seen.answer.get("content-length") == str(len(body)) and seen.etag == etag
            is_same &= seen.method == "HEAD" or seen.text == body
            trial.expect(is_same, f"a {seen.method} after an overwrite has another version")


def deleted(trial: StoreTrial) -> None:
    """Read an object right after it was deleted."""
    trial.put("a", b"old")
    trial.all_look("a")
    trial.need(trial.ask("DELETE", "a", trial.writer))
    trial.all_see("a", None, "a GET after the DELETE finds the object")


def whole(trial: StoreTrial) -> None:
    """Read an object while it is overwritten."""
    bodies = [b"%c" % (65 + function) * (_BLOCK + function) for function in range(2)]
    trial.put("a", bodies[0])
    asked = trial.together(
        lambda function, gate: (
            trial.ask("PUT", "a", function, body=bodies[function], gate=gate)
            if function < len(bodies)
            else trial.look("a", function, gate=gate)
        )
    )
    by_tag: dict[str, bytes] = {}
    for seen in (*asked[len(bodies) :], *trial.all_look("a")):
        trial.expect(seen.text in bodies, "a GET during an overwrite has parts of two versions")
        same = by_tag.setdefault(seen.etag, seen.text) == seen.text
        trial.expect(same, "an ETag stands for two versions")


def listed(trial: StoreTrial) -> None:
    """List objects right after they were written, and overwritten with another size."""
    names = ["a", "b", "c"]
    for function, name in enumerate(names):
        trial.put(name, b"1", function)
    _all_list(trial, names, "a listing after the PUT lacks objects")
    trial.put("b", b"333", trial.writer)
    for page in trial.together(lambda function, _: trial.page(function)):
        problem = "a listing after an overwrite has another size"
        trial.expect(page.sizes == ["1", "3", "1"], problem)


def unlisted(trial: StoreTrial) -> None:
    """List objects right after some were deleted."""
    for name in ("a", "b", "c"):
        trial.put(name, b"1")
    _all_list(trial, ["a", "b", "c"], "a listing after the PUT lacks objects")
    trial.need(trial.ask("DELETE", "b", trial.writer))
    _all_list(trial, ["a", "c"], "a listing after the DELETE has the object")


def _all_list(trial: StoreTrial, names: Sequence[str], problem: str) -> None:
    for page in trial.together(lambda function, _: trial.page(function)):
        trial.expect(page.names == names, problem)


def in_order(trial: StoreTrial) -> None:
    """List names that other rules sort in another order."""
    for name in _TRICKY:
        trial.put(name, b"x")
    found = trial.page(trial.writer).names
    trial.expect(sorted(found) == sorted(_TRICKY), "a listing has other names than were written")
    for before, after in pairwise(found):
        is_right = before.encode() < after.encode()
        trial.expect(is_right, f"a listing is not in the order of UTF-8: {before!r}, {after!r}")


def in_pages(trial: StoreTrial) -> int:
    """List thousands of objects from all functions, each page through another endpoint.

    Returns
    -------
    int
        Number of listings.
    """
    functions, names = trial.lab.functions, [f"{number:05}" for number in range(_MANY)]
    list(trial.lab.pool.map(lambda name: trial.put(name, b"x", int(name) % functions), names))
    for found in trial.together(lambda function, _: _all_pages(trial, function)):
        missing, double = {*names} - {*found}, len(found) - len({*found})
        problem = f"the pages of a listing have {len(missing)} names too few, {double} twice"
        trial.expect(found == names, problem)
    for function in range(functions):
        first = function * 100
        after = trial.page(function, start_after=names[first], max_keys="7").names
        problem = "a listing does not start after the key that it was asked for"
        trial.expect(after == names[first + 1 : first + 8], problem)
    return 2 * functions


def _all_pages(trial: StoreTrial, function: int) -> list[str]:
    found: list[str] = []
    token = ""
    for number in range(_PAGES):
        page = trial.page(function + number, continuation_token=token)
        found += page.names
        if not (token := page.token):
            return found
    raise BrokenError("a listing does not end")


def stable(trial: StoreTrial) -> None:
    """List objects in small pages while more are written and deleted between them."""
    kept = [f"{number:03}" for number in range(60)]
    list(trial.lab.pool.map(lambda name: trial.put(name, b"x"), kept))
    found: list[str] = []
    token, added = "", list[str]()
    for number in range(_PAGES):
        page = trial.page(number, max_keys="7", continuation_token=token)
        found += [name for name in page.names if name in kept]
        if not (token := page.token):
            break
        for name in added:
            trial.need(trial.ask("DELETE", name))
        added = [f"{abs(len(found) + step):03}+" for step in (-4, 0, 4)]
        for name in added:
            trial.put(name, b"x", 1)
    problem = "pages of a listing lack or repeat objects when others are written or deleted"
    trial.expect(found == kept, problem)


def named(trial: StoreTrial, names: Sequence[str]) -> None:
    """Write objects under odd names, read them, and list them with and without an encoding."""
    for number, name in enumerate(names):
        trial.put(name, b"%d" % number, number)
    for number, name in enumerate(names):
        seen = trial.look(name, number + 1)
        trial.expect(seen.text == b"%d" % number, f"the object named {name!r} has other bytes")
    found = trial.page(trial.writer).names
    trial.expect(sorted(found) == sorted(names), f"objects are listed under other names: {found}")


def ranged(trial: StoreTrial) -> None:
    """Read ranges of an object, up to its edges and beyond them."""
    body = bytes(number * 7 % 251 for number in range(1000))
    trial.put("a", body)
    trial.put("empty", b"")
    for text, first, end in (
        ("0-0", 0, 1),
        ("0-99", 0, 100),
        ("499-500", 499, 501),
        ("999-999", 999, 1000),
        ("990-2000", 990, 1000),
        ("990-", 990, 1000),
        ("-1", 999, 1000),
        ("-2000", 0, 1000),
    ):
        seen = trial.look("a", trial.writer, headers={"range": f"bytes={text}"})
        if seen.ok and seen.text == body and end - first < len(body):
            raise UnsupportedError("the store answers a range with the whole object")
        place = f"bytes {first}-{end - 1}/{len(body)}"
        is_right = seen.text == body[first:end] and seen.answer.get("content-range") == place
        problem = f"the range {text} of 1000 bytes has other bytes, or no place"
        trial.expect(is_right and seen.status == _PART, problem)
    for name, text in (("a", "1000-1001"), ("a", "2000-"), ("empty", "0-0")):
        seen = trial.look(name, trial.writer, headers={"range": f"bytes={text}"})
        trial.expect(not seen.text or not seen.ok, f"the range {text} beyond the end has bytes")


def conditional(trial: StoreTrial) -> None:
    """Read on the condition of an older version, and of the one there."""
    older = trial.put("a", b"older")
    etag = trial.put("a", b"newer")
    for headers, status, problem in (
        ({"if-match": older}, 412, "a GET on the condition of an older version succeeds"),
        ({"if-match": etag}, 200, "a GET on the condition of the version there fails"),
        ({"if-none-match": etag}, 304, "a GET if the version differs is answered in full"),
    ):
        seen = trial.look("a", trial.writer, headers=headers)
        trial.expect(seen.status == status, problem)


def dated(trial: StoreTrial) -> None:
    """Compare ``Date`` and ``Last-Modified`` of all endpoints with each other."""
    lows, highs = list[float](), list[float]()
    for written in trial.together(lambda f, _: trial.ask("PUT", f"{f}", f, body=b"x")):
        name = str(trial.need(written).function)
        date_s = http_date_s(written.answer.get("date"))
        head = trial.look(name, written.function, method="HEAD")
        modified_s = http_date_s(head.answer.get("last-modified"))
        if date_s is None or modified_s is None:
            raise UnsupportedError("the store sends no Date or Last-Modified")
        lows.append(written.start_ns / NS_PER_S - date_s)
        highs.append(written.end_ns / NS_PER_S - date_s)
        problem = f"Last-Modified of a new object is {modified_s - date_s:g} s after its Date"
        took_s = highs[-1] - lows[-1]
        trial.expect(-took_s - _LATE_S <= modified_s - date_s <= _LATE_S, problem)
    # A response may have waited for this machine, so that only intervals can be compared.
    spread_s = max(lows) - min(highs)
    trial.expect(spread_s <= _LATE_S, f"the Dates of the endpoints differ by {spread_s:.0f} s")
