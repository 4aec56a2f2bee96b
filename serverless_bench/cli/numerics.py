"""NumPy for a command, without the threads that it does not need."""

import os
import sys
from typing import Final

_THREADS: Final = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import NumPy so that its linear algebra, which nothing here uses, starts no threads.

    They look for work for some milliseconds before they sleep, which costs as much as a
    third of NumPy's import. What is started from here later has them, if it wants them.
    """
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    from serverless_bench.process import environment

    with environment({_THREADS: "1"}):
        import numpy as np

        del np
