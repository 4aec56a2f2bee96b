"""Settings of jobs that Lithops runs."""

from dataclasses import dataclass
from typing import Annotated

from serverless_bench.job.defaults import REMOTE
from serverless_bench.job.meaning import Meaning, Options


@dataclass(frozen=True, slots=True, kw_only=True)
class LithopsOptions(Options):
    """The use of the credentials in the configuration of Lithops.

    Parameters
    ----------
    lithops_keys
        Whether Lithops may send the keys in its configuration with every call.
    """

    lithops_keys: Annotated[
        bool,
        Meaning(
            "Let Lithops send the keys in its configuration with every call.",
            section=REMOTE,
            after="scheduler",
            by_executor=True,
        ),
    ] = False
