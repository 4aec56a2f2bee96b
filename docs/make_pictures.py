"""Make the picture of the README and the saved run of the notebook, from new runs.

make docs
python docs/make_pictures.py --saved    the picture from the saved run
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from serverless_bench.features.plot.picture import Picture, figure
from serverless_bench.rundir.run import load_run

ROOT = Path(__file__).parents[1]
SAVED = ROOT / "notebooks" / "saved-run"


def main() -> None:
    """Run the demo, keep its run directories, draw them."""
    if "--saved" not in sys.argv:
        run()
    picture().save(ROOT / "docs" / "demo.png")


def picture() -> Picture:
    """Return the picture of the saved run."""
    return figure([load_run(SAVED / phase) for phase in ("write", "read")])


def run() -> None:
    """Replace the saved run by a new one."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "serverless_bench", "demo", "--name", "saved"]
        subprocess.run([*command, "--run-dir", scratch], check=True)
        for phase in ("write", "read"):
            shutil.rmtree(SAVED / phase, ignore_errors=True)
            shutil.copytree(
                Path(scratch) / f"saved-{phase}",
                SAVED / phase,
                ignore=shutil.ignore_patterns("plot.png"),
            )


if __name__ == "__main__":
    main()
