from pathlib import Path

import pandas as pd

from serverless_bench.features.formats.frames import frames_of
from tests.data.runs import S, lost, operation, outcome, record, saved


def test_frames_are_tidy(tmp_path: Path) -> None:
    one = record(0, [operation(start_ns=S, end_ns=3 * S, size=500)])
    run = saved(tmp_path / "run", [outcome(one), outcome(lost(1, "gone"))])
    found = frames_of(run)
    assert list(found.functions["status"]) == ["ok", "lost"]
    assert found.functions["start"].dt.tz is not None
    assert pd.isna(found.functions["start"].iloc[1])
    (op,) = found.operations.to_dict("records")
    assert (op["bytes"], op["end"] - op["start"]) == (500, pd.Timedelta(seconds=2))
    assert op["first_byte"] is pd.NaT
    assert found.progress["step_bytes"].sum() == 500
    joined = found.operations.join(found.functions[["worker_id"]], on="function")
    assert list(joined["worker_id"]) == ["w0"]
    assert list(found.attempts["status"]) == [200]
