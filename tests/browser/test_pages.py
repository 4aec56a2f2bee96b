"""Pages in a real browser: their figures are those of the JSON, and they fetch nothing."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import KIB, NS_PER_S
from serverless_bench.features.answers.answer import Curve, Drawing, Mark, save_answer
from serverless_bench.features.compare.tests.integration.test_compare import (
    BASE,
    make_series,
    make_side,
)
from serverless_bench.features.studies.tests.integration.test_study import TINY
from tests.browser import browser as started
from tests.browser import opened
from tests.commands.command import Sbench
from tests.data.runs import S, attempt, job, lost, operation, outcome, record, saved
from tests.stores.servers import loopback

pytestmark = pytest.mark.on_change(
    "serverless_bench/metrics",
    "serverless_bench/features/plot",
    "serverless_bench/report",
    "serverless_bench/features/compare",
    "serverless_bench/features/studies",
)

MOST_BYTES = 5_000_000
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u202e`{{7*7}}"
NAMES = ("run", "compare", "scale", "study")
CHECKS = """() => {
  const wrong = [], name = (one) =>
    (one.ariaLabel || one.textContent || one.labels?.[0]?.textContent || "").trim();
  for (const one of document.querySelectorAll("button, a, input, summary, [role=img]"))
    if (!name(one)) wrong.push("no name: " + one.outerHTML.slice(0, 80));
  for (const one of document.querySelectorAll("th"))
    if (!one.scope) wrong.push("no scope: " + one.textContent);
  let level = 0;
  for (const one of document.querySelectorAll("h1, h2, h3")) {
    if (Number(one.tagName[1]) > level + 1) wrong.push("heading out of order: " + one.textContent);
    level = Number(one.tagName[1]);
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) wrong.push("twice: " + id);
  for (const one of document.querySelectorAll("[popovertarget], a[href^='#']")) {
    const id = one.getAttribute("popovertarget") ?? one.getAttribute("href").slice(1);
    if (!document.getElementById(id)) wrong.push("leads nowhere: " + id);
  }
  const whole = document.documentElement.lang && document.title;
  if (document.querySelectorAll("h1").length !== 1 || !whole)
    wrong.push("no heading, language or title");
  return wrong;
}"""
FIGURES = """() => [...document.querySelectorAll("data[data-figure]")]
  .map((one) => [one.dataset.figure, JSON.parse(one.value)])"""

# Redrawn text is not in its old order.
TEXTS = """() => [...document.querySelectorAll("figure[data-end] svg")]
  .map((chart) => [...chart.querySelectorAll("text")].map((text) => text.textContent).sort())"""
UNFOLD = "open => document.querySelectorAll('details').forEach(one => { one.open = open; })"
CUT = """() => [
  ...document.scrollingElement.scrollWidth > innerWidth ? ["the page is too wide"] : [],
  ...[...document.querySelectorAll("h1, h2, h3, p, dl, .tiles div, .controls, figure svg text")]
    .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.textContent)]"""
NARROW = 320
"""The least that a page has to bear (WCAG 2.2, "Reflow"): 1,280 at a zoom of 400 %."""
AXE_RULES: Mapping[Literal["light", "dark"], Mapping[str, Any]] = {
    "light": {},
    # The dark scheme only changes colours.
    "dark": {"runOnly": ["color-contrast"]},
}
FRAMES = 1000
"""A browser shows as many in some seconds."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with started() as browser:
        yield browser


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Path, Any]]:
    """Each page in a file, made by its command, and the JSON of the same command."""
    root = tmp_path_factory.mktemp("pages")
    make_side(root / "a", BASE)
    make_side(root / "b", [2 * seconds for seconds in BASE], first_ns=1)
    make_series(root / "s")
    (root / "tiny.toml").write_text(TINY, encoding="utf-8")
    with loopback("--put-limit", "3", log=root / "log") as server:
        sbench = Sbench(root, server.environment)
        where = ("--endpoint-url", server.endpoint_url, "--bucket", "test")
        inline = ("--executor", "inline", "--retries", 0)
        # Most of them are throttled.
        style = ("--format", "html")
        wrote = sbench(
            "write", "--number", 30, "--size", KIB, "--name", "w", *inline, *where, *style
        )
        assert wrote.code == 6, wrote.err
        assert wrote.out.startswith("<!DOCTYPE html>\n")
        assert wrote.out.endswith("</html>\n")
    with loopback(log=root / "log") as server:
        where = ("--endpoint-url", server.endpoint_url, "--bucket", "test")
        ran = sbench("study", "run", "tiny.toml", "--repeats", 1, "--name", "e", *where)
        assert ran.code == 0, ran.err
    commands: Mapping[str, tuple[str, ...]] = {
        "run": ("report", "w"),
        "compare": ("compare", "a", "b"),
        "scale": ("scale", "--from", "s", "--predict", "16"),
        "study": ("study", "report", "e"),
    }
    pages = {}
    for name, command in commands.items():
        page, found = (sbench(*command, "--format", style) for style in ("html", "json"))
        assert (page.code, page.err) == (found.code, found.err)
        (root / f"{name}.html").write_text(page.out, encoding="utf-8")
        pages[name] = root / f"{name}.html", json.loads(found.out)
    return pages


def flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every value of a document except those of histograms and curves."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in {"histogram", "over_time"}:
                yield from flat(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from flat(inner, f"{path}[{number}]")
    else:
        yield path, value


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_of_the_json_is_on_the_page_and_equal(
    name: str, made: Mapping[str, tuple[Path, Any]], chromium: Browser
) -> None:
    path, document = made[name]
    with opened(chromium, path) as page:
        shown = page.evaluate(FIGURES)
        assert page.evaluate(CHECKS) == []
        assert "\\n" not in page.locator("body").inner_text()
        undefined = page.locator("#all-figures ~ details tbody th:first-child span").all()
        assert [one.inner_text() for one in undefined] == []
    wanted = dict(flat(document))
    assert [(path, value) for path, value in shown if wanted[path] != value] == []
    assert {path for path, _ in shown} == set(wanted)
    assert path.stat().st_size < MOST_BYTES


def test_requests_of_a_run_with_faults_stand_by_status(
    made: Mapping[str, tuple[Path, Any]], chromium: Browser
) -> None:
    path, document = made["run"]
    with opened(chromium, path) as page:
        table = page.get_by_role("table", name="All requests by HTTP status")
        rows = [row.inner_text().split("\t") for row in table.locator("tbody tr").all()]
        counts = {status: int(count) for status, count in rows}
        assert page.get_by_role("img", name="Failed requests per segment").count() == 1
    assert counts == {"200": document["ok"], "503": document["throttled"]}
    assert sum(counts.values()) == document["attempts"] == 30


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_whole_without_scripts(
    name: str, made: Mapping[str, tuple[Path, Any]], chromium: Browser
) -> None:
    with opened(chromium, made[name][0], scripts=False) as page:
        pictures = page.locator("figure.chart .picture > svg")
        assert pictures.count() == page.locator("figure.chart").count()
        for picture in pictures.all():
            box = picture.bounding_box()
            assert box is not None
            assert min(box["width"], box["height"]) > 40
        page.get_by_text("Show all figures").click()
        expect(page.locator("#all-figures ~ details table")).to_be_visible()
        assert page.locator(".verdict").first.inner_text()
        term = page.locator("#all-figures ~ details .term").first
        term.click()
        expect(page.locator(f"#{term.get_attribute('popovertarget')}")).to_be_visible()


def test_all_parts_work_by_keyboard(
    made: Mapping[str, tuple[Path, Any]], chromium: Browser
) -> None:
    with opened(chromium, made["run"][0]) as page:
        # A table is sorted by its header, ascending and descending.
        table = page.get_by_role("table", name="The functions that took longest")
        header = table.get_by_role("button", name="function")
        took = "table => [...table.tBodies[0].rows].map(row => Number(row.cells[0].textContent))"
        header.press("Enter")
        found = table.evaluate(took)
        assert found == sorted(found)
        header.press("Enter")
        assert table.evaluate(took) == found[::-1] != found
        assert table.locator("th").first.get_attribute("aria-sort") == "descending"
        # A definition opens and closes.
        term = page.locator(".tiles .term").first
        definition = page.locator(f"#{term.get_attribute('popovertarget')}")
        term.press("Enter")
        expect(definition).to_be_visible()
        page.keyboard.press("Escape")
        expect(definition).not_to_be_visible()
        # Zooming moves the time axis of every chart that has one.
        whole = page.evaluate(TEXTS)
        assert len(whole) > 3
        page.get_by_role("button", name="Zoom in").first.press("+")
        await_texts(page, lambda now: all(one != was for one, was in zip(now, whole, strict=True)))
        page.keyboard.press("0")
        await_texts(page, lambda now: now == whole)


def await_texts(page: Page, there: Callable[[list[list[str]]], bool]) -> None:
    """Wait until the charts with a time axis show the expected text."""
    frames = 0
    while not there(page.evaluate(TEXTS)):
        frames += 1
        assert frames < FRAMES
        page.evaluate("() => new Promise(requestAnimationFrame)")


def test_dark_and_light_follow_the_system_and_the_switch(
    made: Mapping[str, tuple[Path, Any]], chromium: Browser
) -> None:
    background = "() => getComputedStyle(document.body).backgroundColor"
    for scripts in (True, False):
        with opened(chromium, made["run"][0], scheme="dark", scripts=scripts) as page:
            dark = page.evaluate(background)
            page.get_by_label("light").check()
            light = page.evaluate(background)
            page.get_by_label("dark").check()
            assert page.evaluate(background) == dark == "rgb(22, 24, 29)"
            assert light == "rgb(255, 255, 255)"
            # Paper is white.
            page.emulate_media(media="print")
            assert page.evaluate(background) == light
            expect(page.locator("nav")).not_to_be_visible()


def test_the_page_of_a_kept_answer_has_its_charts_and_its_text(
    tmp_path: Path, chromium: Browser
) -> None:
    marks = (
        Mark(at=10, value=2.0, low=1.0, high=3.0, group=HOSTILE[:30]),
        Mark(at=200, value=5.0, group="does not hold"),
    )
    curve = Curve(group="law", points=((10, 1.0), (200, 4.0)))
    places = Drawing(
        title="Levels", says=HOSTILE, at="level", value="ms", marks=marks, curves=(curve,)
    )
    names = Drawing(
        title="Changes", says="By name.", at="", value="x", marks=(Mark(at=HOSTILE, value=-1.0),)
    )
    text = ("level   ms", HOSTILE, "last line " * 30)
    save_answer(
        tmp_path,
        command="limit",
        headline=HOSTILE,
        text=text,
        markdown=(),
        result={},
        drawings=(places, names),
    )
    page = Sbench(tmp_path, {})("report", str(tmp_path), "--format", "html")
    assert page.code == 0, page.err
    path = tmp_path / "page.html"
    path.write_text(page.out, encoding="utf-8")
    for width in (NARROW, 1100):
        with opened(chromium, path, width=width) as shown:
            assert shown.evaluate(CHECKS) == []
            assert shown.evaluate(CUT) == []
            assert shown.locator("figure.chart").count() == 2
            assert len(shown.locator("pre").inner_text().splitlines()) == len(text)
            found = Axe().run(shown, options={"resultTypes": ["violations"]})
            assert [one["id"] for one in found.response["violations"]] == []


@pytest.mark.parametrize("name", ["run", "compare", "study"])
def test_axe_reports_no_problem(
    name: str, made: Mapping[str, tuple[Path, Any]], chromium: Browser
) -> None:
    with opened(chromium, made[name][0]) as page:
        for unfolded in (False, True):
            page.evaluate(UNFOLD, unfolded)
            for scheme, rules in AXE_RULES.items():
                page.emulate_media(color_scheme=scheme)
                found = Axe().run(page, options={"resultTypes": ["violations"], **rules})
                violations = found.response["violations"]
                assert [(one["id"], one["nodes"][0]["html"]) for one in violations] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_narrow_page_cuts_no_content(
    name: str, made: Mapping[str, tuple[Path, Any]], chromium: Browser
) -> None:
    with opened(chromium, made[name][0], width=NARROW) as page:
        page.evaluate(UNFOLD, True)  # noqa: FBT003 - as JavaScript has it
        assert page.evaluate(CUT) == []


def test_a_hostile_run_is_text(tmp_path: Path, chromium: Browser) -> None:
    """For every text that may come from others: names, errors, workers, keys, prefixes."""
    bad = replace(operation(1, error=HOSTILE), key=f"{HOSTILE}/k.1000")
    asked = replace(attempt(1, error="throttled"), error=HOSTILE, detail=HOSTILE)
    worker = replace(record(0, [operation(), bad], attempts=[attempt(), asked]), worker_id=HOSTILE)
    of = replace(job(number=3, workload="write"), name=HOSTILE.replace("\u202e", ""))
    outcomes = [outcome(worker), outcome(lost(1, HOSTILE)), outcome(record(2, [operation()]))]
    saved(tmp_path / "run", outcomes, of=of)
    made = Sbench(tmp_path, {})("report", "run", "--format", "html")
    path = tmp_path / "page.html"
    path.write_text(made.out, encoding="utf-8")
    with opened(chromium, path) as page:
        assert "alert(1)" in page.locator("h1").inner_text()
        assert page.locator("img").count() == 0
        inside = page.locator("figure.chart").all_inner_texts()
        assert any("alert(1)" in text for text in inside)
        assert page.evaluate("document.scripts.length") == 2 + page.locator("figure").count()
        # Injected code could neither run nor fetch.
        policy = page.locator("meta[http-equiv]").get_attribute("content") or ""
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2]


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.full)])
def test_thousands_of_functions_are_few_marks_and_few_bytes(
    tmp_path: Path, chromium: Browser, count: int
) -> None:
    rng = np.random.default_rng(1)
    late = np.sort(rng.uniform(0, 20, count))
    took = rng.lognormal(1, 0.4, count)
    outcomes = [
        outcome(
            record(
                index,
                [operation(start_ns=round(at * S), end_ns=round((at + long) * S), size=10**8)],
            )
        )
        for index, (at, long) in enumerate(zip(late.tolist(), took.tolist(), strict=True))
    ]
    saved(tmp_path / "run", outcomes, of=job(number=count, size=10**8))
    made = Sbench(tmp_path, {})("report", "run", "--format", "html")
    path = tmp_path / "page.html"
    path.write_text(made.out, encoding="utf-8")
    assert path.stat().st_size < MOST_BYTES
    began = monotonic_ns()
    with opened(chromium, path) as page:
        sys.stdout.write(f"ready after {(monotonic_ns() - began) / NS_PER_S:.2f} s\n")
        marks = page.evaluate("() => document.querySelectorAll('figure svg *').length")
        assert marks < 20_000
        # The rows of the map end with the last function.
        assert (
            f"{count:,}" in page.locator("figure", has_text="Functions against time").inner_text()
        )
