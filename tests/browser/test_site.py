"""The documentation as HTML: it builds strictly, and a browser contacts no other host."""

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Final
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as NotYetError

from docs.make_site import build, render
from docs.make_tables import PAGES, ROOT
from tests.browser import READY_MS, browser

pytestmark = pytest.mark.on_change(
    "CONTRIBUTING.md",
    "README.md",
    "docs",
    "examples",
    "notebooks",
    "serverless_bench/features/page",
)

READ_FIRST = (
    *("docs/first-run", "docs/own-store", "serverless_bench/features/aws/index"),
    *("docs/report", "docs/deciding"),
)

FOUND_FIRST: Final = {
    "latency": "docs/glossary.html",
    "p99": "docs/glossary.html",
    "cold start": "docs/glossary.html",
    "throttling": "docs/glossary.html",
    "retry": "docs/glossary.html",
    "straggler": "docs/glossary.html",
    "timeout": "docs/glossary.html",
    "503": "docs/troubleshooting.html",
    "403": "docs/troubleshooting.html",
    "certificate": "docs/troubleshooting.html",
    "install": "docs/install.html",
    "warp": "docs/alternatives.html",
    "sbench limit": "docs/commands.html",
}
"""The page that a search has to find first, by its words."""
ASKED_AGAIN: Final = 20
WITH_IDENTIFIERS: Final = ("docs/commands", "docs/figures", "docs/settings", "docs/glossary")
BROKEN: Final = """() => [...document.querySelectorAll('.identifier, td:first-child code')]
    .filter(code => !code.textContent.includes(' ') && code.getClientRects().length > 1)
    .map(code => code.textContent)"""
"""Identifiers that continue on another line."""
OVERHANG: Final = "() => document.documentElement.scrollWidth - window.innerWidth"


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site without a log."""

    def log_message(self, format: str, *args: object) -> None:
        """Write no log."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    assert build(into) == 0
    return into / "html"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def started() -> Iterator[Browser]:
    with browser() as running:
        yield running


@pytest.fixture(scope="module")
def page(started: Browser) -> Page:
    return started.new_page()


@pytest.mark.parametrize("name", ["index", "docs/index", *READ_FIRST])
def test_a_browser_contacts_no_other_host(page: Page, address: str, name: str) -> None:
    asked, said = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{address}{name}.html", wait_until="networkidle")
    assert page.locator("h1").count() == 1
    assert len(asked) > 1
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert said == []


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loaded = re.compile(
        r"<(?:script|img|iframe|link|source)\b[^>]*?(?:src|href)=\"?(https?:[^\">]+)"
    )
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    assert {url for path in pages for url in loaded.findall(path.read_text("utf-8"))} == set()


def test_a_link_that_leads_nowhere_is_an_error(site: Path) -> None:
    source = site.parent / "source" / "README.md"
    source.write_text(f"{source.read_text('utf-8')}\n[a](#no-such-heading)\n", "utf-8")
    assert render(site.parent) != 0


def test_git_ignores_the_built_site() -> None:
    assert "site/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()


@pytest.mark.parametrize(("words", "wanted"), FOUND_FIRST.items())
def test_a_search_finds_the_page_about_it_first(
    page: Page, address: str, words: str, wanted: str
) -> None:
    page.goto(f"{address}index.html", wait_until="networkidle")
    page.keyboard.press("/")
    field, first = page.get_by_role("combobox"), page.get_by_role("option").first
    for _ in range(ASKED_AGAIN):
        # A question that comes before the index is ready gets no answer.
        field.fill("")
        field.fill(words)
        with suppress(NotYetError):
            first.wait_for(timeout=READY_MS / ASKED_AGAIN)
            break
    pattern = re.compile(rf"/{re.escape(wanted)}\?h={re.escape(quote_plus(words))}(#|$)")
    expect(first).to_have_attribute("href", pattern, timeout=READY_MS)


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", WITH_IDENTIFIERS)
def test_identifiers_stay_in_one_piece(
    started: Browser, address: str, name: str, width: int
) -> None:
    shown = started.new_page(viewport={"width": width, "height": 900})
    shown.goto(f"{address}{name}.html")
    assert shown.evaluate(BROKEN) == []
    assert shown.evaluate(OVERHANG) <= 0
    shown.close()


def test_a_page_has_copy_buttons_neighbours_and_a_theme_switch(page: Page, address: str) -> None:
    page.goto(f"{address}docs/first-run.html", wait_until="networkidle")
    blocks = page.locator(".md-content pre").count()
    assert blocks == page.locator(".md-content pre ~ nav button, .md-content pre button").count()
    assert page.locator(".md-footer__link--prev").get_attribute("href") == "./install.html"
    assert page.locator(".md-footer__link--next").get_attribute("href") == "./own-store.html"
    body = page.locator("body")
    expect(body).to_have_attribute("data-md-color-scheme", "default")
    for name in ("Switch to light mode", "Switch to dark mode"):
        page.get_by_title(name).click()
    expect(body).to_have_attribute("data-md-color-scheme", "slate")
    drawing = page.locator("img[src='overview.svg']")
    assert drawing.evaluate("image => getComputedStyle(image).colorScheme") == "dark"
