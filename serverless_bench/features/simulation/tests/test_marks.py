"""Every display of a simulated run says that it is simulated."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path

import orjson
import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.driver.clean import clean
from serverless_bench.driver.run import resume_job
from serverless_bench.features.compare.report import lines
from serverless_bench.features.compare.run_comparison import compare
from serverless_bench.features.compare.samples import measured_run
from serverless_bench.features.cost.model import AWS_LAMBDA
from serverless_bench.features.simulation.tests.models import simulated
from serverless_bench.metrics.summary import summarize
from serverless_bench.report import REPORTERS
from serverless_bench.report.render import render
from serverless_bench.rundir.run import Run, load_run
from tests.commands.command import Call
from tests.data.pictures import panels, title_of
from tests.house.features import features
from tests.house.members import uses

EXPORTERS: Sequence[str] = (
    import_module("serverless_bench.features.formats.exporters").EXPORTERS.names()
    if "formats" in features()
    else ()
)
MARK = "simulated"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return load_run(simulated(tmp_path_factory.mktemp("runs") / "one", AWS_LAMBDA, 3).path)


def test_run_directory_and_python_objects_are_marked(run: Run) -> None:
    header = orjson.loads((run.path / "run.json").read_bytes())
    assert header["simulated"] == run.simulated == "aws-lambda"
    assert header["job"]["executor"] == MARK
    assert header["provenance"]["model"]["store"]["put_per_s"] == 3500
    assert "simulated with aws-lambda" in repr(run)


@pytest.mark.parametrize("name", REPORTERS.names())
def test_every_reporter_says_so(run: Run, name: str) -> None:
    assert MARK in render(summarize(run), name).lower()


def test_the_headline_begins_with_it_and_the_bill_and_the_store_have_it(run: Run) -> None:
    text = render(summarize(run), "full")
    assert text.startswith("write: SIMULATED (model aws-lambda); not a measurement")
    assert "simulated, as if on AWS Lambda" in " ".join(text.split())
    assert "none: simulated with aws-lambda" in text


@pytest.mark.on_change("serverless_bench/features/simulation")
@pytest.mark.parametrize("name", EXPORTERS)
def test_every_export_says_so_or_is_refused(run: Run, name: str) -> None:
    from serverless_bench.features.formats.export import export

    out = io.BytesIO()
    if name == "pywren":
        with pytest.raises(UsageError, match="cannot mark its run as simulated"):
            export(run, out, format=name)
        return
    export(run, out, format=name)
    if name == "parquet":
        pandas = pytest.importorskip("pandas")
        frame = pandas.read_parquet(io.BytesIO(out.getvalue()))
        assert set(frame["simulated"]) == {"aws-lambda"}
        return
    text = out.getvalue().decode().splitlines()
    assert all("simulated" in line for line in text[1:]), name
    assert "aws-lambda" in text[-1]


@uses("feature plot")
def test_a_picture_and_each_of_its_panels_say_so(run: Run) -> None:
    from serverless_bench.features.plot.picture import figure

    spec = figure([run], latency=True).spec
    assert spec["title"]["text"] == ["SIMULATED (model aws-lambda); not a measurement"]
    titles = [title_of(panel) for panel in panels(spec)]
    assert len(titles) == 3
    assert all(title.startswith("simulated write: ") for title in titles)
    assert "title" not in figure([replace(run, simulated=None)]).spec


def test_a_comparison_says_which_side_is_simulated(run: Run, tmp_path: Path) -> None:
    other = simulated(tmp_path / "other", AWS_LAMBDA, 3, seed=1)
    found = compare(run, other)
    assert [side["simulated"] for side in found.to_json()["sides"]] == [1, 1]
    for style in ("text", "markdown"):
        assert sum("1 run (1 SIMULATED)" in line for line in lines(found, style)) == 2
    assert measured_run(run).settings["executor"] == MARK


@uses("feature check")
def test_a_check_says_so(run: Run) -> None:
    from serverless_bench.features.check.checked_run import check

    found = check(run)
    assert found.passed
    assert str(found).startswith("simulated (model aws-lambda): no requests were sent")
    assert found.to_json()["simulated"] == "aws-lambda"


def test_the_list_of_runs_says_so(run: Run, call: Call) -> None:
    assert "write, simulated" in call("ls", "--run-dir", run.path.parent)[1]
    line = call("ls", "--run-dir", run.path.parent, "--format", "jsonl")[1]
    assert json.loads(line)["simulated"] == "aws-lambda"


@uses("feature scale")
def test_a_fit_of_simulated_runs_says_so(tmp_path: Path, call: Call) -> None:
    for number in (1, 2, 4):
        simulated(tmp_path / "scale" / f"{number}", AWS_LAMBDA, number)
    text = call("scale", "--from", tmp_path / "scale")[1]
    assert "throughput_bytes_per_s, 3 runs SIMULATED" in text
    found = json.loads(call("scale", "--from", tmp_path / "scale", "--format", "json")[1])
    assert found["throughput_bytes_per_s"]["simulated"] == 3


def test_a_simulation_launches_and_deletes_nothing(run: Run, tmp_path: Path) -> None:
    text = (run.path / "records.jsonl").read_text().splitlines()
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "run.json").write_bytes((run.path / "run.json").read_bytes())
    (unfinished / "records.jsonl").write_text(text[0] + "\n")
    for trust in (False, True):
        for act in (partial(resume_job, unfinished), partial(clean, run.path)):
            with pytest.raises(UsageError, match="simulated: sbench has written no object of it"):
                act(trust=trust)
