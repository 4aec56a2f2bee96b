"""Pages as a browser shows them; ``install`` brings the browser."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Request, ViewportSize, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
"""Names that ``install`` looks for."""
VIEWPORT: ViewportSize = {"width": 1100, "height": 900}
READY_MS = 60_000
"""A machine that does other things, too, may need long."""


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the system's browser; without one skip, or fail if a browser is required."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None and os.environ.get("TEST_BROWSER") == "required":
        pytest.fail("there is no Chromium: tests/browser/install brings it")
    if found is None:
        pytest.skip("there is no Chromium; tests/browser/install brings it")
    with sync_playwright() as playwright:
        # Its own sandbox needs rights that a container, and root, do not have.
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@dataclass
class Heard:
    """Messages and requests of a page; empty for a correct page."""

    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@contextmanager
def opened(
    browser: Browser,
    path: Path,
    *,
    scripts: bool = True,
    scheme: Literal["light", "dark"] = "light",
    width: int = VIEWPORT["width"],
) -> Iterator[Page]:
    """Open a page, and check at the end that it had no message and fetched nothing."""
    context = browser.new_context(
        java_script_enabled=scripts,
        color_scheme=scheme,
        offline=True,
        viewport={**VIEWPORT, "width": width},
    )
    page, heard, own = context.new_page(), Heard(), path.as_uri()

    def asked(request: Request) -> None:
        if request.url != own:
            heard.requests.append(request.url)

    page.on("console", lambda message: heard.said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: heard.said.append(str(error)))
    page.on("dialog", lambda dialog: heard.said.append(f"dialog: {dialog.message}"))
    page.on("request", asked)
    page.goto(own)
    if scripts:
        page.wait_for_selector("html[data-ready]", state="attached", timeout=READY_MS)
    yield page
    context.close()
    assert heard == Heard()
