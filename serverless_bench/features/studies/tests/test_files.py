"""The studies that come with sbench: published values, and valid jobs."""

from importlib import import_module

import pytest

from serverless_bench.base.errors import UsageError
from serverless_bench.base.units import MIB
from serverless_bench.clients import CLIENTS
from serverless_bench.clients.options import documented
from serverless_bench.features.studies import SCALES, names
from serverless_bench.features.studies.cells import Cell, make_cells
from serverless_bench.features.studies.definition import PublishedRow, Study
from serverless_bench.features.studies.loading import load_study
from serverless_bench.features.studies.plan import Plan
from serverless_bench.features.studies.settings import check_cell, job_of, prepared_by
from serverless_bench.job.spec import JobSpec
from serverless_bench.job.target import Target
from tests.data.loads import array_in
from tests.house.members import EVERY_CLIENT, skipped_without, uses

NAMES = [
    "concurrency-knee",
    "icechunk-contention",
    "lambda-network",
    "lambda-vpc-fan-in",
    "lithops-object-storage",
    "model-streamer-concurrency",
    "python-range-readers",
    "pywren-2016",
    "pywren-scaling",
    "s3-client-libraries",
    "s3-client-processes",
    "s3-client-threads",
    "s3-client-threads-by-size",
    "sai3-prestat",
    "sai3-range-engine",
    "sebs-flow-parallel-download",
    "skyrise-latency",
    "small-objects-stores",
    "tensorstore-s3-tuning",
    "zarr-reader-concurrency",
    "zarr-writers-append",
    "zarr-writers-write",
]
TABLES = {
    "concurrency-knee": ("Gbps", "GB/s", "time (s)"),
    "icechunk-contention": ("retries", "commit (s)"),
    "lambda-vpc-fan-in": ("MB/s of a function", "GB/s of all"),
    "zarr-reader-concurrency": ("time (s)",),
    "model-streamer-concurrency": ("time (s)",),
    "python-range-readers": ("attempts/s", "failed", "MB/s"),
    "sebs-flow-parallel-download": ("p50 (s)", "p95 (s)"),
    "small-objects-stores": (
        *("reads/s", "read p50", "read p90", "writes/s", "write p50", "write p90", "elapsed (s)"),
        *("read floor", "read mean", "read p95"),
    ),
    "skyrise-latency": (
        *("mean (ms)", "p50 (ms)", "p50 over a day (ms)", "p90 (ms)", "p95 (ms)", "p99 (ms)"),
        *("p99.9 (ms)", "max (ms)"),
    ),
    "pywren-2016": (
        *("n", "ok", "failed", "GB", "elapsed_s", "mean GB/s", "peak GB/s (1 s)"),
        *("p5 MB/s", "p50 MB/s", "p95 MB/s", "t90_s", "start_spread_s"),
    ),
    "pywren-scaling": ("peak_GBs",),
    "lambda-network": ("after the burst (Mbps)",),
    "lithops-object-storage": (
        *("ok", "p50 MB/s", "span s", "total s", "GB/s by span", "peak GB/s"),
    ),
    "sai3-prestat": (
        *("Throughput (ops/s)", "p50 Latency", "p95 Latency", "p99 Latency"),
        "Pre-stat time (ms)",
    ),
    "sai3-range-engine": ("p50", "p50 change", "Throughput (ops/s)", "ops/s change"),
    "zarr-writers-write": ("mean GB/s", "p5", "p95", "memory : data", "threads"),
    "zarr-writers-append": ("mean GB/s", "p5", "p95", "memory : data", "threads"),
    "tensorstore-s3-tuning": ("Steady-state GB/s",),
    "s3-client-threads": ("elapsed (s)", "throughput (MiB/s)", "user CPU (s)", "%CPU"),
    "s3-client-libraries": ("elapsed (s)", "throughput (MiB/s)", "user CPU (s)", "%CPU"),
    "s3-client-processes": (
        *("elapsed (s)", "throughput (MiB/s)", "speedup vs NP=1", "user CPU (s)", "%CPU"),
    ),
    "s3-client-threads-by-size": ("throughput (MiB/s)",),
}
"""Columns of each seed's table that hold figures."""
PUBLISHED = {
    "concurrency-knee": 11,
    "icechunk-contention": 5,
    "lambda-vpc-fan-in": 9,
    "zarr-reader-concurrency": 6,
    "model-streamer-concurrency": 4,
    "python-range-readers": 42,
    "sebs-flow-parallel-download": 42,
    "small-objects-stores": 12,
    "skyrise-latency": 20,
    "pywren-2016": 2,
    "pywren-scaling": 2,
    "lambda-network": 7,
    "lithops-object-storage": 12,
    "sai3-prestat": 4,
    "sai3-range-engine": 8,
    "zarr-writers-write": 3,
    "zarr-writers-append": 2,
    "tensorstore-s3-tuning": 8,
    "s3-client-threads": 5,
    "s3-client-libraries": 3,
    "s3-client-processes": 12,
    "s3-client-threads-by-size": 0,
}
SEED_BYTES = 50_000 * 322_957


