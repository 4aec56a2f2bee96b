"""Take the pictures for serverless_bench/features/page/README.md, of the page of the saved run.

make docs
"""

import tempfile
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, FloatRect

from serverless_bench.features.page.run import page
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import load_run
from tests.browser import browser, opened

ROOT: Final = Path(__file__).parents[1]
_WIDTH: Final = 1100
_HEIGHT: Final = 1010


def main() -> None:
    """Take one picture of the top of the page, and one of its middle with dark colours."""
    run = load_run(ROOT / "notebooks" / "saved-run" / "read", detail=False)
    with tempfile.TemporaryDirectory() as scratch, browser() as started:
        made = Path(scratch) / "page.html"
        made.write_text(page(summarize(run), run), encoding="utf-8")
        take(started, made, "light", "h1")
        take(started, made, "dark", "#functions")


def take(browser: Browser, made: Path, scheme: Literal["light", "dark"], begin: str) -> None:
    """Save the visible part of the page from an element on."""
    with opened(browser, made, scheme=scheme) as shown:
        top = shown.locator(begin).evaluate("one => one.getBoundingClientRect().top")
        part: FloatRect = {"x": 0, "y": top - 20, "width": _WIDTH, "height": _HEIGHT}
        file = ROOT / "serverless_bench" / "features" / "page" / f"page-{scheme}.png"
        shown.screenshot(path=file, full_page=True, clip=part)


if __name__ == "__main__":
    main()
