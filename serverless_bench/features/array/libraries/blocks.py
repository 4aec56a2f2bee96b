"""Conversion of arrays in memory from and to the bytes of a keystream."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from serverless_bench.features.array.load import ArraySpec

NUMPY_TYPES: Final = {"uint8": "|u1", "uint16": "<u2", "uint32": "<u4", "float32": "<f4"}
"""Little-endian on all machines, as on the store."""


def as_block(data: bytearray, shape: Sequence[int], array: ArraySpec) -> Any:
    """Return ``data`` as the array that the user's program would hold.

    The bytes are not converted: those that are not a valid float remain unchanged. JAX chooses the
    device of its array: an accelerator if it detects one.
    """
    block = np.frombuffer(data, dtype=NUMPY_TYPES[array.dtype]).reshape(shape)
    if array.source != "jax":
        return block
    import jax.numpy as jnp

    return jnp.asarray(block).block_until_ready()


def as_bytes(array: Any) -> memoryview:
    """Return the bytes of an array in C order."""
    return memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
