"""Scan a file: request the footer, parse it, and request the chosen column chunks."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import CipherContext

from serverless_bench.base.errors import BadResponse
from serverless_bench.features.parquet.layout import (
    END_BYTES,
    MOST_RANGE,
    Layout,
    Span,
    chosen,
    footer_length,
    joined,
    parse,
)
from serverless_bench.features.parquet.load import ParquetLoad
from serverless_bench.job.keys import parent_key
from serverless_bench.job.target import Transfer
from serverless_bench.payload.keystream import Keystream
from serverless_bench.worker.operation_context import (
    DONE,
    OperationContext,
    OperationResult,
    Performer,
)
from serverless_bench.worker.transfer import get_object, in_parallel


class FileContent(Keystream):
    """The bytes of a file: keystream, but for the footer and the headers of pages.

    The keystream is that of the key's folder, whose name declares the size: stores and the audit
    recognize an object that holds nothing else by its key.
    """

    __slots__ = ("_patches", "_starts")

    def __init__(self, key: str, layout: Layout) -> None:
        super().__init__(parent_key(key) or key)
        self._patches = layout.patches
        self._starts = list(layout.patches)

    def _pieces(self, offset: int, length: int) -> "Iterator[tuple[int, int, int, CipherContext]]":
        """Yield the pieces of a range: start, end, offset of the start in the file, and cipher."""
        for start, stop, _, encryptor in super()._pieces(offset, length):
            yield start, stop, offset + start, encryptor

    def _fill(self, piece: bytearray | memoryview, skip: int, encryptor: "CipherContext") -> None:
        """Write the keystream into a piece that starts at ``skip``, and the patches over it."""
        super()._fill(piece, skip, encryptor)
        view, end = memoryview(piece), skip + len(piece)
        first, last = bisect_right(self._starts, skip) - 1, bisect_left(self._starts, end)
        for start in self._starts[first:last]:
            patch = self._patches[start]
            begin, stop = max(start, skip), min(start + len(patch), end)
            if begin < stop:
                view[begin - skip : stop - skip] = patch[begin - start : stop - start]


@lru_cache(maxsize=4)
def ranges(footer: bytes, load: ParquetLoad, most: int) -> tuple[Span, ...]:
    """Return the ranges with the chosen chunks that a footer describes.

    Raises
    ------
    ValueError
        If it is not the footer of a Parquet file.
    """
    return tuple(joined(chosen(parse(footer), load.column_fraction), load.coalesce_gap, most))


class Scanner(Performer):
    """Scans the files of a function, and knows their bytes.

    Parameters
    ----------
    layout
        Layout of all files; None for files that sbench did not write.
    load
        Load of the function.
    transfer
        Its part size is the longest joined range; connections are the requests at a time.
    """

    def __init__(self, layout: Layout | None, load: ParquetLoad, transfer: Transfer) -> None:
        self._layout = layout
        self._load = load
        self._most = transfer.part_size or MOST_RANGE
        self._connections = transfer.connections
        # Each range is one request.
        self._transfer = replace(transfer, part_size=None, connections=1)

    def content(self, key: str, generation: int) -> Keystream:
        """Return the bytes of a file."""
        return (
            super().content(key, generation)
            if self._layout is None
            else FileContent(key, self._layout)
        )

    def prepare(self, context: OperationContext) -> None:
        """Parse the footer that is expected, which all files have: Python takes long for that."""
        if self._layout is not None:
            ranges(self._layout.tail[:-END_BYTES], self._load, self._most)

    def perform(self, context: OperationContext) -> OperationResult:
        """Scan one file.

        Raises
        ------
        Corrupt
            If any byte that it read is wrong.
        OperationError
            If a request failed, or the footer cannot be parsed.
        """
        done: list[OperationContext] = []

        def fetch(index: int) -> None:
            self._get(context, done, wanted[index])

        try:
            wanted = self._read_footer(context, done)
            in_parallel(fetch, len(wanted), self._connections)
        finally:
            for own in sorted(done, key=lambda own: own.spec.offset):
                context.payload_ns += own.payload_ns
                context.verified_bytes += own.verified_bytes
                context.bad.extend(own.bad)
        return DONE

    def _read_footer(
        self, context: OperationContext, done: list[OperationContext]
    ) -> tuple[Span, ...]:
        """Return the ranges to request, according to the footer in the store."""
        size = context.spec.size or context.invocation.sizes[context.spec.key]
        guess = min(self._load.footer_guess, size)
        end = self._get(context, done, Span(size - guess, guess), keep=True)
        try:
            length = footer_length(end, size)
            footer = end[-END_BYTES - length : -END_BYTES]
            if length + END_BYTES > guess:
                # Like PyArrow, read the complete footer a second time.
                footer = self._get(
                    context, done, Span(size - END_BYTES - length, length), keep=True
                )
            wanted = ranges(bytes(footer), self._load, self._most)
        except ValueError as exc:
            raise BadResponse(f"{context.spec.key}: {exc}") from exc
        if wanted and wanted[-1].end > size:
            raise BadResponse(f"{context.spec.key} has chunks beyond its end")
        return wanted

    def _get(
        self,
        context: OperationContext,
        done: list[OperationContext],
        span: Span,
        *,
        keep: bool = False,
    ) -> bytearray:
        """Read and compare a range, in a context of its own: threads read at the same time."""
        spec = replace(context.spec, offset=span.offset, length=span.length)
        own = OperationContext(
            spec, self._transfer, context.retrier, context.invocation, keep_data=keep
        )
        done.append(own)
        return get_object(own).data or bytearray()
