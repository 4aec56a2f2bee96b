"""The documentation as HTML: it builds strictly, and a browser contacts no other host."""

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Page

from docs.make_site import build, render
from docs.make_tables import PAGES, ROOT
from tests.browser import browser

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


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site without a log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
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
def page() -> Iterator[Page]:
    with browser() as started:
        yield started.new_page()


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
