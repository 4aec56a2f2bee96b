"""Which keys a run may have made: its ledger, held against the job that made it.

The ledger counts by itself only if a seal of this user covers it. Otherwise the keys that
follow from the job and the run id decide: those that the ledger lacks are asked for as well,
and those that it has besides are left alone.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from serverless_bench.driver.origin import is_ours, is_sealed
from serverless_bench.driver.plan import check_saved, ledger
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.job.keys import declared_size
from serverless_bench.payload.array_layout import array_of
from serverless_bench.rundir.digests import FILES, digest_of, file_problems
from serverless_bench.rundir.listing import HEADER, LEDGER
from serverless_bench.rundir.run import Run
from serverless_bench.units import format_count
from serverless_bench.worker.probe import ProbeSpec

_LATER_LAUNCHES: Final = 12
"""Waves after the last known one whose keys are recognized; each driver adds at most three."""
_MOST_UNPROVEN: Final = 20_000
"""Keys beyond twice its ledger that are derived from a job that nobody here has sealed."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RunKeys:
    """Keys that a run may have made.

    Parameters
    ----------
    keys
        In the order of the ledger.
    problems
        What its files lack or contradict, one sentence each; with any of them, nobody can say
        that these are all keys of the run.
    """

    keys: tuple[str, ...]
    problems: tuple[str, ...] = ()


def run_keys(run: Run) -> RunKeys:
    """Return the keys that a run may have made, and what its files contradict.

    Raises
    ------
    ArchiveError
        If a file cannot be read; or if keys have to be derived, of a job that makes no sense.
    PluginError
        If keys have to be derived, and nobody has the run's workload, executor or client.
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
    again = islice(planned_keys(run, range(1, 1 + _last_wave(run))), most)
    planned |= dict.fromkeys((*again, *_probe_keys(run)))
    strange = [key for key in listed if key not in planned]
    later = later_keys(run, strange)
    if refused := set(strange).difference(later):
        strangers = format_count(len(refused), "key")
        shown = ", ".join(map(repr, sorted(refused)[:_SHOWN]))
        problems += (f"{LEDGER} has {strangers} that the job cannot have made: {shown}",)
    return RunKeys(keys=(*planned, *later), problems=problems)


def planned_keys(run: Run, waves: Iterable[int]) -> Iterator[str]:
    """Yield every key that the functions of a run may create in some of its launches.

    Which functions a launch after the first had is not known: all are meant.
    """
    for wave in waves:
        launched = invocation_specs(
            run.job, run_id=run.run_id, created_ns=run.created_ns, wave=wave
        )
        yield from ledger(run.job, launched)


def _probe_keys(run: Run) -> Iterator[str]:
    """Yield the keys that stand in the ledger if a probe of the functions left its object."""
    spec = ProbeSpec(run_id=run.run_id, target=run.job.target)
    yield from (replace(spec, number=number).mark for number in range(len(run.job.function)))


def later_keys(run: Run, keys: Collection[str]) -> list[str]:
    """Return those of some keys that belong to launches of which no line of the run tells."""
    wanted, last = {key for key in keys if _may_be_of(run, key)}, _last_wave(run)
    if not wanted:
        return []
    launches = range(last + 1, last + 1 + _LATER_LAUNCHES)
    most = None if is_ours(run.path) else _MOST_UNPROVEN * _LATER_LAUNCHES
    # Some workloads have the same keys in every launch.
    planned = islice(planned_keys(run, launches), most)
    return list(dict.fromkeys(key for key in planned if key in wanted))


def _may_be_of(run: Run, key: str) -> bool:
    """Tell whether a key has the form of those that a run makes."""
    return run.run_id in key or declared_size(array_of(key) or key) is not None


def _last_wave(run: Run) -> int:
    return max((wave.number for wave in run.waves), default=0)


def _is_proven(run: Run) -> bool:
    """Tell whether the ledger is the one that the latest stage with a seal of ours notes."""
    noted = [stage for stage in run.stages if LEDGER in stage[FILES] and is_sealed(stage)]
    return bool(noted) and digest_of(run.path / LEDGER).to_json() == noted[-1][FILES][LEDGER]
