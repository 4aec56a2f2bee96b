"""Cases by hand, and the list of the cases for CI.

    python -m tests.combinations '{"client": "boto3", "barrier": "1"}'    runs one case
    python -m tests.combinations                                       writes pairs.json again

Other factors of a case have their defaults.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.combinations.covering import Covering, save_pairs, usual
from tests.combinations.factors import FACTORS, REFUSED
from tests.combinations.place import bench_in


def main(text: str) -> None:
    """Run one case."""
    case = {**usual(FACTORS), **json.loads(text)}
    with (
        tempfile.TemporaryDirectory() as directory,
        bench_in(Path(directory), functions=case["executor"] == "lambda") as bench,
    ):
        bench.check(case)
    sys.stdout.write("agrees\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(description="Cases by hand, and the list of those that CI runs.")
    made.add_argument("case", nargs="?", help="as JSON; none makes the list anew")
    return made


if __name__ == "__main__":
    asked = parser().parse_args().case
    if asked is not None:
        main(asked)
    else:
        save_pairs(FACTORS, Covering(FACTORS, [part for part, _ in REFUSED]).cover())
