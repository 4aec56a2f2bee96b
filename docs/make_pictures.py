"""Make the picture of the README and the saved run of the notebook, from new runs.

make docs
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from serverless_bench import load_run
from serverless_bench.features.plot.picture import figure

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run the demo, keep its run directories, draw them."""
    saved = ROOT / "notebooks" / "saved-run"
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "serverless_bench", "demo", "--name", "saved"]
        subprocess.run([*command, "--run-dir", scratch], check=True)
        for phase in ("write", "read"):
            shutil.rmtree(saved / phase, ignore_errors=True)
            shutil.copytree(
                Path(scratch) / f"saved-{phase}",
                saved / phase,
                ignore=shutil.ignore_patterns("figure.png"),
            )
    figure([load_run(saved / phase) for phase in ("write", "read")]).save(
        ROOT / "docs" / "demo.png"
    )


if __name__ == "__main__":
    main()
