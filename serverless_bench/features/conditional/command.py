"""``sbench conditional``."""

from serverless_bench.cli.job import job_command
from serverless_bench.cli.output.terminal import sections

command = sections(
    {"Workload": "number pattern"}, last={"Workload": "backoff threads warm-up seed"}
)(
    job_command(
        "conditional",
        """Write to shared keys conditionally, and check that no acknowledged write is lost.

    All functions increment registers (If-Match), claim keys (If-None-Match), or append to
    logs. The command then reconstructs the history of each key and checks that it is
    linearizable.
    """,
        objects="Keys that all functions share.",
        operations="Operations per thread; --duration can end increments earlier.",
        prefix="Prefix of all keys.",
    )
)
