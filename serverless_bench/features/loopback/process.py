"""A loopback store in a separate process that stops with the parent."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from serverless_bench.base.errors import StoreError
from serverless_bench.base.process import environment, without_credentials

_CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",
    "AWS_SECURITY_TOKEN": None,
    "AWS_SESSION_TOKEN": None,
}


@contextmanager
def served(*flags: str, credentials: bool = True) -> Iterator[str]:
    """Run ``sbench serve`` for the length of a block, and yield the URL.

    Parameters
    ----------
    flags
        Flags of the command.
    credentials
        Whether to put made-up credentials into the environment meanwhile: the store accepts
        any, but no client starts without.

    Raises
    ------
    StoreError
        If the store does not start.
    """
    with environment(_CREDENTIALS if credentials else {}):
        # The user's defaults are for servers that the user starts.
        kept = {k: v for k, v in without_credentials().items() if not k.startswith("SBENCH_")}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "serverless_bench", "serve", *flags],
            env={**kept, "SBENCH_CONFIG": os.devnull},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is for the parent.
            start_new_session=True,
        )
        try:
            first_line = process.stdout.readline() if process.stdout else ""
            if not first_line:
                reason = process.stderr.readline().strip() if process.stderr else ""
                raise StoreError(
                    f"the loopback store does not start: {reason}", hint="sbench serve"
                )
            yield first_line.split()[-1]
        finally:
            process.terminate()
            process.communicate()
