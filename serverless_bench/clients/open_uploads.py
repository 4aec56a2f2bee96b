"""Uploads in parts that are neither complete nor given up, as S3 and Google list them."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from serverless_bench.clients.library import check_page
from serverless_bench.clients.s3_xml import document, local_name, texts


@dataclass(frozen=True, slots=True)
class OpenUpload:
    """One of them."""

    key: str
    upload_id: str


def uploads_query(prefix: str, marker: OpenUpload | None) -> str:
    """Return the query of a listing of the uploads below ``prefix`` and behind ``marker``."""
    wanted = {"uploads": "", "prefix": prefix}
    if marker is not None:
        wanted |= {"key-marker": marker.key, "upload-id-marker": marker.upload_id}
    # In the order of their names, as a signature has them.
    return urlencode(sorted(wanted.items()), safe="", quote_via=quote)


def read_uploads(text: bytes, prefix: str) -> tuple[list[OpenUpload], OpenUpload | None]:
    """Return a page of open uploads, and behind which one the next page begins.

    Raises
    ------
    BadResponse
        If the text is no such page.
    """
    listed = document(text, "ListMultipartUploadsResult", "which uploads are open")
    found = [
        OpenUpload(*(next(iter(texts(each, name)), "") for name in ("Key", "UploadId")))
        for each in listed
        if local_name(each) == "Upload"
    ]
    check_page([upload.key for upload in found], prefix, more=False)
    if "true" not in texts(listed, "IsTruncated"):
        return found, None
    names = ("NextKeyMarker", "NextUploadIdMarker")
    return found, OpenUpload(*(next(iter(texts(listed, name)), "") for name in names))
