"""Run every experiment at the small scale, and write its page and its figure.

make experiments
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from serverless_bench.experiments.loading import names

PAGES = Path(__file__).parent / "experiments"
SBENCH = (sys.executable, "-m", "serverless_bench")


def main(asked: list[str]) -> None:
    """Run the experiments with these names, or all of them, one after the other."""
    for name in asked or names():
        with tempfile.TemporaryDirectory() as scratch:
            run(name, scratch)


def run(name: str, scratch: str) -> None:
    """Run one experiment and write its page."""
    picture = PAGES / f"{name}.png"
    how = ("--run-dir", scratch, "--format", "markdown", "--plot", str(picture))
    done = subprocess.run(  # noqa: S603 - our own command
        [*SBENCH, "exp", "run", name, *how], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.stdout:
        command = f"`sbench exp run {name}`"
        page = f"{done.stdout.rstrip()}\n\n![{name}]({picture.name})\n\nMade by {command}.\n"
        (PAGES / f"{name}.md").write_text(page)
    sys.stdout.write(f"{name}: exit code {done.returncode}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
