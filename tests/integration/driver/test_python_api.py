"""The Python API with stores: the examples of its reference page, its errors and its output."""

import doctest
from pathlib import Path

import pytest

import serverless_bench as api
from docs.make_reference import CHAPTERS, SETUP, documented
from tests.commands.command import Sbench
from tests.house.members import uses
from tests.stores.servers import Server, credentials


@pytest.mark.on_change("docs/reference.md", "python")
def test_the_examples_of_the_reference_page_run(
    sbench: Sbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(sbench.directory)
    known: dict[str, object] = {}
    runner, messages = doctest.DocTestRunner(verbose=False), list[str]()
    with credentials(sbench.environment):
        exec(SETUP, known)  # noqa: S102 - what the page says
        for name in (name for names in CHAPTERS.values() for name in names):
            text = documented(name).sections["Examples"]
            example = doctest.DocTestParser().get_doctest(text, known, name, None, None)
            runner.run(example, out=messages.append, clear_globs=False)
            known.update(example.globs)
    assert not messages, "".join(messages)


@uses("feature check")
def test_results_print_like_the_commands(
    sbench: Sbench, moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Commands in a text name the run as seen from the current folder.
    monkeypatch.chdir(sbench.directory)
    target = api.Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url, prefix="printed/")
    job = api.JobSpec(workload="write", target=target, executor="inline", number=2, size=1000)
    with credentials(moto.environment):
        run = api.run_job(job, sbench.directory / "run")
        assert str(api.summarize(run)) == sbench("report", run.path).out.rstrip("\n")
        checked = sbench("check", run.path).out.splitlines()
        assert str(api.check(run)).splitlines() == checked[1:]
        assert str(api.clean(run)) == "deleted 2 objects, aborted 0 uploads"
        assert str(api.clean(run.path)) == "deleted 0 objects, aborted 0 uploads"


@uses("workload noop")
def test_a_run_goes_into_a_directory_of_its_own(
    tmp_path: Path, moto: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = api.Target(bucket=moto.bucket, endpoint_url=moto.endpoint_url)
    job = api.JobSpec(workload="noop", target=target, executor="inline", number=1)
    first, second = api.run_job(job), api.run_job(job)
    assert first.path.parent == second.path.parent == Path("sbench-runs")
    assert first.path != second.path
    assert api.resume_job(first).run_id == first.run_id


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "http://127.0.0.1:1",
            "127.0.0.1:1 does not answer: ConnectionRefusedError: [Errno 111] Connection refused",
        ),
        (None, "bucket 'missing' does not exist"),
    ],
)
def test_an_unusable_store_raises_and_leaves_no_file(
    tmp_path: Path, moto: Server, url: str | None, message: str
) -> None:
    target = api.Target(bucket="missing", endpoint_url=url or moto.endpoint_url)
    job = api.JobSpec(workload="write", target=target, number=1, size=1000)
    with credentials(moto.environment), pytest.raises(api.SbenchError) as caught:
        api.run_job(job, tmp_path / "run")
    assert (str(caught.value), caught.value.exit_code) == (message, 5)
    assert not (tmp_path / "run").exists()
