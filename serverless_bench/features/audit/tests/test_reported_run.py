"""Statements of a run directory about itself, line by line."""

from serverless_bench.features.audit.sources import Row, _asked_again

ASKED = [{"name": "f"}]


def test_functions_were_relaunched_until_the_next_wave_or_the_end() -> None:
    rows: list[Row] = [
        *({"collected_ns": 5}, {"end": {}}),
        # Refused, so no function was launched.
        *({"resumed": {"resumed_ns": 10}}, {"collected_ns": 12}),
        {"end": {"probed": ASKED, "ended_ns": 15}},
        *({"resumed": {"resumed_ns": 20}}, {"wave": {"created_ns": 25}}, {"collected_ns": 28}),
        {"end": {"probed": ASKED, "ended_ns": 30}},
        # No launches were left, so no function was requested.
        *({"resumed": {"resumed_ns": 40}}, {"end": {"ended_ns": 41}}),
    ]
    assert list(_asked_again(rows)) == [(12, 15), (20, 25)]
