"""Job files: reading returns the written job, and messages name the mistakes."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serverless_bench.base.errors import UsageError
from serverless_bench.features.stages.job_file import (
    JobFile,
    Kind,
    Stage,
    dump_job_file,
    for_toml,
    load_job_file,
)
from tests.tables import each_row

NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
VALUES = st.one_of(
    st.text(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.lists(st.text(), max_size=3).map(tuple),
)
KEYS = st.text(min_size=1).filter(lambda key: key not in {"name", "kind", "workload", "keys"})
SETTINGS = st.dictionaries(KEYS, VALUES, max_size=4)
STAGES = st.builds(
    Stage,
    name=NAMES,
    kind=st.sampled_from([Kind.PREPARE, Kind.EXECUTE]),
    workload=st.text(min_size=1),
    settings=SETTINGS,
)
CLEANUPS = st.builds(Stage, name=NAMES, kind=st.just(Kind.CLEANUP))
JOBS = st.builds(
    JobFile,
    name=NAMES,
    target=SETTINGS,
    run=SETTINGS,
    stages=st.lists(
        st.one_of(STAGES, CLEANUPS), min_size=1, max_size=4, unique_by=lambda stage: stage.name
    ).map(tuple),
)


@given(job=JOBS, remarks=st.lists(st.text(), max_size=3))
def test_dumped_jobs_are_loaded_unchanged(
    tmp_path_factory: pytest.TempPathFactory, job: JobFile, remarks: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "job.toml"
    path.write_text(dump_job_file(job, remarks), encoding="utf-8", newline="")
    assert load_job_file(path) == job


FILL = '[[stages]]\nname = "fill"\nkind = "prepare"\nworkload = "write"\n'
TIDY = '[[stages]]\nname = "tidy"\nkind = "cleanup"\n'
READ = '[[stages]]\nname = "back"\nkind = "execute"\nworkload = "read"\n'


@each_row(
    ("text", "words"),
    [
        ("=", "cannot read the job file"),
        ("", "there are no [[stages]]"),
        ('name = "x"\nstages = 3', "there are no [[stages]]"),
        (FILL, "the top of the file: name is missing"),
        (f'name = "a/b"\n{FILL}', "name is 'a/b'"),
        (f'name = "x"\nstage = 1\n{FILL}', "unknown key 'stage'"),
        (f'name = "x"\nrun = 3\n{FILL}', "[run]: it must be a table"),
        (
            f'name = "x"\n[run]\nmb = 2020-01-01\n{FILL}',
            "[run]: mb must be text or",
        ),
        (f'name = "x"\n{FILL}{FILL}', "stage 'fill': another stage already has this name"),
        ('name = "x"\n[[stages]]\nname = 1', "stage 1: name is 1"),
        ('name = "x"\n[[stages]]\nname = "s"', "stage 's': kind is missing"),
        (
            'name = "x"\n[[stages]]\nname = "s"\nkind = "run"',
            "kind must be one of prepare, execute, cleanup",
        ),
        ('name = "x"\n[[stages]]\nname = "s"\nkind = "execute"', "workload is missing"),
        (f'name = "x"\n{FILL}keys = 3', "stage 'fill': keys must be text"),
        (f'name = "x"\n{FILL}mb = [1]', "stage 'fill': mb must be text or"),
        (f'name = "x"\n{TIDY}mb = 1', "stage 'tidy': unknown key 'mb'"),
        (f'name = "x"\n{READ}keys = "fill"', "'fill', which is not an earlier stage"),
        (f'name = "x"\n{FILL}{TIDY}{READ}keys = "fill"', "whose objects are deleted by then"),
    ],
)
def test_mistakes_are_named_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as raised:
        load_job_file(path)
    assert words in str(raised.value)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_stages_have_an_end(tmp_path: Path) -> None:
    stages = "".join(f'[[stages]]\nname = "s{n}"\nkind = "cleanup"\n' for n in range(201))
    (tmp_path / "job.toml").write_text(f'name = "j"\n{stages}')
    with pytest.raises(UsageError, match=r"there are 201 .*at most 200 allowed"):
        load_job_file(tmp_path / "job.toml")


@given(st.text(st.characters(codec="utf-8")))
def test_toml_means_the_same(text: str) -> None:
    shown = for_toml(text)
    assert tomllib.loads(f"a = {shown}") == {"a": text}
    assert shown.isprintable()
