"""Price classes of Amazon S3 requests: like GET, like PUT, or free.

HEAD is billed like GET; COPY, LIST and all others like PUT (Amazon S3 pricing). Deletions and
aborts of uploads are free.
"""

from typing import Final

FREE: Final = frozenset({"abort_multipart", "delete", "delete_many"})
GET_CLASS: Final = frozenset({"get", "head"})
FREE_STATUS: Final = 500
"""Lowest status of responses that are not billed (Amazon S3 user guide, "Billing for Amazon S3
error responses")."""
