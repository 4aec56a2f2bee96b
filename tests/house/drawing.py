"""The drawing of the core and of one feature, from the imports of the package.

    python -m tests.house.drawing    # docs/house.svg

A room stands above all rooms that it imports. An arrow that follows from others is left out, as
every room may import what lies below.
"""

from functools import cache
from html import escape
from pathlib import Path
from typing import Final

from tests.house.features import feature_of
from tests.house.measures import PACKAGE, REPOSITORY, arrows_of_the_core, trees

DRAWING: Final = REPOSITORY / "docs" / "house.svg"
EXAMPLE: Final = "parquet"
"""A feature with all that a workload may have."""
_WIDTH, _HEIGHT, _X, _Y = 104, 32, 128, 66
"""Size of a room, and the distances of rooms beside and above each other."""
_LANE_X: Final = 396
_FEATURE_X: Final = 560
TIP: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
    ' markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)
"""The end of an arrow."""
_STYLE: Final = """
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1f2328 }
.small { font-size: 11px; fill: #59636e }
rect { fill: #f6f8fa; stroke: #818b98; rx: 5px }
.table { fill: #fff8c5 } .feature { fill: #ddf4ff }
path { fill: none; stroke: #818b98 } .asks { stroke-dasharray: 4 3 }
marker path { fill: #818b98; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .small { fill: #9198a1 }
rect { fill: #151b23; stroke: #656c76 }
.table { fill: #3a2f0b } .feature { fill: #10243e }
path { stroke: #656c76 } marker path { fill: #656c76 }
}"""


def drawing() -> str:
    """Return the drawing as SVG."""
    rooms = {room for arrow in arrows_of_the_core() for room in arrow}
    far = [(a, b) for a in sorted(rooms) for b in sorted(_direct(a)) if _rank(a) - _rank(b) > 1]
    ranks: dict[int, list[str]] = {}
    # What a far arrow leads to stands last in its row.
    for room in sorted(rooms, key=lambda room: (room in {b for _, b in far}, room)):
        ranks.setdefault(_rank(room), []).append(room)
    top = max(ranks)
    place = {
        room: (20 + number * _X, 20 + (top - rank) * _Y)
        for rank, row in ranks.items()
        for number, room in enumerate(row)
    }
    width, height = _FEATURE_X + 250, 20 + (top + 1) * _Y
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            ' aria-label="The rooms of the core, the table of the features, and a feature">'
        ),
        f"<style>{_STYLE}</style>",
        TIP,
    ]
    for room, (x, y) in place.items():
        for other in sorted(_direct(room)):
            to_x, to_y = place[other]
            line = f"M{x + _WIDTH / 2:g} {y + _HEIGHT}L{to_x + _WIDTH / 2:g} {to_y}"
            if (room, other) in far:
                lane = _LANE_X + 16 * far.index((room, other))
                line = f"M{x + _WIDTH} {y + 16}H{lane}V{to_y + 16}H{to_x + _WIDTH}"
            parts.append(f'<path marker-end="url(#tip)" d="{line}"/>')
    for room, (x, y) in place.items():
        parts += [_box(x, y, _WIDTH, "", f"{room}/")]
    parts += _feature(height)
    return "\n".join([*parts, "</svg>\n"])


def _feature(height: int) -> list[str]:
    """Return the table of the features, and a feature with its files."""
    x, y = _FEATURE_X, 20
    files = sorted(
        path.relative_to(PACKAGE / "features" / EXAMPLE).as_posix()
        for path in trees()
        if feature_of(path) == EXAMPLE and path.name != "__init__.py"
    )
    middle = x + 115
    top = y + 96
    lines = [
        f'<text class="small" x="{middle}" y="{top + 44 + 17 * number}">{escape(name)}</text>'
        for number, name in enumerate((*files, "README.md", "tests/"))
    ]
    box = 44 + 17 * len(lines)
    return [
        _box(x, y, 230, "table", "features/__init__.py"),
        f'<text class="small" x="{middle}" y="{y + 48}">names of plugins and their modules</text>',
        f'<rect class="feature" x="{x}" y="{top}" width="230" height="{box}"/>',
        f'<text x="{middle}" y="{top + 22}">features/{EXAMPLE}/</text>',
        *lines,
        f'<path class="asks" marker-end="url(#tip)" d="M{middle} {y + 56}V{top}"/>',
        f'<path class="asks" marker-end="url(#tip)" d="M{x - 90} {y + 16}H{x}"/>',
        f'<text class="small" x="{x - 46}" y="{y + 8}">the core asks</text>',
        f'<path marker-end="url(#tip)" d="M{x} {top + 60}H{x - 90}"/>',
        f'<text class="small" x="{x - 46}" y="{top + 52}">imports</text>',
        (
            f'<text class="small" x="{middle}" y="{min(height - 10, top + box + 20)}">'
            "and each other feature likewise</text>"
        ),
    ]


def _box(x: int, y: int, width: int, kind: str, text: str) -> str:
    middle = f'x="{x + width / 2:g}" y="{y + 21}"'
    size = f'x="{x}" y="{y}" width="{width}" height="{_HEIGHT}"'
    return f'<rect class="{kind}" {size}/><text {middle}>{escape(text)}</text>'


@cache
def _below(room: str) -> frozenset[str]:
    """Return the rooms that a room imports, directly and through others."""
    own = {target for source, target in arrows_of_the_core() if source == room}
    return frozenset(own.union(*map(_below, own)))


@cache
def _rank(room: str) -> int:
    return max((1 + _rank(other) for other in _below(room)), default=0)


def _direct(room: str) -> set[str]:
    """Return the rooms that a room imports, without those that follow from others."""
    return {o for o in _below(room) if not any(o in _below(other) for other in _below(room))}


if __name__ == "__main__":
    Path(DRAWING).write_text(drawing(), "utf-8")
