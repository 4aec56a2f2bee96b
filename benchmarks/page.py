"""Cost of the page of a run: generation, size, and time until a browser has drawn it.

    python -m benchmarks.page

Generated runs of 1,000 and 10,000 functions, each with 100 operations, as in ``benchmarks.report``.
Generation is CPU time, of the page alone. Ready is wall time from opening the file until all
charts are drawn, in the system's Chromium: median and largest of five openings.
"""

import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from playwright.sync_api import sync_playwright

from benchmarks.common import cpu_s, make_parser
from benchmarks.report import collect
from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.page.run import page
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.run import load_run

OPENINGS = 5
READY_MS = 120_000


def ready_s(path: Path, openings: int) -> list[float]:
    """Return the time of each opening of a page; an empty list without a browser."""
    browsers = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    found, times = next(filter(None, browsers), None), []
    if found is None:
        return []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for _ in range(openings):
            opened = browser.new_page()
            began_ns = monotonic_ns()
            opened.goto(path.as_uri())
            opened.wait_for_selector("html[data-ready]", state="attached", timeout=READY_MS)
            times.append((monotonic_ns() - began_ns) / NS_PER_S)
            opened.close()
        browser.close()
    return times


def parser() -> Any:
    """Return the parser of the command line."""
    return make_parser(__doc__)


def main() -> None:
    """Make the table."""
    flags = parser().parse_args()
    numbers, openings = ((10,), 1) if flags.smallest else ((1_000, 10_000), OPENINGS)
    print("| functions | operations | page MB | make s | ready s | largest |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for functions in numbers:
            directory, made = Path(scratch) / str(functions), Path(scratch) / f"{functions}.html"
            collect(directory, functions)
            run = load_run(directory, detail=False)
            summary = summarize(run)
            before_s = cpu_s()
            made.write_text(page(summary, run), encoding="utf-8")
            make_s, times = cpu_s() - before_s, ready_s(made, openings)
            ready = f"{median(times):.2f} | {max(times):.2f}" if times else "- | -"
            print(
                f"| {functions} | {len(run.operations['bytes'])} |"
                f" {made.stat().st_size / 1e6:.2f} | {make_s:.2f} | {ready} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
