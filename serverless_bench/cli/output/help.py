"""Help that can be read: flags stand in sections, those that are used most first."""

from typing import Final

import click

MANY: Final = 9
"""A command with fewer flags than this has one list of them."""
REST: Final = "Help"
"""The section of flags that stand in no table: ``--help``."""

SECTIONS: Final = {
    "Objective": "p99 errors over lowest highest precision budget block",
    "Series": "scale design only set numbers blocks warm-up-blocks repeats seconds predict metric"
    " threshold tolerance power allow resume report",
    "History": "old new history machine against summary",
    "Workload": "workload number pattern mb size objects key-file key read-times duration"
    " until-stable mix operations backoff range-size split threads rate arrivals sizes layout"
    " compressibility duplication shape chunks shards dtype codec library driver"
    " source path library-option warm-up seed",
    "Target": "bucket endpoint-url prefix region addressing",
    "Transfer": "client part-size connections verify timeout retries block-size stat min-split-size"
    " client-option",
    "Functions": "executor concurrency deadline gate gate-timeout link",
    "Remote functions": "stack memory arch function function-region probe max-cost prices"
    " scheduler slots control-prefix start-timeout quota network-quota function-mb-s vpc"
    " express kms cross-region show-prices",
    "Simulation": "simulate model runs",
    "Checks": "run-seconds write-test",
    "Output": "name format run-dir dry-run keep pickle plot ceiling progress metrics",
}
"""Which flags stand together, and in which order."""
_SERVE: Final = {
    "Server": "port host tls check express strict witness log",
    "Faults, most as a rate from 0 to 1": "slowdown error missing reset-put reset-get truncate"
    " short stale flip flip-bits racy-conditions seed",
    "Speed and limits": "latency queue connection-rate function-burst function-rate"
    " function-memory network-quota function-scale put-limit get-limit stall clock-skew",
}
_LAMBDA_HOST: Final = {
    "Server": "port region log-dir duration scripted",
    "Functions": "function code layer handler preload memory timeout fresh share-packages pass",
    "Limits": "concurrency reserved request-rate burst launch-rate launch-burst event-retries"
    " event-age retry-delay init-timeout cpu-limit cpus no-memory-limit",
    "Faults": "throttle cut duplicate late drop kill late-s seed",
}
_OWN: Final = {"serve": _SERVE, "lambda-host": _LAMBDA_HOST}
"""Commands whose flags mean other things than those of a run."""


def sectioned(command: click.Command) -> list[tuple[str, list[click.Option]]]:
    """Return the flags of a command in their sections, without empty ones."""
    options = [param for param in command.params if isinstance(param, click.Option)]
    named = {max(option.opts, key=len).removeprefix("--"): option for option in options}
    tables = _OWN.get(command.name or "", SECTIONS)
    made = {
        title: [named.pop(name) for name in names.split() if name in named]
        for title, names in tables.items()
    }
    if named and tables is SECTIONS:
        from serverless_bench.settings.names import meanings

        for name, setting in meanings().items():
            if option := named.pop(name.replace("_", "-"), None):
                made["Workload" if setting.own else setting.section].append(option)
    made[REST] = list(named.values())
    return [(title, options) for title, options in made.items() if options]


class Command(click.Command):
    """A command whose help has its flags in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the flags: in sections if there are many."""
        if len(self.params) < MANY:
            super().format_options(ctx, formatter)
            return
        shown = sectioned(self)
        if (help_option := self.get_help_option(ctx)) is not None:
            shown.append((REST, [help_option]))
        for title, options in shown:
            records = [record for option in options if (record := option.get_help_record(ctx))]
            with formatter.section(title):
                formatter.write_dl(records)


class Group(click.Group):
    """A group that knows what was meant by a command that it does not have."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; an unknown one is told with those that are like it."""
        name = str(args[0])
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            if name.startswith("-"):
                raise
            spelled = ctx.token_normalize_func(name) if ctx.token_normalize_func else name
            from difflib import get_close_matches

            alike = " or ".join(map(repr, get_close_matches(spelled, self.list_commands(ctx))))
            question = f" Did you mean {alike}?" if alike else ""
            ctx.fail(f"No such command {name!r}.{question}")


def in_sections(command: click.Command) -> click.Command:
    """Return the command with help in sections: modules of commands need not know of them."""
    if isinstance(command, (click.Group, Command)):
        return command
    made = Command(command.name)
    vars(made).update(vars(command))
    return made
