"""Every combination of options runs in small, and agrees with the store's log."""

import secrets
import sys
from collections.abc import Iterator, Mapping
from itertools import combinations

import pytest

from tests.combinations.cases import Bench, reproduced
from tests.combinations.covering import Case, Covering, held_by, load_pairs, usual
from tests.combinations.factors import FACTORS, REFUSED
from tests.combinations.place import bench_in

USUAL = usual(FACTORS)
PARTS = [part for part, _ in REFUSED]
PAIRS = load_pairs(FACTORS)
"""Cases that hold every pair of values of all factors."""
RANDOM = 1000


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with bench_in(tmp_path_factory.mktemp("cases"), functions=True) as made:
        yield made


def name_of(case: Mapping[str, str]) -> str:
    text = [f"{name}={value}" for name, value in case.items() if value != USUAL[name]]
    return ",".join(text).encode("ascii", "replace").decode() or "as usual"


@pytest.mark.on_change("running a job", "serverless_bench/features/audit", "tests/combinations")
@pytest.mark.parametrize("case", PAIRS, ids=name_of)
def test_every_pair_agrees_with_the_store(bench: Bench, case: Case) -> None:
    try:
        bench.check(case)
    except BaseException as exc:
        exc.add_note(reproduced(case))
        raise


@pytest.mark.full
def test_random_combinations_agree_with_the_store(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = secrets.randbits(32)
    with capsys.disabled():
        sys.stdout.write(f"\nseed of the combinations: {seed}\n")
    covering, wrong = Covering(FACTORS, PARTS, seed), []
    for _ in range(RANDOM):
        case = covering.random()
        try:
            bench.check(case)
        except Exception as exc:  # noqa: BLE001 - what it was is said with the others
            wrong.append(f"{reproduced(case)}\n{type(exc).__name__}: {str(exc)[:600]}\n")
    assert not wrong, "\n".join([f"{len(wrong)} of {RANDOM} do not agree", *wrong])


@pytest.mark.parametrize(("part", "words"), REFUSED, ids=[name_of(part) for part in PARTS])
def test_impossible_combinations_are_refused_before_a_start(
    bench: Bench, part: Mapping[str, str], words: str
) -> None:
    ended, asked = bench.refuses({**USUAL, **part})
    assert ended.code in {2, 3}
    assert words in ended.err
    assert asked == 0


def test_every_pair_is_run_or_refused() -> None:
    covering = Covering(FACTORS, PARTS)
    assert all(covering.possible(case) for case in PAIRS)
    missing = covering.pairs()
    for case in PAIRS:
        missing -= held_by(case, missing)
    assert not missing, "python -m tests.combinations makes the list anew"
    # Refused combinations are minimal: without any of its parts, a combination is possible.
    for part in PARTS:
        for rest in combinations(part.items(), len(part) - 1):
            assert covering.complete(dict(rest)) is not None
