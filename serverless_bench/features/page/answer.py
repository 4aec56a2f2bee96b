"""Page of the answer of a series: charts and text."""

from serverless_bench.features.answers.answer import Answer
from serverless_bench.features.page.charts import figure
from serverless_bench.features.page.document import Html, document, tag
from serverless_bench.features.plot.answer_charts import answer_charts


def answer_page(answer: Answer, name: str) -> str:
    """Return the page of an answer.

    Parameters
    ----------
    answer
        The answer of a series.
    name
        Name of the series.
    """
    charts = [figure(chart) for chart in answer_charts(answer)]
    text = tag("pre", ((line, Html("\n")) for line in answer.text))
    report = (
        "Report",
        tag("div", text, class_="scroll", tabindex=0, role="region", aria_label="Report"),
    )
    parts = [("Charts", charts), report] if charts else [report]
    lead = tag("div", tag("p", answer.headline, class_="verdict"))
    return document(f"{answer.command} {name}", lead, parts)
