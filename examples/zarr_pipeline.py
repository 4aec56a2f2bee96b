"""Your own function as the workload: a small Zarr pipeline, timed and verified by sbench.

Each function writes an image stack as a Zarr array, plane by plane, reads it back with every
byte compared, and computes a projection, which has a line of its own in the report.
Needs Zarr on obstore: pip install 'serverless-bench[local,function,zarr]'
"""

import numpy as np
import obstore
import zarr
from obstore.store import S3Store
from zarr.storage import ObjectStore

from serverless_bench import FunctionContext, custom

PLANES, SIDE = 4, 512
PLANE_BYTES = SIDE * SIDE * 2


def pipeline(context: FunctionContext) -> None:
    """Write, read and reduce one stack of images; this function is sent to the workers."""
    target = context.target
    # It finds its credentials where sbench does: in the environment of the worker.
    store = S3Store(
        target.bucket,
        prefix=context.prefix,
        endpoint=target.endpoint_url,
        region=target.region,
        virtual_hosted_style_request=False,
        client_options={"allow_http": True},
    )
    shape, chunks = (PLANES, SIDE, SIDE), (1, SIDE // 2, SIDE // 2)
    with context.measure("create"):
        stack = zarr.create_array(
            ObjectStore(store), shape=shape, chunks=chunks, dtype="uint16", compressors=None
        )
    content = context.content(context.prefix)
    for number in range(PLANES):
        made = content.read(number * PLANE_BYTES, PLANE_BYTES)
        plane = np.frombuffer(made, dtype="uint16").reshape(SIDE, SIDE)
        with context.measure("write plane", bytes=PLANE_BYTES):
            stack[number] = plane
    highest = np.zeros((SIDE, SIDE), dtype="uint16")
    for number in range(PLANES):
        with context.measure("read plane", bytes=PLANE_BYTES):
            plane = np.asarray(stack[number])
        context.verify(context.prefix, number * PLANE_BYTES, plane)
        with context.measure("project plane"):
            highest = np.maximum(highest, plane)
    # Your function deletes the objects that a library of yours writes.
    obstore.delete(store, [meta["path"] for page in obstore.list(store) for meta in page])


if __name__ == "__main__":
    result = custom(pipeline, number=2, name="zarr")
    operations = result.run.operations
    took_s = (operations["end_ns"] - operations["start_ns"]) / 1e9
    for name in ("create", "write plane", "read plane", "project plane"):
        mine = operations["key"] == name
        moved, verified = (int(operations[n][mine].sum()) for n in ("bytes", "verified_bytes"))
        rate = f"{moved / float(took_s[mine].sum()) / 1e6:.1f} MB/s" if moved else "-"
        p50_ms = float(np.median(took_s[mine])) * 1e3
        print(f"{name:13} {int(mine.sum()):2} x {p50_ms:6.1f} ms, {rate}, {verified} B verified")
    summary = result.summary
    rate = f"{(summary.throughput_bytes_per_s or 0) / 1e6:.1f} MB/s"
    print(f"{summary.ok} of {summary.requested} functions ok, {rate}")
