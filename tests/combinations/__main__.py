"""Cases by hand, and the list of those that CI runs.

    python -m tests.combinations '{"client": "boto3", "gate": "1"}'    runs one case
    python -m tests.combinations                                       makes pairs.json anew

What is not said of a case is as usual.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.combinations.covering import Covering, save_pairs, usual
from tests.combinations.factors import FACTORS, REFUSED
from tests.combinations.place import bench_in


def main(told: str) -> None:
    """Run one case."""
    case = {**usual(FACTORS), **json.loads(told)}
    with (
        tempfile.TemporaryDirectory() as directory,
        bench_in(Path(directory), functions=case["executor"] == "lambda") as bench,
    ):
        bench.check(case)
    sys.stdout.write("agrees\n")


if __name__ == "__main__":
    if sys.argv[1:]:
        main(sys.argv[1])
    else:
        save_pairs(FACTORS, Covering(FACTORS, [part for part, _ in REFUSED]).cover())
