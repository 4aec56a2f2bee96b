"""Make the picture of the live view: a real terminal in the middle of a run with faults.

python docs/make_live.py        needs tmux; half a minute
"""

import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from serverless_bench.base.clock import sleep
from serverless_bench.features.loopback.process import served

PICTURE: Final = Path(__file__).parents[1] / "serverless_bench" / "features" / "live" / "live.svg"
WIDTH, HEIGHT = 84, 14
FAULTS: Final = (
    *("--latency", "lognormal:4ms,0.5", "--slowdown", "0.02", "--error", "0.01"),
    *("--reset-get", "0.01", "--function-rate", "20MiB"),
)
RUN: Final = (
    *("mixed", "--executor", "local", "--number", "4", "--size", "16KiB", "--duration", "20"),
    *("--objects", "20", "--rate", "600", "--threads", "2", "--retries", "3"),
)
_SHOWN_AFTER_S: Final = 14
_FONT: Final = re.compile(r"@font-face \{\{.*?\n\s*\}\}\n", re.DOTALL)
"""rich's template loads its letters from the network; the reader's own do."""


def main() -> None:
    """Start a store and a run, and look at the terminal while it is under way."""
    with tempfile.TemporaryDirectory() as folder, served(*FAULTS) as url:
        where = ("--endpoint-url", url, "--bucket", "b", "--run-dir", folder, "--name", "shown")
        command = [sys.executable, "-m", "serverless_bench", *RUN, *where]
        screen = on_screen(shlex.join(command), Path(folder))
    found = screen[next(n for n, line in enumerate(screen) if "mixed" in line) :]
    title = f"sbench {RUN[0]}"
    PICTURE.write_text(drawn("\n".join(found).rstrip(), title), encoding="utf-8")


def on_screen(command: str, folder: Path) -> list[str]:
    """Return the lines that tmux has on its screen, with their colours, in the middle."""
    tmux = ("tmux", "-u", "-f", "/dev/null", "-S", str(folder / "tmux"))
    size = ("-x", str(WIDTH), "-y", str(HEIGHT))
    subprocess.run([*tmux, "new-session", "-d", *size, command], check=True)
    try:
        sleep(_SHOWN_AFTER_S)
        capture = [*tmux, "capture-pane", "-p", "-e"]
        shown = subprocess.run(capture, check=True, capture_output=True, text=True)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    return shown.stdout.splitlines()


def drawn(screen: str, title: str) -> str:
    """Return the content of a screen as SVG."""
    with Path("/dev/null").open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print(Text.from_ansi(screen))
    form = _FONT.sub("", CONSOLE_SVG_FORMAT)
    return console.export_svg(title=title, code_format=form, unique_id="live")


if __name__ == "__main__":
    main()
