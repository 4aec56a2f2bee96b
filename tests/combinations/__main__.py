"""Run one case: ``python -m tests.combinations '{"client": "boto3"}'``.

What is not said is as usual.
"""

import json
import sys
import tempfile
from pathlib import Path

from tests.combinations.factors import FACTORS
from tests.combinations.place import bench_in

if __name__ == "__main__":
    case = {name: values[0] for name, values in FACTORS.items()} | json.loads(sys.argv[1])
    with (
        tempfile.TemporaryDirectory() as directory,
        bench_in(Path(directory), functions=case["executor"] == "lambda") as bench,
    ):
        bench.check(case)
    sys.stdout.write("agrees\n")
