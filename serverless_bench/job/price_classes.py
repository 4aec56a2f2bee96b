"""What Amazon S3 charges for a request: as for GET, as for PUT, or nothing.

HEAD costs what GET costs; COPY, LIST and all others cost what PUT costs (Amazon S3 pricing).
Deletions and aborts of uploads are free.
"""

from typing import Final

FREE: Final = frozenset({"abort_multipart", "delete", "delete_many"})
GET_CLASS: Final = frozenset({"get", "head"})
FREE_STATUS: Final = 500
"""From here on an answer costs nothing (Amazon S3 user guide, "Billing for Amazon S3 error
responses")."""
