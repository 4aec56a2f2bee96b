"""Parts of pages: escaped markup, distinguishable colours, definitions."""

import io
import re
from pathlib import Path

import numpy as np
import pytest

from serverless_bench.features.page.charts import embedded
from serverless_bench.features.page.document import Html, tag, variables
from serverless_bench.features.page.run import report
from serverless_bench.features.page.run_charts import OF_CAUSE
from serverless_bench.features.page.values import definitions, find, show, terms
from serverless_bench.features.plot import palette
from serverless_bench.features.plot.palette import DARK, HUES, LIGHT
from serverless_bench.features.plot.run_charts import rate_chart
from serverless_bench.metrics.summary import Summary, summarize
from serverless_bench.metrics.timeline import function_spans
from tests.commands.command import Call
from tests.data.runs import S, operation, outcome, record, saved


@pytest.fixture
def summary(tmp_path: Path) -> Summary:
    return summarize(saved(tmp_path / "run", [outcome(record(0, [operation()]))]))


def test_the_chart_of_rates_has_the_median_of_the_report(tmp_path: Path) -> None:
    made = [
        outcome(record(n, [operation(end_ns=S, size=size)]))
        for n, size in enumerate((10**6, 2 * 10**6, 6 * 10**6, 9 * 10**6))
    ]
    run = saved(tmp_path / "run", made)
    rates = np.sort(function_spans(run).bytes_per_s)
    stated = summarize(run).per_function_bytes_per_s
    assert stated is not None
    chart = rate_chart(rates, palette.color("blue"))
    assert chart is not None
    assert f"Median (dashed): {stated['p50'] / 1e6:.3g} MB/s." in chart.says


def luminance(color: str) -> float:
    """WCAG 2.2, "relative luminance"."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_words_have_contrast_on_both_grounds() -> None:
    for name, shades in palette.TEXT.items():
        for shade, ground in zip(shades, (LIGHT.surface, DARK.surface), strict=True):
            assert contrast(shade, ground) >= 4.5, (name, shade)


def test_every_colour_that_is_named_is_there() -> None:
    used = {palette.color_of("x"), *map(palette.nth_error, range(9))}
    used |= {palette.color(name) for name in (*OF_CAUSE.values(), *HUES.values())}
    declared = set(re.findall(r"--(\w+):", variables()))
    assert {name.removeprefix("var(--").removesuffix(")") for name in used} <= declared


def test_other_values_are_text() -> None:
    made = tag("p", "<b>", ["&", tag("i", "x")], class_='"', hidden=True, title=None, data_at=1)
    assert made == '<p class="&quot;" hidden data-at="1">&lt;b&gt;&amp;<i>x</i></p>'
    assert isinstance(made, Html)


def test_data_end_no_script() -> None:
    assert embedded(["</script><!--&"]) == r'["\u003c/script\u003e\u003c!--\u0026"]'


def test_values_have_their_units() -> None:
    assert show(None, "s") == "-"
    assert show(1.5e9, "bytes/s") == "1.50 GB/s"
    assert show(0.25, "s") == "250 ms"
    assert show(12345, "functions") == "12,345"
    assert show(12345, None, "job.seed") == "12345"
    assert (show(0.12345, "ratio"), show(value=True, unit=None), show("a", "s")) == (
        "0.123",
        "yes",
        "a",
    )


def test_a_field_in_an_object_has_the_definition_of_its_section() -> None:
    for path, name in (
        ("sides[1].median", "sides-median"),
        ("comparisons[0].evidence.interval.low", "interval-low"),
        ("differing.target.client[0]", "comparison-differing"),
    ):
        found = find(path, terms(), "comparison")
        assert found is not None
        assert found[0] == name
    assert find("nothing.like.it", terms(), "comparison") is None


def test_a_summary_alone_has_a_page_without_times(summary: Summary) -> None:
    out = io.StringIO()
    report(summary, out)
    assert ">All figures</h2>" in out.getvalue()
    assert ">Over time</h2>" not in out.getvalue()


@pytest.mark.parametrize("command", [("demo",), ("run", "x.toml")])
def test_commands_with_several_runs_make_no_page(call: Call, command: tuple[str, ...]) -> None:
    code, out, err = call(*command, "--format", "html")
    assert (code, out) == (2, "")
    assert (
        "--format html is the report of a single run, but this command makes more than one" in err
    )


def test_the_number_that_a_prediction_is_made_for_is_no_throughput() -> None:
    found = find("throughput_bytes_per_s.usl.predicted.number", terms(), "scale")
    assert found is not None
    assert found[1].unit == "functions"


def test_a_definition_does_not_lean_on_the_one_above_it() -> None:
    figures = [figure for section in definitions("write").values() for figure in section.values()]
    text = " ".join(f"{figure.what} {figure.null}" for figure in figures)
    assert re.findall(r"\bas before|\bthe same (?:of|without|times)\b", text) == []
    assert definitions("write")["report"]["elapsed_s"].null == "without operations"
