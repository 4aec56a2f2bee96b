"""Every pair of what can be combined runs small, and agrees with what the store saw."""

import secrets
import sys
from collections.abc import Iterator, Mapping

import pytest

from tests.combinations.cases import Bench, reproduced
from tests.combinations.covering import Case, Covering
from tests.combinations.factors import CLOSE, FACTORS, REFUSED
from tests.combinations.place import bench_in

COVERING = Covering(FACTORS, [part for part, _ in REFUSED])
CI = COVERING.cover(CLOSE)
"""Every value of every factor, and every pair of those that are close."""
SEED = secrets.randbits(32)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench_in(tmp_path_factory.mktemp("cases"), functions=True) as made:
        yield made


def name_of(case: Mapping[str, str]) -> str:
    said = [
        f"{name}={value}" if name not in CLOSE[:3] else value
        for name, value in case.items()
        if value != FACTORS[name][0] or name in CLOSE[:2]
    ]
    return ", ".join(said).encode("ascii", "replace").decode()


def judge(bench: Bench, case: Case) -> None:
    try:
        bench.check(case)
    except BaseException as exc:
        exc.add_note(reproduced(case))
        raise


@pytest.mark.parametrize("case", CI, ids=name_of)
def test_what_is_close_agrees_with_the_store(bench: Bench, case: Case) -> None:
    judge(bench, case)


@pytest.mark.full
def test_every_pair_agrees_with_the_store(bench: Bench) -> None:
    many(bench, COVERING.cover(tuple(FACTORS)))


@pytest.mark.full
def test_random_combinations_agree_with_the_store(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\nseed of the combinations: {SEED}\n")
    draw = Covering(FACTORS, [part for part, _ in REFUSED], SEED)
    many(bench, [draw.random() for _ in range(1000)])


def many(bench: Bench, cases: list[Case]) -> None:
    """Run all, and name all that do not agree."""
    wrong = {}
    for case in cases:
        try:
            bench.check(case)
        except Exception as exc:  # noqa: BLE001 - what it was is said with the others
            wrong[reproduced(case)] = f"{type(exc).__name__}: {exc}"[:600]
    lines = [f"{how}\n{why}\n" for how, why in wrong.items()]
    assert not wrong, "\n".join([f"{len(wrong)} of {len(cases)} do not agree", *lines])


@pytest.mark.parametrize(("part", "words"), REFUSED, ids=[name_of(part) for part, _ in REFUSED])
def test_what_cannot_be_combined_is_refused_before_it_starts(
    bench: Bench, part: Mapping[str, str], words: str
) -> None:
    plain = {name: values[0] for name, values in FACTORS.items()}
    ended, asked = bench.refuses({**plain, **part})
    assert ended.code in {2, 3}
    assert words in ended.err
    assert asked == 0
    # Nothing of it is refused for a reason of its own.
    for name in part:
        others = {each: value for each, value in part.items() if each != name}
        assert COVERING.possible({**plain, **others})


def test_the_cases_hold_every_value_and_every_close_pair() -> None:
    held = {item for case in CI for item in case.items()}
    assert held == {(name, value) for name, values in FACTORS.items() for value in values}
    pairs = COVERING.pairs(CLOSE)
    assert all(any(set(pair) <= set(case.items()) for case in CI) for pair in pairs)
    assert all(COVERING.possible(case) for case in CI)
    # What is absent is what is refused, and nothing else.
    absent = {
        frozenset((*one, *other))
        for one, other in (part.items() for part, _ in REFUSED if len(part) == 2)
    }
    assert len(absent) == sum(len(part) == 2 for part, _ in REFUSED)
