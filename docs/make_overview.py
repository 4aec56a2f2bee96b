"""Draw what runs where: docs/overview.svg, from the laptop to the report.

python -m docs.make_overview
"""

from html import escape
from typing import Final

from docs.tables import HERE
from tests.house.drawing import TIP

DRAWING: Final = HERE / "overview.svg"
_LABEL: Final = (
    "A laptop starts functions with the sbench command. The functions write and read objects of a"
    " store and send records back, from which the laptop makes the report."
)
_SIZE: Final = 'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 280"'
_STYLE: Final = """
text { font: 15px system-ui, sans-serif; text-anchor: middle; fill: #1f2328 }
.title { font-weight: 600 } .small { font-size: 13px; fill: #59636e }
.command { font: 13px ui-monospace, monospace }
rect { fill: #f6f8fa; stroke: #818b98; rx: 6px }
.group { fill: none; stroke-dasharray: 4 3 }
.function { fill: #ddf4ff } .store { fill: #dafbe1 } .report { fill: #fff8c5 }
path { fill: none; stroke: #59636e; stroke-width: 1.5 } marker path { fill: #59636e; stroke: none }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .small { fill: #b7bdc8 }
rect { fill: #151b23; stroke: #656c76 }
.function { fill: #10243e } .store { fill: #12261e } .report { fill: #3a2f0b }
path { stroke: #9198a1 } marker path { fill: #9198a1 }
}"""


def main() -> None:
    """Write the drawing again."""
    DRAWING.write_text(drawing(), "utf-8")


def drawing() -> str:
    """Return the drawing as SVG."""
    return "\n".join(
        [
            f'<svg {_SIZE} role="img" aria-label="{escape(_LABEL)}">',
            f"<style>{_STYLE}</style>",
            TIP,
            *_box(10, 42, 190, 92, ""),
            *_texts(105, 70, ("title", "laptop"), ("command", "sbench write")),
            *_texts(105, 114, ("small", "run directory")),
            *_box(10, 180, 190, 92, "report"),
            *_texts(105, 208, ("title", "report"), ("small", "throughput, latency,")),
            *_texts(105, 248, ("small", "errors, bottleneck, cost")),
            *_box(295, 12, 130, 204, "group"),
            *(
                part
                for number, name in enumerate(("function 1", "function 2", "⋮", "function N"))
                for part in (
                    *(_box(305, 22 + 48 * number, 110, 38, "function") if name != "⋮" else ()),
                    *_texts(360, 46 + 48 * number, ("", name)),
                )
            ),
            *_texts(360, 236, ("small", "local processes,"), ("small", "AWS Lambda, Lithops")),
            *_box(540, 42, 130, 144, "store"),
            *_texts(605, 96, ("title", "object store"), ("small", "S3 or compatible,")),
            *_texts(605, 136, ("small", "Azure, Google")),
            *_arrow("M200 66H295", 248, 58, "invocations"),
            *_arrow("M295 112H200", 248, 104, "records"),
            *_arrow("M425 72H540", 482, 64, "write"),
            *_arrow("M540 122H425", 482, 114, "read"),
            *_texts(482, 142, ("small", "and verify"), ("small", "every byte")),
            '<path marker-end="url(#tip)" d="M105 134V180"/>',
            "</svg>\n",
        ]
    )


def _box(x: int, y: int, width: int, height: int, kind: str) -> list[str]:
    return [f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}"/>']


def _texts(x: int, y: int, *lines: tuple[str, str]) -> list[str]:
    """Return lines of text below each other, each with its class."""
    return [
        f'<text class="{kind}" x="{x}" y="{y + 20 * number}">{escape(text)}</text>'
        for number, (kind, text) in enumerate(lines)
    ]


def _arrow(line: str, x: int, y: int, text: str) -> list[str]:
    return [f'<path marker-end="url(#tip)" d="{line}"/>', *_texts(x, y, ("small", text))]


if __name__ == "__main__":
    main()
