"""Settings of jobs that Lithops runs."""

from dataclasses import dataclass
from typing import Annotated, Final

from serverless_bench.job.defaults import REMOTE
from serverless_bench.job.meaning import Meaning, Options

FUNCTIONS: Final = frozenset(
    {
        "aliyun_fc",
        "aws_lambda",
        "azure_functions",
        "gcp_functions",
        "ibm_cf",
        "openwhisk",
        "oracle_f",
    }
)
"""Backends that bill calls, where a worker that waits costs nothing."""
LONGEST_S: Final = {
    "aliyun_fc": 600,
    "aws_lambda": 900,
    "azure_functions": 1800,
    "gcp_cloudrun": 3600,
    "gcp_functions": 540,
    "ibm_cf": 600,
    "openwhisk": 300,
    "oracle_f": 300,
}
"""Longest timeout of a function: that of its server in Lithops' image for aliyun_fc, the default of
its plan, which Lithops keeps, for azure_functions, of an event of Pub/Sub for gcp_functions,
otherwise the limit of the service; the rest has none."""


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
