"""Jobs of stages."""

from serverless_bench.features.stages.prepared import as_key
from tests.tables import each_row


@each_row(("name", "key"), [("part_size", "part-size"), ("run_dir", "run-dir"), ("sam", "`sam`")])
def test_a_file_has_keys_spelled_like_flags(name: str, key: str) -> None:
    assert as_key(name) == key
