"""Import of NumPy without the threads of the linear algebra library."""

import os
import sys
from typing import Final

_THREADS: Final = "OPENBLAS_NUM_THREADS"


def load_numpy() -> None:
    """Import NumPy without starting the threads of OpenBLAS, which sbench does not use.

    These threads spin for some milliseconds before they sleep, which costs as much as a third
    of the import of NumPy. Child processes are not affected and may use threads.
    """
    if "numpy" in sys.modules or _THREADS in os.environ:
        return
    from serverless_bench.base.process import environment

    with environment({_THREADS: "1"}):
        import numpy as np

        del np
