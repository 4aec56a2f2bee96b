"""Choose objects that sbench did not write, for a job with ``--existing``.

The module is loaded only for such a job.
"""

import csv
import gzip
import io
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import unquote_plus

import orjson

from serverless_bench.base.errors import PluginError, UsageError
from serverless_bench.base.user_files import open_regular
from serverless_bench.driver.bucket import open_bucket
from serverless_bench.driver.policy import Listing
from serverless_bench.driver.target import embedded_target, resolve
from serverless_bench.job.abilities import Paging
from serverless_bench.job.keys import is_key, listed, read_key_file
from serverless_bench.job.meaning import declared_in
from serverless_bench.job.operations import HARMLESS
from serverless_bench.job.settings import JobSettings, load_of
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from serverless_bench.job.types import wrong
from serverless_bench.job.workload import NEW_OBJECTS, Load, Workload, open_workload
from serverless_bench.worker.object_io import MOST_PAGES

_FILE: Final = "file://"
_COLD: Final = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Storage classes whose objects have to be restored before they can be read."""
_OTHERS: Final = ("key", "key_file", *(name for name in NEW_OBJECTS if name != "prefix"))
"""Settings that name or describe other objects."""
_COLUMNS: Final = "Bucket, Key, Size, StorageClass"
"""Columns of a CSV file without a manifest, which would name them."""


class Existing(Listing):
    """Lists the objects of a job; a job that changes objects is rejected."""

    def check(self, job: JobSpec) -> None:
        """Raise an error for a job that creates or deletes objects."""
        _check_kinds(job.declared, job.load)
        if not job.reads_given:
            raise wrong("size", "does not apply: existing objects have sizes")

    def check_settings(self, settings: JobSettings) -> None:
        """Raise an error for settings of other objects."""
        _check_kinds(open_workload(settings.workload), load_of(settings))
        usual = declared_in(JobSettings)
        for name in _OTHERS:
            if getattr(settings, name) != usual[name].default:
                raise wrong(name, "does not apply: `existing` names the objects")

    def listing(
        self, settings: JobSettings, target: Target
    ) -> tuple[Sequence[str], Mapping[str, Any]]:
        """Return a sample of the listed objects, drawn by the seed, and how many were left out."""
        workload, existing = open_workload(settings.workload), settings.own["existing"]
        if isinstance(workload, Paging):
            # A line is a prefix.
            named = existing.startswith(_FILE)
            path = Path(existing.removeprefix(_FILE))
            return read_key_file(path) if named else [existing], {}
        left_out, lines = Counter[str](), list[str]()
        for key, size, storage_class in _entries(existing, target):
            line = key if size is None else f"{key}\t{size}"
            if storage_class in _COLD:
                left_out["cold_objects"] += 1
            elif size == 0 or not is_key(line):
                left_out["unread_objects"] += 1
            else:
                lines.append(line)
        if not lines:
            found = ", ".join(f"{count} {name}" for name, count in left_out.items())
            raise wrong("existing", f"{existing!r} names no object to read", hint=found)
        number = settings.number or workload.default_number
        objects = settings.objects or workload.default_objects
        most = len(lines) if number is None else -(-number // (settings.split or 1)) * objects
        return random.Random(settings.seed).sample(lines, min(most, len(lines))), left_out


POLICY: Final = Existing()


def _check_kinds(workload: Workload, load: Load) -> None:
    if changing := sorted({*workload.kinds(load)}.difference(HARMLESS)):
        raise UsageError(
            f"`existing` objects are only read, and the job has {', '.join(changing)}",
            hint="`mix` get=1, or get=3,get_range=1",
            field="existing",
        )


def _entries(existing: str, target: Target) -> Iterator[tuple[str, int | None, str]]:
    """Yield key, size and storage class of the objects that the setting names."""
    if not existing.startswith(_FILE):
        with ExitStack() as stack:
            embedded = target.store is not None
            there = stack.enter_context(embedded_target()) if embedded else resolve(target)
            found, _ = stack.enter_context(open_bucket(there)).survey(existing, MOST_PAGES)
        yield from ((key, size, storage_class) for key, (size, storage_class) in found.items())
        return
    path = Path(existing.removeprefix(_FILE))
    try:
        if path.suffix == ".json":
            with open_regular(path) as file:
                manifest = orjson.loads(file.read())
            for part in manifest["files"]:
                beside = path.parent / Path(part["key"]).name
                yield from _rows(beside, target.bucket, manifest["fileSchema"])
        elif path.name.endswith((".csv", ".csv.gz", ".parquet")):
            yield from _rows(path, target.bucket, _COLUMNS)
        else:
            yield from ((*listed(line), "") for line in read_key_file(path))
    except (OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, csv.Error) as e:
        raise UsageError(
            f"cannot read the list {path}: {e}",
            hint="a key file, or an S3 Inventory: manifest.json, .csv, .csv.gz or .parquet",
        ) from e


def _rows(path: Path, bucket: str, columns: str) -> Iterator[tuple[str, int | None, str]]:
    """Yield the current versions in a file of an inventory."""
    with open_regular(path) as file:
        for cells in _parquet(file) if path.suffix == ".parquet" else _csv(file, path, columns):
            # CSV and Parquet spell the names and the values differently.
            row = {name.strip().replace("_", "").lower(): str(cell) for name, cell in cells.items()}
            if row["bucket"] != bucket:
                raise ValueError(f"it has objects of the bucket {row['bucket']!r}")
            is_old = row.get("islatest", "").lower() == "false"
            if not is_old and row.get("isdeletemarker", "").lower() != "true":
                size = row.get("size", "")
                known = int(size) if size.isdecimal() else None
                yield row["key"], known, row.get("storageclass", "")


def _csv(file: IO[bytes], path: Path, columns: str) -> Iterator[Mapping[str, Any]]:
    data = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
    names = columns.replace(" ", "").split(",")
    with io.TextIOWrapper(data, encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text, names, restkey="rest"):
            yield {**row, "Key": unquote_plus(row["Key"])}


def _parquet(file: IO[bytes]) -> Iterator[Mapping[str, Any]]:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError:
        hint = "pip install 'serverless-bench[parquet]'"
        raise PluginError("an S3 Inventory in Parquet needs PyArrow", hint=hint) from None
    for batch in ParquetFile(file).iter_batches():
        yield from batch.to_pylist()