def jobs(study: Study, scale: str) -> list[tuple[Cell, JobSpec]]:
    """Every cell that is not marked as unsupported, by every design, and its job."""
    target = Target(bucket="any", endpoint_url="http://any")
    designs = ["full", "one-factor", *(["list"] if study.cells else [])]
    cells = [c for d in designs for c in make_cells(study, scale, design=d)]
    with skipped_without():
        return [
            (cell, job_of(cell.settings, target, name=cell.slug))
            for cell in cells
            if not cell.skipped or cell.not_here
        ]


def size_of(cell: Cell) -> int:
    """Size of the objects that it writes or reads."""
    return check_cell(prepared_by({}, cell.settings)).job.size or 0


def row(study: Study, **at: object) -> PublishedRow:
    (found,) = [row for row in study.published if dict(row.at) == at]
    return found


def figure(row: PublishedRow, name: str) -> float:
    value = row.values[name]
    assert isinstance(value, float)
    return value


def test_all_studies_exist() -> None:
    assert names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_study_has_the_required_texts(name: str) -> None:
    study = load_study(name)
    assert study.errata
    assert study.hypotheses
    assert study.plot
    assert len(study.published) == PUBLISHED[name]
    for scale in SCALES:
        assert study.scales[scale].repeats >= 5
        assert study.scales[scale].about


@pytest.mark.parametrize("name", NAMES)
def test_tables_have_the_columns_of_the_seed(name: str) -> None:
    study = load_study(name)
    headers = [metric.header for metric in study.metrics]
    assert [header for header in headers if header in TABLES[name]] == list(TABLES[name])


@pytest.mark.on_change("serverless_bench/features/studies")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_is_a_job_that_moves_enough(name: str, scale: str) -> None:
    study = load_study(name)
    found = jobs(study, scale)
    assert found
    for cell, job in found:
        operations = job.number * job.objects * job.read_times
        if (array := array_in(job.load)) is None:
            moved = operations * size_of(cell)
        else:
            # A study of arrays is skipped without them.
            from serverless_bench.features.array.load import array_bytes

            moved = operations * array_bytes(array)
        enough = study.scales[scale].min_bytes
        assert moved >= enough or (job.duration and scale == "paper"), cell.label


@pytest.mark.on_change("serverless_bench/features/studies")
@pytest.mark.parametrize("name", NAMES)
def test_every_read_object_is_written_before(name: str) -> None:
    study = load_study(name)
    for scale in SCALES:
        for cell, job in jobs(study, scale):
            if job.workload != "read":
                continue
            assert study.prepare is not None
            made = study.prepare[scale]
            count = int(str(made.get("number", 1))) * int(str(made["objects"]))
            assert count >= job.number * job.objects or cell.name, cell.label


@uses(*EVERY_CLIENT)
def test_all_clients_are_side_by_side() -> None:
    study = load_study("s3-client-libraries")
    assert set(study.axis("client").values["small"]) == set(CLIENTS)
    assert {1, 2} <= set(study.axis("processes").values["small"])


def test_clients_have_the_knobs_that_are_set() -> None:
    study = load_study("s3-client-libraries")
    controlled = set()
    for _, job in jobs(study, "small"):
        assert {n for n, _ in job.target.client_option} <= set(
            documented(CLIENTS.load(job.target.client).info.options)
        )
        if job.target.client_option:
            controlled.add(job.target.client)
    assert {"minio", "obstore", "awscrt"} <= controlled


@uses("workload array")
@pytest.mark.parametrize("name", ["zarr-writers-append", "zarr-writers-write"])
def test_unsupported_features_of_a_library_are_marked(name: str) -> None:
    study = load_study(name)
    features = import_module("serverless_bench.features.array.libraries.base")
    assert set(study.axis("library").values["small"]) == set(features.UNSUPPORTED)
    for cell in make_cells(study, "small"):
        refused = ""
        try:
            check_cell(cell.settings)
        except UsageError as exc:
            refused = str(exc)
        assert bool(refused) == bool(cell.skipped), (cell.label, refused)


@uses("workload array")
def test_read_arrays_are_written_before() -> None:
    study = load_study("zarr-reader-concurrency")
    target = Target(bucket="any", endpoint_url="http://any")
    for scale in SCALES:
        plan = Plan(study=study, scale=scale, repeats=5)
        for cell, job in jobs(study, scale):
            settings = plan.prepared(cell)
            assert settings is not None
            made = array_in(job_of(settings, target, name="prepare").load)
            read = array_in(job.load)
            assert made is not None
            assert read is not None
            alike = [(a.shape, a.chunks, a.driver, a.dtype, a.codec) for a in (made, read)]
            assert alike[0] == alike[1]
            assert (made.operation, read.operation) == ("write", "read")


