"""Parameters that are fitted to a run are those of its model."""

from pathlib import Path
from typing import Any

import pytest

from serverless_bench.base.units import KIB
from serverless_bench.features.cost.model import AWS_LAMBDA, LOOPBACK, load_model
from serverless_bench.features.cost.tests.models import changed
from serverless_bench.features.simulation.tests.models import simulated
from tests.commands.command import Call
from tests.house.members import uses

LAW = {"launch": {"cold_s": 3.0, "cold_sigma": 0.4, "setup_s": 0.2, "finish_s": 0.1}}


@uses("workload read")
@pytest.mark.parametrize("kind", ["put", "get"])
def test_a_fit_finds_the_parameters_and_explains_the_run(
    tmp_path: Path, call: Call, kind: str
) -> None:
    store = {f"{kind}_s": 0.05, f"{kind}_sigma": 0.3, "connect_s": 0.5}
    model = changed(AWS_LAMBDA, store={**store, f"{kind}_tail": 0.0, f"{kind}_drift_sigma": 0.0})
    settings: dict[str, Any] = {"objects": 40, "size": 64 * KIB}
    keys = [f"sbench/{n:032x}.{64 * KIB}" for n in range(60 * 40)]
    if kind == "get":
        settings |= {"workload": "read", "size": None, "keys": keys}
    run = simulated(tmp_path / "run", changed(model, **LAW), 60, **settings)
    code, text, err = call("plan", "--fit", str(run.path))
    assert (code, err) == (0, "")
    (tmp_path / "mine.toml").write_text(text)
    fitted = load_model(str(tmp_path / "mine.toml"))
    assert fitted.launch.cold_s == pytest.approx(3.0, rel=0.15)
    assert fitted.launch.cold_sigma == pytest.approx(0.4, rel=0.3)
    assert (fitted.launch.setup_s, fitted.launch.finish_s) == (0.2, 0.1)
    found = {name: getattr(fitted.store, name) for name in store}
    # The differences between functions are a part of sigma.
    assert found == pytest.approx(store, rel=0.25)
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert [line.split()[:4] for line in comments[:2]] == [
        ["#", "A", "function", "took"],
        ["#", "A", "run", "took"],
    ]
    share = int(comments[2].split()[1].rstrip("%"))
    assert 75 <= share <= 100
    assert f"run {run.run_id}: 60 values" in text


def test_rates_of_connections_come_from_large_requests(tmp_path: Path, call: Call) -> None:
    model = changed(LOOPBACK, function={"connection_put_bytes_per_s": 5e6})
    run = simulated(tmp_path / "run", model, 8, mib=2, objects=4)
    _, text, _ = call("plan", "--fit", str(run.path))
    (tmp_path / "mine.toml").write_text(text)
    found = load_model(str(tmp_path / "mine.toml"))
    assert found.function.connection_put_bytes_per_s == pytest.approx(5e6, rel=0.01)
    assert found.store == LOOPBACK.store, "nothing is known of small requests"
    assert 'base = "loopback"' in text


def test_a_few_values_are_no_fit(tmp_path: Path, call: Call) -> None:
    run = simulated(tmp_path / "run", LOOPBACK, 2, mib=1)
    _, text, _ = call("plan", "--fit", str(run.path))
    assert "[store]" not in text
    code, _, err = call("plan", "--fit", "nothing")
    assert code != 0
    assert len(err.splitlines()) == 2
