"""Hypothesis strategies: a valid document in which one to three places are damaged."""

import copy
import json
import os
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import strategies as st

CASES: Final = int(os.environ.get("SBENCH_FUZZ_CASES", "60"))
"""Examples per property: few in CI; `make full` uses ten thousand, with a new seed."""
CONTROL: Final = ("a\nb", "\x1b]0;owned\x07", "\x1b[2J", "\r", "\x00", "\x85", "\u202e", "\u2028")
"""Characters that a terminal, a line-based file or a reader may misinterpret."""
SPOILED: Final = st.one_of(
    st.sampled_from(
        [None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**30, 10**400, 1e308, -0.0, 0.5]
    ),
    st.sampled_from([float("nan"), float("inf"), float("-inf")]),
    st.sampled_from(CONTROL),
    st.sampled_from(["", "x", "0", "-1", "../../etc", "/etc/passwd", "=1+1", "s3://", "é" * 300]),
    st.sampled_from([[], {}, [[]], {"": None}, [None] * 3, ["a"] * 1000, {"a": {"b": {"c": 1}}}]),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
).map(copy.deepcopy)
"""Values of any type, in place of expected ones."""
Path = tuple[str | int, ...]


def places(document: object, at: Path = ()) -> Iterator[Path]:
    """Yield the way to each value of a JSON document, itself first."""
    yield at
    if isinstance(document, dict):
        for name, value in document.items():
            yield from places(value, (*at, name))
    elif isinstance(document, list):
        for number, value in enumerate(document):
            yield from places(value, (*at, number))


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """Draw the document with one to three values replaced, left out, doubled or added."""
    spoiled = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([*places(spoiled)]))
        if not path:
            if draw(st.integers(0, 9)) == 0:
                return draw(SPOILED)
            continue
        holder = spoiled
        for step in path[:-1]:
            holder = holder[step]
        match draw(st.sampled_from(["replace", "replace", "replace", "leave out", "add"])):
            case "replace":
                holder[path[-1]] = copy.deepcopy(draw(SPOILED))
            case "leave out":
                del holder[path[-1]]
            case _ if isinstance(holder, dict):
                holder[draw(st.text(max_size=8))] = copy.deepcopy(draw(SPOILED))
            case _:
                holder.append(copy.deepcopy(draw(SPOILED)))
    return spoiled


@st.composite
def mutated_lines(draw: st.DrawFn, text: str) -> bytes:
    """Draw the text of JSON lines with a line spoiled as JSON, as text, or as bytes."""
    lines = text.splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 3))):
        number = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["json", "json", "json", "cut", "double", "swap", "text"])):
            case "json":
                try:
                    document = json.loads(lines[number])
                except ValueError:
                    continue
                lines[number] = json.dumps(draw(mutated(document))) + "\n"
            case "cut":
                lines[number] = lines[number][: draw(st.integers(0, len(lines[number])))]
            case "double":
                lines.insert(number, lines[number])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[number], lines[other] = lines[other], lines[number]
            case _:
                lines[number] = draw(st.sampled_from(CONTROL)) + lines[number]
    return draw(mutated_bytes("".join(lines).encode(errors="surrogatepass"), likely=False))


@st.composite
def mutated_bytes(draw: st.DrawFn, data: bytes, *, likely: bool = True) -> bytes:
    """Draw the bytes with a few of them changed, cut out or put in."""
    if not likely and draw(st.integers(0, 4)):
        return data
    changed = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(changed) - 1, 0)))
        match draw(st.sampled_from(["flip", "cut", "insert", "end"])):
            case "flip" if changed:
                changed[at] ^= draw(st.integers(1, 255))
            case "cut":
                del changed[at : at + draw(st.integers(1, 64))]
            case "end":
                del changed[at:]
            case _:
                changed[at:at] = draw(st.binary(max_size=32))
    return bytes(changed)
