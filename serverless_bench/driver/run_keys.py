"""Determine the keys that a run may have created from the ledger and the job.

The ledger alone is trusted only if a seal of this user covers it. Otherwise the keys are derived
from the job and the run id: derived keys that are missing in the ledger are included, and
additional keys in the ledger are ignored.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, islice
from typing import Final

from serverless_bench.base.units import format_count
from serverless_bench.driver.origin import is_ours, is_sealed
from serverless_bench.driver.plan import check_saved, ledger
from serverless_bench.driver.policy import driver_policies_of
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import declared_size, parent_key
from serverless_bench.rundir.digests import FILES, digest_of, file_problems
from serverless_bench.rundir.listing import HEADER, LEDGER
from serverless_bench.rundir.run import Run

_LATER_LAUNCHES: Final = 12
"""Waves after the last recorded one with recognized keys; each driver adds three at most."""
_MOST_UNPROVEN: Final = 20_000
"""Limit of derived keys, beyond twice the ledger, for a job without a seal of this user."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKeys:
    """Keys that a run may have created.

    Parameters
    ----------
    keys
        Keys in the order of the ledger.
    problems
        Missing or contradictory data in the files, one sentence each; if there are any, the keys
        may be incomplete.
    """

    keys: tuple[str, ...]
    problems: tuple[str, ...] = ()


def run_keys(run: Run) -> RunKeys:
    """Return the keys that a run may have created, and contradictions in the files.

    Raises
    ------
    ArchiveError
        If a file cannot be read; or if keys have to be derived from an invalid job.
    PluginError
        If keys have to be derived, and the run's workload, executor or client is missing.
    """
    problems, listed, ours = file_problems(run), dict.fromkeys(run.ledger()), is_ours(run.path)
    if ours and _is_proven(run):
        return RunKeys(keys=tuple(listed), problems=problems)
    check_saved(run)
    most = None if ours else 2 * len(listed) + _MOST_UNPROVEN
    planned = dict.fromkeys(islice(planned_keys(run, range(1)), most))
    missing = sum(key not in listed for key in planned)
    if len(planned) == most:
        problems += (f"{HEADER} asks for more than {most} keys, {LEDGER} has {len(listed)}",)
    elif missing and not any(problem.startswith(LEDGER) for problem in problems):
        problems += (f"{LEDGER} lacks {missing} of the {len(planned)} keys of the job",)
    later_launches = islice(planned_keys(run, range(1, 1 + _last_wave(run))), most)
    left_keys = chain.from_iterable(each.left_keys(run) for each in driver_policies_of(run.job))
    planned |= dict.fromkeys((*later_launches, *left_keys))
    strange = [key for key in listed if key not in planned]
    later = later_keys(run, strange)
    if refused := set(strange).difference(later):
        strangers = format_count(len(refused), "key")
        examples = ", ".join(map(repr, sorted(refused)[:_SHOWN]))
        problems += (f"{LEDGER} has {strangers} that the job cannot have made: {examples}",)
    return RunKeys(keys=(*planned, *later), problems=problems)


def planned_keys(run: Run, waves: Iterable[int]) -> Iterator[str]:
    """Yield the keys that the functions of a run may create in some of its launches.

    The functions of a later launch are not recorded: the keys of all functions are yielded.
    """
    for wave in waves:
        launched = invocation_specs(
            run.job, run_id=run.run_id, created_ns=run.created_ns, wave=wave
        )
        yield from ledger(run.job, launched)


def later_keys(run: Run, keys: Collection[str]) -> list[str]:
    """Return the keys that belong to launches which the run's files do not mention."""
    wanted = {
        key
        for key in keys
        # Any other key does not have the form of a key of this run.
        if run.run_id in key or declared_size(parent_key(key) or key) is not None
    }
    if not wanted:
        return []
    launches = islice(count(_last_wave(run) + 1), _LATER_LAUNCHES)
    most = None if is_ours(run.path) else _MOST_UNPROVEN * _LATER_LAUNCHES
    # Some workloads use the same keys in all launches.
    planned = islice(planned_keys(run, launches), most)
    return list(dict.fromkeys(key for key in planned if key in wanted))


def _last_wave(run: Run) -> int:
    return max((wave.number for wave in run.waves), default=0)


def _is_proven(run: Run) -> bool:
    """Return whether the ledger matches the latest note with a seal of this user."""
    noted = [stage for stage in run.stages if LEDGER in stage[FILES] and is_sealed(stage)]
    return bool(noted) and digest_of(run.path / LEDGER).to_json() == noted[-1][FILES][LEDGER]
