"""``sbench shuffle``."""

from serverless_bench.cli.job import job_command

command = job_command(
    "shuffle",
    """Write partitions in some functions, and read them in others, as a distributed sort does.

    Each mapper writes a partition for each reducer. The report has both phases, the partitions
    that were lost, and the price of stragglers.
    """,
    number="Number of functions: mappers and reducers.",
    mb="MiB of all partitions together.  [default: 64]",
    size="Bytes of all partitions together, as in 2GB, 64MiB or 1000.",
    threads="Partitions that each function writes or reads at the same time.",
)
