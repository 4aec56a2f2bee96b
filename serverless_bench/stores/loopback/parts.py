"""Tell whether the parts of an upload make one object.

A part does not say where it belongs: parts may differ in size and come in any order. Its
bytes do, so each is compared with the keystream when it comes, and where it lies is
compared with its neighbours when the upload is completed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from serverless_bench.job.keys import declared_size
from serverless_bench.job.spec import MIN_PART_BYTES
from serverless_bench.stores.loopback.answers import S3Error
from serverless_bench.stores.loopback.inspector import Verdict, matching


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An upload in parts that is still open."""

    upload_id: str
    key: str
    parts: dict[int, Verdict] = field(default_factory=dict)
    """By part number; a part that comes again replaces the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """What the parts make."""

    size: int
    generation: int
    verbatim: bytes | None = None
    """The bytes themselves, of an object that sbench did not make; as in ``Verdict``."""


def etag_of(part: Verdict) -> str:
    """Return the entity tag of a part."""
    place = "unknown" if part.offset is None else f"{part.offset:x}"
    return f'"{place}-{part.size:x}"'


def place(
    key: str, parts: Mapping[int, Verdict], listed: Sequence[tuple[int, str]], *, looks: bool
) -> Placed:
    """Return the object that the listed parts make.

    Parameters
    ----------
    key
        Of the object.
    parts
        Everything that was uploaded.
    listed
        Number and entity tag of each part, as the request to complete has them.
    looks
        False adds up sizes and compares nothing.

    Raises
    ------
    S3Error
        If a part is missing, too small, out of order, or not where its bytes belong.
    """
    numbers = [number for number, _ in listed]
    if not numbers or numbers != sorted(set(numbers)):
        raise S3Error(400, "InvalidPartOrder", "parts have to be listed in ascending order")
    offset, generation = 0, None
    kept = _kept(key, [parts[number] for number in numbers if number in parts])
    for number, etag in listed:
        part = parts.get(number)
        if part is None or etag.strip('"') != etag_of(part).strip('"'):
            raise S3Error(400, "InvalidPart", f"there is no part {number} with this entity tag")
        if part.size < MIN_PART_BYTES and number != numbers[-1]:
            raise S3Error(400, "EntityTooSmall", f"part {number} is smaller than 5 MiB")
        if looks and kept is None:
            generation = _fits(key, number, part, offset, generation)
        offset += part.size
    return Placed(size=offset, generation=generation or 0, verbatim=kept)


def _kept(key: str, parts: Sequence[Verdict]) -> bytes | None:
    """Return the object that its parts make as it is; None if its bytes are to be keystream."""
    short = [part.verbatim for part in parts if part.verbatim is not None]
    foreign = declared_size(key) is None and len(short) == len(parts)
    return b"".join(short) if foreign else None


def _fits(key: str, number: int, part: Verdict, offset: int, generation: int | None) -> int | None:
    """Return the generation of the parts so far, this one included."""
    found_offset, found_generation = part.offset, part.generation
    if part.verbatim is not None:
        keystream = matching(key, offset, memoryview(part.verbatim))
        found_offset = None if keystream is None else offset
        found_generation = None if keystream is None else keystream.generation
    if found_offset != offset:
        raise S3Error(
            400, "BadDigest", f"part {number} holds bytes from {found_offset}, not from {offset}"
        )
    if generation is not None and found_generation != generation:
        raise S3Error(400, "BadDigest", f"part {number} is of another generation")
    return found_generation
