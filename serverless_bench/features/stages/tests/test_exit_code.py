"""The exit code of a job file."""

from serverless_bench.features.stages.command import worst
from tests.tables import each_row


@each_row(
    ("codes", "code"),
    [
        ([], 0),
        ([0, 0], 0),
        ([0, 6, 0], 6),
        ([6, 11], 11),
        ([11, 7, 6], 7),
        ([7, 5], 5),
        ([5, 130, 8], 130),
    ],
)
def test_the_worst_stage_gives_the_exit_code(codes: list[int], code: int) -> None:
    assert worst(codes) == code
