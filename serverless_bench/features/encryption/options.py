"""Settings of the encryption of new objects."""

import re
from dataclasses import dataclass
from typing import Annotated, Final

from serverless_bench.job.meaning import Meaning, Options
from serverless_bench.job.types import check_types, wrong

_FORM: Final = re.compile(r"AES256|aws:kms(:[\w:/-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionOptions(Options):
    """The encryption of new objects.

    Parameters
    ----------
    sse
        Same as in ``Target``; None for the default of the bucket.
    """

    sse: Annotated[
        str | None,
        Meaning(
            "Encryption that requests for new objects ask S3 for, records included: AES256, aws:kms"
            ' or aws:kms:KEY; see "Encryption" in the documentation.',
            metavar="AES256|aws:kms[:KEY]",
            after="client-option",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_types(self)
        if self.sse is not None and not _FORM.fullmatch(self.sse):
            raise wrong(
                "sse",
                f"{self.sse!r} is no encryption",
                hint="AES256, aws:kms, or aws:kms: and the id, ARN or alias of a key",
            )
