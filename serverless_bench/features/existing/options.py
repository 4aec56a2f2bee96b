"""The setting that names existing objects."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.job.meaning import Meaning, Options
from serverless_bench.job.workload import Trait


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingOptions(Options):
    """Objects that sbench did not write.

    Parameters
    ----------
    existing
        Prefix of the objects, or ``file://`` and the path of a list; None for those of sbench.
    cold_objects
        Listed objects in storage classes from which they would have to be restored.
    unread_objects
        Other listed objects that are not read: they are empty, or a key file cannot hold the key.
    """

    existing: Annotated[
        str | None,
        Meaning(
            "Read objects that sbench did not write, unverified: all with this prefix, or those of"
            ' a key file or an S3 Inventory; see "Existing objects" in the documentation.',
            own=True,
            names_objects=True,
            metavar="PREFIX|file://PATH",
            trait=Trait.TAKES_EXISTING,
        ),
    ] = None
    cold_objects: int = 0
    unread_objects: int = 0
