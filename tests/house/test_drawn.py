"""Every drawing: titles of axes, panels with contents, series that differ, labels in words."""

import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from docs import make_pictures, make_why
from docs.make_experiments import PAGES, report_of
from serverless_bench.features.answers.answer import Drawing
from serverless_bench.features.compare.report import drawings as drawings_of_comparison
from serverless_bench.features.compare.run_comparison import RunComparison, compare
from serverless_bench.features.limit.result import drawings as drawings_of_limit
from serverless_bench.features.limit.tests.test_by_hand import block, result
from serverless_bench.features.page.run import page
from serverless_bench.features.page.runs import comparison_page
from serverless_bench.features.plot.answer_charts import answer_chart
from serverless_bench.features.plot.picture import Picture, column, figure, panel
from serverless_bench.features.scale.fits import drawings as drawings_of_scale
from serverless_bench.features.scale.measure import ScaleFit
from serverless_bench.features.scale.scaling import fit_scaling
from serverless_bench.features.studies.page import page as page_of_study
from serverless_bench.features.studies.plot import picture as picture_of_study
from serverless_bench.features.why.tests.test_why_blocks import MS, answer, put
from serverless_bench.metrics.summary import summarize
from serverless_bench.rundir.listing import HEADER
from serverless_bench.rundir.run import Run, load_run
from tests.data.runs import S, forge, job, operation, outcome, record, saved
from tests.fuzz.seeds import SEEDS
from tests.house.drawn import Node, problems
from tests.house.removed import whole

_SPEC: Final = re.compile(r'<figure.*?<script type="application/json">(.*?)</script>', re.DOTALL)
STUDIES: Final = sorted(path.stem for path in PAGES.glob("*.json"))
COMMITTED: Final[dict[Path, Callable[[], Picture]]] = {
    make_pictures.ROOT / "docs" / "demo.png": make_pictures.picture,
    make_why.FOLDER / "why.png": make_why.picture,
}

pytestmark = [
    whole,
    pytest.mark.on_change(
        "serverless_bench/features/page",
        "serverless_bench/features/plot",
        "serverless_bench/features/studies",
        "serverless_bench/features/why",
    ),
]


def of_page(html: str) -> list[Node]:
    """Return the specifications in a page, with a width."""
    specs = map(json.loads, _SPEC.findall(html))
    return [{**spec, "width": 900, "autosize": "pad"} for spec in specs]


def of_answer(drawings: tuple[Drawing, ...]) -> Node:
    assert drawings
    return column([panel(answer_chart(drawing), "") for drawing in drawings], "").spec


def check(*specs: Node) -> None:
    for spec in specs:
        assert problems(spec) == []


@pytest.mark.parametrize("name", SEEDS)
def test_a_run_has_no_flaw_in_its_picture_and_in_its_page(name: str) -> None:
    run = load_run(SEEDS[name])
    check(figure([run], latency=True).spec, *of_page(page(summarize(run), run)))


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_no_flaw_in_its_picture_and_in_its_page(name: str) -> None:
    report = report_of(name)
    check(picture_of_study(report).spec, *of_page(page_of_study(report)))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> RunComparison:
    root = tmp_path_factory.mktemp("sides")
    for side, took_s in (("a", 1), ("b", 2)):
        for n in range(6):
            one = operation(end_ns=round((took_s + n / 100) * S), size=10**6)
            path = root / side / str(n)
            saved(path, [outcome(record(0, [one]))])
            head = json.loads((path / HEADER).read_text())
            forge(path, {**head, "run_id": f"{head['run_id']}{side}{n}"})
    return compare(root / "a", root / "b")


def test_a_comparison_has_no_flaw(compared: RunComparison) -> None:
    check(of_answer(drawings_of_comparison(compared)), *of_page(comparison_page(compared)))


