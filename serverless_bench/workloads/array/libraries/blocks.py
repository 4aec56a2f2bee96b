"""Arrays in memory: from the bytes of a keystream, and back."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from serverless_bench.job.load import ArraySpec

NUMPY_TYPES: Final = {"uint8": "|u1", "uint16": "<u2", "uint32": "<u4", "float32": "<f4"}
"""Little-endian on every machine, as on the store."""


def as_block(data: bytearray, shape: Sequence[int], array: ArraySpec) -> Any:  # noqa: ANN401
    """Return ``data`` as the array that the user's program would hold.

    Nothing is converted on the way: bytes that are no number, as floats, stay what they
    are. JAX's array lies where JAX puts it: on an accelerator if it sees one.
    """
    block = np.frombuffer(data, dtype=NUMPY_TYPES[array.dtype]).reshape(shape)
    if array.source != "jax":
        return block
    import jax.numpy as jnp  # noqa: PLC0415 - an extra, and slow to load

    return jnp.asarray(block).block_until_ready()


def as_bytes(array: Any) -> memoryview:  # noqa: ANN401 - whatever a library returns
    """Return the bytes of an array in C order."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return memoryview(flat.view(np.uint8).data)
