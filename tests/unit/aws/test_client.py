"""Clients of AWS use API descriptions that a process reads once."""

import botocore.loaders
import botocore.session
import pytest

from serverless_bench.aws.client import open_session


def test_sessions_share_descriptions_from_the_same_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # All sessions of tests share the loader (tests/conftest.py); in the product only open_session
    # does.
    monkeypatch.setattr(botocore.session, "create_loader", botocore.loaders.create_loader)
    first, second = (open_session().get_component("data_loader") for _ in range(2))
    assert first is second
    monkeypatch.setenv("AWS_DATA_PATH", "/elsewhere")
    assert "/elsewhere" in open_session().get_component("data_loader").search_paths
    assert "/elsewhere" not in first.search_paths