def test_a_limit_has_no_flaw() -> None:
    blocks = [block(level, [level // 10] * level) for level in (10, 20, 40, 80, 160)]
    check(of_answer(drawings_of_limit(result(*blocks))))


def test_a_scaling_has_no_flaw() -> None:
    runs = {n: [1e8 * n**0.8, 1.1e8 * n**0.8, 0.9e8 * n**0.8] for n in (1, 10, 30, 100, 300)}
    fits = {
        name: fit_scaling(runs, resamples=99)
        for name in ("throughput_bytes_per_s", "steady_bytes_per_s")
    }
    check(of_answer(drawings_of_scale(ScaleFit(fits=fits, simulated=0, complete=True))))


@pytest.fixture(scope="module")
def in_blocks(tmp_path_factory: pytest.TempPathFactory) -> Run:
    def puts(start_ns: int, change: str) -> list[Any]:
        return [put(start_ns, 90 * MS, 500 if change == "bytes" else 1000)]

    return answer(tmp_path_factory.mktemp("why") / "run", job(number=2), puts).run


def test_a_run_in_blocks_shows_elasticities_and_the_value_that_decides(in_blocks: Run) -> None:
    spec = figure([in_blocks]).spec
    check(spec, *of_page(page(summarize(in_blocks), in_blocks)))
    elasticity = spec["vconcat"][-1]
    assert elasticity["layer"][-1]["data"]["values"] == [{"value": 0.5}]


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_committed_picture_is_drawn_from_the_data_beside_it(path: Path) -> None:
    drawn = COMMITTED[path]()
    check(drawn.spec)
    assert pixels(drawn) == pixels_of(path.read_bytes()), "python docs/make_pictures.py --saved"


@pytest.mark.parametrize("name", STUDIES)
def test_the_picture_of_a_study_is_drawn_from_the_figures_beside_it(name: str) -> None:
    drawn = pixels(picture_of_study(report_of(name)))
    assert drawn == pixels_of((PAGES / f"{name}.png").read_bytes()), "make_experiments.py --pages"


def pixels(drawn: Picture) -> bytes:
    return pixels_of(drawn._repr_png_())


def pixels_of(png: bytes) -> bytes:
    """Return the filtered lines of a PNG, whatever its compression."""
    at, data = 8, b""
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += 12 + length
    return zlib.decompress(data)


# The reader itself sees each flaw.

ROWS: Final = [{"n": n, "of": name, "low": n} for n in range(3) for name in ("a", "b")]


def flawed(**more: Any) -> list[str]:
    x = {"field": "n", "type": "quantitative", "title": "functions"}
    y = {"field": "n", "type": "quantitative", "title": "seconds"}
    color = {"field": "of", "type": "nominal"}
    encoding = {"x": x, "y": y, "color": color} | more.pop("encoding", {})
    spec = {"data": {"values": ROWS}, "mark": "point", "encoding": encoding, **more}
    return problems(spec)


def test_a_drawing_without_a_flaw_has_none() -> None:
    assert flawed() == []


def test_titles_of_fields_and_missing_ones_are_seen() -> None:
    quantity = {"field": "n", "type": "quantitative"}
    assert flawed(encoding={"x": {**quantity, "title": "n"}}) == ["an axis has the title 'n'"]
    assert flawed(encoding={"x": {**quantity, "title": None}}) == ["a numeric axis has no title"]
    (wrong,) = flawed(encoding={"x": {**quantity, "title": "low, s, s"}})
    assert wrong == "an axis has the title 'low, s, s'"


def test_empty_panels_and_single_points_of_lines_are_seen() -> None:
    nothing = [{"filter": "datum.n > 5"}]
    assert "a panel is empty" in flawed(transform=nothing)
    point = [{"filter": "datum.n == 1 && datum.of == 'a'"}]
    assert flawed(transform=point, mark="line") == ["a panel is empty"]


def test_series_that_look_alike_and_settings_as_labels_are_seen() -> None:
    scale = {"domain": ["a", "b"], "range": ["#000000", "#000000"]}
    (wrong,) = flawed(encoding={"color": {"field": "of", "type": "nominal", "scale": scale}})
    assert wrong.startswith("2 series look like")
    settings = {"calculate": "'client=' + datum.of", "as": "of"}
    assert flawed(transform=[settings]) == ["a label is 'client=a'", "a label is 'client=b'"]