@uses("workload array")
@pytest.mark.parametrize(
    "name", ["tensorstore-s3-tuning", "zarr-writers-append", "zarr-writers-write"]
)
@pytest.mark.parametrize("scale", SCALES)
def test_arrays_in_s3_use_a_store_without_data(name: str, scale: str) -> None:
    for cell in make_cells(load_study(name), scale):
        expected = "files" if cell.at.get("target") == "file" else "loopback"
        assert cell.settings["store"] == expected, cell.label


def test_writers_have_the_same_codec_chunks_and_bytes() -> None:
    for name in ("zarr-writers-append", "zarr-writers-write"):
        cells = jobs(load_study(name), "small")
        arrays = [(cell.at.get("multiplier"), array_in(job.load)) for cell, job in cells]
        alike = {(n, a.codec, a.chunks, a.shape, a.dtype, a.driver) for n, a in arrays if a}
        assert len(alike) == len({n for n, _ in arrays})


def test_one_factor_is_changed_at_a_time() -> None:
    study = load_study("tensorstore-s3-tuning")
    base, *others = make_cells(study, "small", design="one-factor")
    assert len(others) == 7
    for cell in others:
        assert sum(cell.at[axis] != base.at[axis] for axis in base.at) == 1
    cells = make_cells(study, "small", design="full")
    assert len({tuple(map(str, cell.at.values())) for cell in cells}) == len(cells) == 96


@pytest.mark.on_change("serverless_bench/features/studies")
def test_chunks_have_the_stated_number() -> None:
    study = load_study("tensorstore-s3-tuning")
    for scale in SCALES:
        for cell, job in jobs(study, scale):
            array = array_in(job.load)
            assert array is not None
            counts = [s // c for s, c in zip(array.shape, array.chunks, strict=True)]
            assert counts[0] * counts[1] == cell.at["chunks"]


def test_published_processes_recompute() -> None:
    study = load_study("s3-client-processes")
    for client in study.axis("client").values["paper"]:
        first = row(study, client=client, processes=1)
        for processes in (1, 2, 4, 8):
            here = row(study, client=client, processes=processes)
            speedup = figure(here, "mib_per_s") / figure(first, "mib_per_s")
            # s3dlio's 782 / 503 = 1.5547 is printed as 1.55, and so are all others.
            assert round(speedup, 2) == figure(here, "speedup")
            assert _moved(here) == pytest.approx(SEED_BYTES, rel=0.002)
        efficiency = round(100 * figure(here, "mib_per_s") / figure(first, "mib_per_s") / 8)
        assert efficiency == figure(here, "efficiency")


def _moved(row: PublishedRow) -> float:
    return figure(row, "mib_per_s") * MIB * figure(row, "elapsed_s")


@pytest.mark.parametrize("name", ["s3-client-threads", "s3-client-libraries"])
def test_published_throughput_is_bytes_over_time(name: str) -> None:
    for one in load_study(name).published:
        assert _moved(one) == pytest.approx(SEED_BYTES, rel=0.003)


def test_published_changes_of_the_range_engine_recompute() -> None:
    study = load_study("sai3-range-engine")
    for size in study.axis("size").values["paper"]:
        off, on = (row(study, size=size, engine=engine) for engine in ("off", "on"))
        for metric, change in (("p50_ms", "p50_change"), ("ops_per_s", "ops_change")):
            found = 100 * (figure(on, metric) / figure(off, metric) - 1)
            assert found == pytest.approx(figure(on, change), abs=1)


def test_the_seeds_operations_are_as_many_as_its_workers_allow() -> None:
    """Erratum: 64 workers at 23.8 ms explain the published rate of every size."""
    for one in load_study("sai3-prestat").published:
        assert figure(one, "ops_per_s") == pytest.approx(64e3 / figure(one, "p50_ms"), rel=0.04)


def test_published_retries_are_half_of_the_other_committers() -> None:
    """Erratum: they are (N-1)/2, not N-1."""
    for one in load_study("icechunk-contention").published:
        middle = one.range("retries")
        assert middle is not None
        assert middle[0] == pytest.approx((float(one.at["committers"]) - 1) / 2, rel=0.03)


def test_published_rates_of_functions_in_a_vpc_add_up() -> None:
    study = load_study("lambda-vpc-fan-in")
    for network in ("outside a VPC", "inside a VPC"):
        one = row(study, functions=256, network=network)
        together = one.range("gb_per_s")
        assert together is not None
        assert 256 * figure(one, "mb_per_s") / 1e3 == pytest.approx(together[0], rel=0.005)


def test_published_rates_of_lithops_are_bytes_over_the_span() -> None:
    for one in load_study("lithops-object-storage").published:
        moved = figure(one, "ok") * 512 * MIB / 1e9
        rate = figure(one, "gb_per_s_span")
        assert moved / figure(one, "elapsed_s") == pytest.approx(rate, abs=0.006, rel=0.005)
        total = float(one.note.split(" ")[0])
        assert moved / figure(one, "makespan_s") == pytest.approx(total, rel=0.02)


def test_published_bytes_of_pywren() -> None:
    for one in load_study("pywren-2016").published:
        assert figure(one, "gb") == pytest.approx(1800 * 2000 * MIB / 1e9, abs=0.1)
