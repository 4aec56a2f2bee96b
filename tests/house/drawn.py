"""Read what a specification of Vega-Lite draws: its panels, their axes, marks and legends."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import vl_convert

_NUMBER: Final = re.compile(r"[\u2212-]?[\d,.]+[kMGmµn]?")
Node = dict[str, Any]


def problems(spec: Node) -> list[str]:
    """Return what is wrong with a drawing.

    - A numeric axis has no title, or its title repeats a part or has the name of a field.
    - A panel has no mark but rules, or only lines of a single point.
    - Two series of a legend have one colour and one mark.
    - A label is a setting, such as ``client=minio``, instead of words.
    """
    drawn = vl_convert.vegalite_to_scenegraph(spec, allowed_base_urls=[])
    fields = {name for rows in _values(spec) for row in rows for name in row}
    wrong = list[str]()
    for panel in _panels(drawn["scenegraph"]):
        for title in _titles(panel):
            parts = title.split(", ")
            if len(set(parts)) < len(parts) or fields & set(parts) or "_" in title:
                wrong.append(f"an axis has the title {title!r}")
        if not any(map(_is_visible, _marks(panel))):
            wrong.append("a panel is empty")
        if not all(_has_title(axis) for axis in _of_role(panel, "axis")):
            wrong.append("a numeric axis has no title")
        looks = Counter(_looks(panel))
        wrong += [f"{n} series look like {look}" for look, n in looks.items() if n > 1]
    labels = [text for node in _nodes(drawn["scenegraph"]) for text in _texts(node)]
    return wrong + [f"a label is {text!r}" for text in labels if re.search(r"\w=\w", text)]


def _values(spec: object) -> Iterator[list[Node]]:
    """Yield the data of a specification."""
    if isinstance(spec, dict):
        if isinstance(spec.get("values"), list) and isinstance(next(iter(spec["values"]), 0), dict):
            yield spec["values"]
        for part in spec.values():
            yield from _values(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from _values(part)


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for item in node.get("items", ()):
        yield from _nodes(item)


def _panels(scene: Node) -> Iterator[Node]:
    """Yield the groups with axes."""
    for node in _nodes(scene):
        if any(part.get("role") == "axis" for part in node.get("items", ())):
            yield node


def _of_role(node: Node, role: str) -> Iterator[Node]:
    return (part for part in _nodes(node) if part.get("role") == role)


def _texts(node: Node) -> list[str]:
    """Return the lines of the texts of a node."""
    if node.get("marktype") != "text" or "label" not in (node.get("role") or ""):
        return []
    return [_text(item) for item in node["items"]]


def _text(item: Node) -> str:
    text = item.get("text", "")
    return " ".join(text) if isinstance(text, list) else str(text)


def _titles(panel: Node) -> list[str]:
    return [_text(item) for node in _of_role(panel, "axis-title") for item in node["items"]]


def _has_title(axis: Node) -> bool:
    """Tell whether an axis has a title, or no numbers that need one."""
    labels = [text for node in _of_role(axis, "axis-label") for text in _texts(node) if text]
    return bool(_titles(axis)) or not labels or not all(map(_NUMBER.fullmatch, labels))


def _marks(panel: Node) -> Iterator[Node]:
    """Yield the marks of a panel, without those of its axes and legends."""
    for part in panel["items"]:
        if part.get("role") in {"mark", "scope"}:
            yield from (
                node for node in _nodes(part) if node.get("marktype") not in {None, "group"}
            )


def _is_visible(mark: Node) -> bool:
    items, kind = mark["items"], mark["marktype"]
    if kind in {"line", "area"}:
        return len(items) > 1
    if kind == "rect":
        return any(
            item.get("width") and item.get("height") and item.get("fillOpacity") != 0
            for item in items
        )
    return kind != "rule" and bool(items)


def _looks(panel: Node) -> list[tuple[Any, ...]]:
    """Return colour, shape and dashes of each entry of the legends of a panel."""
    return [
        tuple(str(item.get(name)) for name in ("fill", "stroke", "shape", "strokeDash"))
        for node in _of_role(panel, "legend-symbol")
        for item in node["items"]
    ]
