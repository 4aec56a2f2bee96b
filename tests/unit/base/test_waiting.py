"""What is tried beside busy loops: tests that wait, however they come to it."""

from pathlib import Path

import pytest

from tests.waiting import ROOT, waiting


@pytest.mark.parametrize(
    ("path", "name"),
    [
        pytest.param("integration/clients/test_wire.py", "test_a_head_has_no_body", id="helper"),
        pytest.param("integration/cli/test_own_store.py", "test_", id="shared fixture"),
        pytest.param("unit/base/test_clock.py", "test_", id="clock"),
        pytest.param("contract/test_executors.py", "TestLocal", id="inherited"),
    ],
)
def test_tests_that_wait_are_found(path: str, name: str) -> None:
    assert any(f"::{name}" in found for found in waiting(ROOT / "tests" / path))


@pytest.mark.parametrize("path", ["unit/base/test_units.py", "unit/clients/test_options.py"])
def test_functions_that_only_compute_are_none(path: str) -> None:
    found = ROOT / "tests" / path
    assert found.exists()
    assert [*waiting(found)] == []


def test_a_fixture_for_all_tests_of_a_file_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.waiting.ROOT", tmp_path)
    path = tmp_path / "test_it.py"
    text = (
        "import threading\nimport pytest\n\n@pytest.fixture{}\ndef one():\n    threading.Event()\n"
    )
    path.write_text(text.format("(autouse=True)") + "\ndef test_nothing():\n    pass\n")
    assert [*waiting(path)] == ["test_it.py::test_nothing"]
    other = path.with_name("test_other.py")
    other.write_text(text.format("") + "\ndef test_nothing():\n    pass\n")
    assert [*waiting(other)] == []
