"""Arrays in files: finding and removing those of a run."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from serverless_bench.features.array.libraries.base import place
from serverless_bench.features.array.load import METADATA, ArrayLoad
from serverless_bench.features.array.workload import new_arrays
from serverless_bench.job.invocations import invocation_specs
from serverless_bench.rundir.files import failing
from serverless_bench.rundir.run import Run


def remove_arrays(run: Run) -> int:
    """Remove the directories of a run's arrays from this machine.

    Only directories with names derived from the run are removed, and only if they contain Zarr
    metadata.

    Returns
    -------
    int
        Number of directories removed.

    Raises
    ------
    ArchiveError
        If a directory cannot be removed.
    """
    planned = _planned(run)
    folders = [path for path in planned if any((path / name).is_file() for name in METADATA)]
    for folder in folders:
        with failing(f"cannot remove {folder}"):
            shutil.rmtree(folder)
    return len(folders)


def _planned(run: Run) -> Iterator[Path]:
    """Yield the directories of all arrays that any launch of the run may have created."""
    array = ArrayLoad.narrow(run.job.load).array
    if array is None:
        return
    for wave in (0, *(wave.number for wave in run.waves)):
        launched = invocation_specs(
            run.job, run_id=run.run_id, created_ns=run.created_ns, wave=wave
        )
        for invocation in launched:
            yield from (Path(place(array, key)) for key in new_arrays(invocation))
