"""The features: a folder each, and lines in the tables here.

The core asks these tables by name and imports no feature: what a table does not list does not
exist. To remove a feature, delete the folder and the lines.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from serverless_bench.features.ab.turns import ab as ab
    from serverless_bench.features.array.load import ArrayLoad as ArrayLoad
    from serverless_bench.features.array.load import ArraySpec as ArraySpec
    from serverless_bench.features.check.checked_run import CheckedRun as CheckedRun
    from serverless_bench.features.check.checked_run import check as check
    from serverless_bench.features.compare.run_comparison import RunComparison as RunComparison
    from serverless_bench.features.compare.run_comparison import compare as compare
    from serverless_bench.features.conditional.load import ConditionalLoad as ConditionalLoad
    from serverless_bench.features.cost.outlook import JobPlan as JobPlan
    from serverless_bench.features.cost.outlook import plan as plan
    from serverless_bench.features.custom.context import FunctionContext as FunctionContext
    from serverless_bench.features.formats.export import export as export
    from serverless_bench.features.history.check import history_add as history_add
    from serverless_bench.features.history.check import history_check as history_check
    from serverless_bench.features.history.check import history_check_interleaved as history_check_interleaved  # fmt: skip
    from serverless_bench.features.history.showing import HistoryCheck as HistoryCheck
    from serverless_bench.features.limit.measure import limit as limit
    from serverless_bench.features.limit.result import Limit as Limit
    from serverless_bench.features.listing.load import ListLoad as ListLoad
    from serverless_bench.features.parquet.load import ParquetLoad as ParquetLoad
    from serverless_bench.features.plot.picture import Picture as Picture
    from serverless_bench.features.plot.picture import plot as plot
    from serverless_bench.features.python import *  # noqa: F403
    from serverless_bench.features.scale.measure import ScaleFit as ScaleFit
    from serverless_bench.features.scale.measure import scale as scale
    from serverless_bench.features.shuffle.load import ShuffleLoad as ShuffleLoad
    from serverless_bench.features.simulation.simulated_run import simulate as simulate
    from serverless_bench.features.why.measure import why as why
    from serverless_bench.features.why.result import Why as Why


class Command(NamedTuple):
    """A command of a feature."""

    group: str
    """The heading in the list of commands."""
    after: str | None
    """The command of the group that stands before it, None for the first."""
    place: str
    """The command as ``module:attribute``, below this package."""
    looks: bool = False
    """Whether it neither measures nor deletes, in a group of others that do."""


PLUGINS: Final[Mapping[str, Mapping[str, str]]] = {
    "advice": {
        "cloudwatch": "aws.cloudwatch:next_command",
        "why": "why.advice:next_command",
    },
    "after_run": {
        "ceiling": "loopback.flag:CEILING",
        "pickle": "formats.flag:PICKLE",
    },
    "boards": {
        "live": "live.board:LiveBoard",
    },
    "charts": {
        "conditional": "conditional.chart:commits_chart",
        "interventions": "why.chart:elasticity_chart",
        "shuffle": "shuffle.chart:phases_chart",
    },
    "clients": {
        "awscrt": "awscrt.client:AwsCrtClient",
        "minio": "minio.client:MinioClient",
        "obstore": "obstore.client:ObstoreClient",
        "s3dlio": "s3dlio.client:S3dlioClient",
        "s3torchconnector": "s3torchconnector.client:S3TorchConnectorClient",
    },
    "clouds": {
        "az": "azure.client:CLOUD",
        "gs": "google.client:CLOUD",
    },
    "displays": {
        "live": "live.progress:shown",
    },
    "driver_policies": {
        "barrier": "barrier.opening:OPENING",
        "control": "remote.cleaning:CLEANING",
        "existing": "existing.policy:POLICY",
        "hedge": "hedging.check:CHECK",
        "sse": "encryption.check:CHECK",
        "until_stable": "until_stable.policy:POLICY",
    },
    "executors": {
        "dask": "dask.executor:DaskExecutor",
        "lambda": "aws_lambda.executor:LambdaExecutor",
        "lithops": "lithops.executor:LithopsExecutor",
        "workers": "workers.executor:WorkersExecutor",
    },
    "networks": {
        "lambda": "aws.lambda_network:published_rates",
    },
    "parts": {
        "barrier": "barrier.part:PART",
        "bill": "cost.part:PART",
        "bottleneck": "bottleneck.part:PART",
        "cloudwatch": "aws.cloudwatch:PART",
        "deliveries": "remote.deliveries:PART",
        "existing": "existing.part:PART",
        "hedging": "hedging.part:PART",
        "libraries": "array.part:PART",
        "stability": "until_stable.part:PART",
    },
    "policies": {
        "barrier": "barrier.policy:BARRIER",
        "hedge": "hedging.policy:HEDGED_READS",
        "interventions": "why.interventions:Interventions",
    },
    "races": {
        "wire": "hedging.race:Race",
    },
    "reporters": {
        "html": "page.run:report",
    },
    "sessions": {
        "wire": "express.session:Sessions",
    },
    "settings": {
        "array": "array.settings:ArraySettings",
        "aws": "aws.options:FunctionOptions",
        "barrier": "barrier.policy:BarrierOptions",
        "conditional": "conditional.load:ConditionalLoad",
        "custom": "custom.load:FunctionLoad",
        "dask": "dask.options:DaskOptions",
        "encryption": "encryption.options:EncryptionOptions",
        "existing": "existing.options:ExistingOptions",
        "hedge": "hedging.options:HedgingOptions",
        "list": "listing.load:ListLoad",
        "lithops": "lithops.options:LithopsOptions",
        "parquet": "parquet.load:ParquetLoad",
        "remote": "remote.options:RemoteOptions",
        "replay": "replay.load:ReplaySettings",
        "shuffle": "shuffle.load:ShuffleLoad",
        "until_stable": "until_stable.options:StoppingOptions",
    },
    "tools": {
        "answer": "answers.showing:show_again",
        "answer-in-short": "answers.showing:in_short",
        "answer-page": "page.answer:answer_page",
        "audit": "audit.audit:audit_file",
        "bill": "cost.bill:bill",
        "bottleneck": "bottleneck.part:main_bottleneck",
        "budget": "cost.budget:Budget",
        "cost-left": "stop.cost:cost_left",
        "cost-limit": "cost.limit:cost_limit",
        "directory-bucket": "express.check:check_job",
        "frames": "formats.frames:frames_of",
        "function-load": "custom.pickling:load_of",
        "import": "formats.importing:import_run",
        "load-function": "custom.own_function:load_function",
        "loopback": "loopback.process:served",
        "outlook": "cost.outlook_text:show",
        "pack-function": "custom.pickling:pack",
        "plot": "plot.picture:plot",
        "prices": "cost.prices:load_prices",
        "series-comparison": "studies.series_comparison:compare_series",
        "simulation": "simulation.command:simulate_plan",
        "versions": "versions.kept:kept_versions",
        "zone": "express.check:check_zone",
    },
    "workloads": {
        "array": "array.workload:WORKLOAD",
        "conditional": "conditional.workload:WORKLOAD",
        "custom": "custom.workload:WORKLOAD",
        "list": "listing.workload:WORKLOAD",
        "noop": "noop.workload:WORKLOAD",
        "parquet": "parquet.workload:WORKLOAD",
        "replay": "replay.workload:WORKLOAD",
        "shuffle": "shuffle.workload:WORKLOAD",
    },
}
"""Places of plugins, as ``module:attribute`` below this package, by family and name."""
COMMANDS: Final[Mapping[str, Command]] = {
    "demo": Command("Run", None, "demo.command:command"),
    "examples": Command("Run", "clean", "examples.command:command", looks=True),
    "run": Command("Run", "mixed", "stages.command:command"),
    "parquet": Command("Run", "mixed", "parquet.command:command"),
    "shuffle": Command("Run", "parquet", "shuffle.command:command"),
    "conditional": Command("Run", "shuffle", "conditional.command:command"),
    "list": Command("Run", "conditional", "listing.command:command"),
    "replay": Command("Run", "list", "replay.command:command"),
    "array": Command("Run", "replay", "array.command:command"),
    "custom": Command("Run", "array", "custom.command:command"),
    "stop": Command("Run", "resume", "stop.command:command"),
    "convert": Command("Run", "run", "formats.commands.convert:command", looks=True),
    "plot": Command("Results", "report", "plot.command:command"),
    "check": Command("Results", "report", "check.command:command"),
    "import": Command("Results", "plot", "formats.commands.import_:command"),
    "export": Command("Results", "import", "formats.commands.export:command"),
    "ab": Command("Compare", None, "ab.command:command"),
    "compare": Command("Compare", "ab", "compare.command:command", looks=True),
    "scale": Command("Compare", "compare", "scale.command:command"),
    "sweep": Command("Compare", "scale", "sweep.command:command"),
    "qualify": Command("Compare", "sweep", "qualify.command:command"),
    "history": Command("Compare", "qualify", "history.command:command"),
    "limit": Command("Compare", "history", "limit.command:command"),
    "why": Command("Compare", "limit", "why.command:command"),
    "aws": Command("AWS", None, "aws.command:command"),
    "plan": Command("AWS", "aws", "cost.command:command"),
    "doctor": Command("AWS", "plan", "doctor.command:command"),
    "worker": Command("AWS", "doctor", "workers.command:command"),
    "serve": Command("Lab", None, "loopback.command:command"),
    "lambda-host": Command("Lab", "serve", "lambda_host.command:command"),
    "localstack": Command("Lab", "lambda-host", "localstack.command:command"),
    "study": Command("Studies", None, "studies.commands.study:command"),
}
"""The commands, in the order of the help."""
LINES: Final[Mapping[str, str]] = {
    "demo": "Write, read, report and plot, small, on the embedded store.",
    "examples": "List examples, or write them into a folder.",
    "run": "Run the stages of a job file, and delete the objects they wrote.",
    "parquet": "Scan Parquet files: footers, then the chunks of some columns.",
    "shuffle": "Write partitions in some functions, and read them in others.",
    "conditional": "Write to shared keys conditionally, and check that no write is lost.",
    "list": "List keys from many functions, and compare each page with what was written.",
    "replay": "Replay the requests of a log with their original timing.",
    "array": "Write arrays through an array library, append to them, or read them back.",
    "custom": "Call your own function in many functions, and report on its operations.",
    "stop": "Stop the functions of a run, and save their measurements.",
    "convert": "Convert a configuration of sai3-bench to a job file.",
    "plot": "Plot a run, or a write and its read, into a single picture.",
    "check": "Check that the results of a run are possible and repeatable.",
    "import": "Read results of PyWren, Lithops, warp or sai3-bench, and report on them.",
    "export": "Write the operations of a run for warp, PyWren or a table.",
    "ab": "Run two jobs, interleaved, and compare them.",
    "compare": "Test whether one set of runs is faster than another, slower, or the same.",
    "scale": "Run a job with more and more functions, and fit how throughput scales.",
    "sweep": "Measure writes and reads by object size and operations in flight.",
    "qualify": "Check guarantees of a store that tables, locks and backups rely on.",
    "history": "Record runs in a folder for git, and check new runs for regressions.",
    "limit": "Find the highest rate, or number of functions, that meets an objective.",
    "why": "Find the bottleneck of a job by changing one thing at a time in short blocks.",
    "aws": "Create, try and price a stack of Lambda functions for SAM to deploy.",
    "plan": "Estimate the duration and the cost of a job on AWS Lambda.",
    "doctor": "Check this machine, the account and the stack before a run.",
    "worker": "Run functions here for drivers elsewhere, on any machine or container.",
    "serve": "Serve S3 without keeping data, with faults and limits on request.",
    "lambda-host": "Serve AWS Lambda's Invoke API here, with each function in a process.",
    "localstack": "Run LocalStack, with functions as processes, to try a stack here.",
    "study": "Repeat a published study, and show measured next to published values.",
}
"""What each command does, for the list of commands."""
PUBLIC: Final[Mapping[str, str]] = {
    "ArrayLoad": "array.load",
    "ArraySpec": "array.load",
    "CheckedRun": "check.checked_run",
    "ConditionalLoad": "conditional.load",
    "Durations": "python.result",
    "FunctionContext": "custom.context",
    "HistoryCheck": "history.showing",
    "JobPlan": "cost.outlook",
    "Limit": "limit.result",
    "ListLoad": "listing.load",
    "ParquetLoad": "parquet.load",
    "Picture": "plot.picture",
    "Result": "python.result",
    "RunComparison": "compare.run_comparison",
    "ScaleFit": "scale.measure",
    "ShuffleLoad": "shuffle.load",
    "Why": "why.result",
    "ab": "ab.turns",
    "check": "check.checked_run",
    "compare": "compare.run_comparison",
    "export": "formats.export",
    "history_add": "history.check",
    "history_check": "history.check",
    "history_check_interleaved": "history.check",
    "import_results": "python.saved",
    "limit": "limit.measure",
    "load_run": "python.saved",
    "plan": "cost.outlook",
    "plot": "plot.picture",
    "scale": "scale.measure",
    "simulate": "simulation.simulated_run",
    "why": "why.measure",
    **dict.fromkeys(("write", "read", "mixed", *PLUGINS["workloads"]), "python.jobs"),
}
"""Public names of the package that a feature defines, and their modules below this package."""


def full(place: str) -> str:
    """Return the full name of a place below this package."""
    return f"{__name__}.{place}"
