"""Verdicts on real servers: ``servers.csv``, the table of the page.

``python -m serverless_bench.features.qualify.tests.servers moto rclone`` checks these servers
again, and keeps the other columns.
"""

import io
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from docs.tables import read_rows, write_rows
from serverless_bench.features.qualify.guarantees import GUARANTEES
from serverless_bench.features.qualify.measure import measure
from serverless_bench.features.qualify.result import CheckedGuarantee
from serverless_bench.features.qualify.trial import Lab
from serverless_bench.job.target import Target
from tests.probes.stores import STORES
from tests.stores.servers import Server, credentials

FILE: Final = Path(__file__).parents[1] / "servers.csv"
SAME: Final = "="
"""Stands for ``safe``."""
_BUDGET_S: Final = 120.0


def check(server: Server) -> list[CheckedGuarantee]:
    """Check all guarantees of a server, and that nothing is left in it."""
    target = Target(
        bucket=server.bucket,
        prefix=f"q{os.getpid()}/",
        endpoint_url=server.endpoint_url,
        region="us-east-1",
    )
    with credentials(server.environment):
        lab = Lab(targets=[target], functions=8, ledger=io.StringIO())
        try:
            return measure(lab, GUARANTEES, budget_s=_BUDGET_S, show=lambda _: None)
        finally:
            assert lab.close() == 0


def words(findings: Sequence[CheckedGuarantee]) -> Mapping[str, str]:
    """Return the verdicts by guarantee, as in the file."""
    return {
        one.guarantee.name: SAME if one.verdict == "safe" else str(one.verdict) for one in findings
    }


def recorded() -> dict[str, dict[str, str]]:
    """Return the verdicts in the file by server and guarantee."""
    heading, *rows = read_rows(FILE)
    return {
        heading[column]: {row[0]: row[column] for row in rows} for column in range(3, len(heading))
    }


def file_rows(columns: Mapping[str, Mapping[str, str]]) -> Iterator[Sequence[str]]:
    """Yield the rows of the file."""
    yield ("guarantee", "sentence", "relied on by", *columns)
    for one in GUARANTEES:
        verdicts = (column.get(one.name, "") for column in columns.values())
        yield (one.name, one.sentence, one.users, *verdicts)


def main(names: Sequence[str]) -> None:
    """Check servers, and write their columns."""
    columns = recorded() if FILE.exists() else {}
    for name in names:
        with (
            tempfile.TemporaryDirectory() as scratch,
            STORES[name].start(Path(scratch)) as server,
        ):
            found = check(server)
        columns[name] = dict(words(found))
        for one in found:
            if one.reason:
                sys.stdout.write(f"{name} {one.guarantee.name}: {one.verdict}, {one.reason}\n")
    write_rows(FILE, file_rows({name: columns.get(name, {}) for name in STORES}))


if __name__ == "__main__":
    main(sys.argv[1:])
