"""Settings for the display of a run in progress."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from serverless_bench.errors import UsageError

Style = Literal["auto", "bar", "plain", "none"]
_HERE: Final = "127.0.0.1"
_LARGEST_PORT: Final = 65_535
_ADDRESS: Final = r"(\[[0-9A-Fa-f:.]+\]|[\w.-]*):(\d{1,5})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """Display of a run in progress.

    Examples
    --------
    >>> sbench.Display(style="plain", metrics=":9464").address
    ('127.0.0.1', 9464)
    """

    style: Style = "auto"
    """``bar``: the live view in a terminal or a notebook. ``plain``: a line on standard error every
    5 s, and one at the end. ``auto``: the live view if it is possible, otherwise a line every 10 s.
    ``none``: no display.
    """
    metrics: str = ""
    """Location of metrics for Prometheus: a file, or ``:PORT`` or ``HOST:PORT`` of this machine;
    empty
    for no metrics.
    """

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port for metrics; None if they are written to a file or not at all.

        Raises
        ------
        UsageError
            If the port is invalid.
        """
        match = re.fullmatch(_ADDRESS, self.metrics)
        if match is None:
            return None
        port = int(match[2])
        if not 1 <= port <= _LARGEST_PORT:
            raise UsageError(f"`metrics` {self.metrics}: {port} is not a port", hint="write :9464")
        return match[1].strip("[]") or _HERE, port

    def check(self) -> None:
        """Raise an error for an invalid location of metrics before the run starts.

        Raises
        ------
        UsageError
            If the port is invalid, or the directory does not exist.
        PluginError
            If the library for metrics is missing.
        """
        if not self.metrics:
            return
        path = Path(self.metrics)
        # The file is replaced atomically, which would turn a device into a regular file.
        is_other = path.exists() and not path.is_file()
        if self.address is None and (is_other or not path.parent.is_dir()):
            why = "it is no regular file" if is_other else "there is no such directory"
            raise UsageError(
                f"cannot write `metrics` {self.metrics}: {why}",
                hint="name a file in a directory of yours, or a port as in :9464",
            )
        import serverless_bench.driver.live.metrics  # noqa: F401, PLC0415 - is its library there?
