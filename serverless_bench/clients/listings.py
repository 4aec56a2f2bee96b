"""The listing of the open uploads in parts of a bucket."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from serverless_bench.clients.library import check_page
from serverless_bench.clients.s3_http import document, first_text, local_name, texts


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """An upload in parts that is neither complete nor aborted."""

    key: str
    upload_id: str


def uploads_query(prefix: str, after: OpenUpload | None) -> str:
    """Return the query of a listing of the uploads below ``prefix`` and after ``after``."""
    marker = after and {"key-marker": after.key, "upload-id-marker": after.upload_id}
    return sorted_query({"uploads": "", "prefix": prefix, **(marker or {})})


def read_uploads(text: bytes, prefix: str) -> tuple[list[OpenUpload], OpenUpload | None]:
    """Return a page of open uploads, and the last upload before the next page.

    Raises
    ------
    BadResponse
        If the text is not such a page.
    """
    listed = document(text, "ListMultipartUploadsResult", "the list of open uploads")
    uploads = [
        OpenUpload(*(first_text(entry, name) for name in ("Key", "UploadId")))
        for entry in listed
        if local_name(entry) == "Upload"
    ]
    check_page([upload.key for upload in uploads], prefix, more=False)
    if "true" not in texts(listed, "IsTruncated"):
        return uploads, None
    names = ("NextKeyMarker", "NextUploadIdMarker")
    return uploads, OpenUpload(*(first_text(listed, name) for name in names))


def sorted_query(wanted: Mapping[str, str]) -> str:
    """Return parameters sorted by name, as required by a signature."""
    return urlencode(sorted(wanted.items()), safe="", quote_via=quote)
