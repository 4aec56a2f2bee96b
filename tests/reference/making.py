"""Generated run directories for the comparison: their properties are drawn, and written as JSON.

Numbers come from one seed, so that a run of six functions needs few draws of Hypothesis, which
draws the numbers of functions and operations, and the traits of a run.
"""

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from serverless_bench.job.spec import DescribedJob, JobSpec
from serverless_bench.job.workload import WORKLOADS, Load
from tests.data.loads import array_load, load_of
from tests.data.runs import LIKE, TARGET
from tests.reference.columns import columns, shift

S: Final = 10**9
MS: Final = 10**6
ORIGIN: Final = 1_790_000_000 * S
TRAITS: Final = (
    *("broken", "corrupt", "damaged", "dates", "duplicates", "failures", "far", "few at once"),
    *("barrier", "without driver", "killed", "link", "lost", "mixed", "not exact"),
    *(
        "open loop",
        "own function",
        "ranges",
        "resumed",
        "sizes",
        "skewed",
        "slept",
        "slow",
        "steps",
        "stepped",
    ),
    *("threads", "throttled", "unknown", "usages", "warm-up", "waves"),
    *("array", "control", "greedy", "hidden", "https", "imported", "memory", "mix", "other"),
    *("contended", "neighbours", "dropped", "prompt", "shows", "stopped", "straight"),
    *("on AWS", "outside", "two regions"),
    *("alive", "blind", "existing", "hedged", "listed", "metrics", "planned", "scanned"),
    *("shuffled", "timed"),
)
SIZES: Final = (
    *(1, 100, 8192, 8193, 65_536, 65_537, 524_289, 2 << 20, 4 << 20, (4 << 20) + 1, 32 << 20),
    *(100 << 20, 3 << 30),
)
PATTERNS: Final[tuple[Any, ...]] = (
    tuple(import_module("serverless_bench.features.conditional.shared_keys").Pattern)
    if "conditional" in WORKLOADS
    else ()
)
KINDS: Final = ("put", "get", "get_range", "head", "list", "delete", "delete_many", "copy")


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Properties of a generated run."""

    seed: int
    functions: int
    operations: int
    """Maximum number of operations of a function."""
    traits: frozenset[str]


shapes = st.builds(
    Shape,
    seed=st.integers(0, 2**32),
    functions=st.integers(1, 6),
    operations=st.integers(0, 6),
    # With any number of traits: Hypothesis would draw a handful, and faults occur in combination.
    traits=st.integers(0, 28).flatmap(
        lambda count: st.frozensets(st.sampled_from(TRAITS), min_size=count, max_size=count)
    ),
)


def save(path: Path, shape: Shape) -> None:
    """Write a run directory."""
    made = _Maker(shape)
    path.mkdir(parents=True, exist_ok=True)
    (path / "run.json").write_text(json.dumps(made.header()))
    (path / "records.jsonl").write_text("".join(made.lines()))
    # For a write, the reference computes the plan again.
    is_planned = "planned" in shape.traits and made.job.workload == "write"
    (path / "ledger.txt").write_text("key\n" if is_planned else "")
    (path / "keys.txt").write_text("")
    if "metrics" in shape.traits:
        metrics = {
            "throttles": shape.operations,
            "concurrent_executions": shape.functions,
            "account_concurrent_executions": shape.functions if shape.seed % 2 else None,
            "minutes": 1,
            "read_after_s": shape.seed / 7,
        }
        (path / "cloudwatch.json").write_text(json.dumps(metrics))


class _Maker:
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.draw = random.Random(shape.seed)
        self.job = self._job()

    def has(self, trait: str, share: float = 1.0) -> bool:
        return trait in self.shape.traits and self.draw.random() < share

    def header(self) -> dict[str, Any]:
        client: dict[str, Any] = {"attempts": "hidden" if self.has("not exact") else "exact"}
        if not self.has("hidden"):
            signs = ("connection", "content_range", "first_byte", "acknowledged")
            client["shows"] = [
                one for one in signs if not self.has("shows") or self.draw.random() < 0.5
            ]
        if self.has("blind"):
            client["progress"] = self.draw.choice(("none", "body", "wire"))
        source = {"source": "log"} if self.has("imported") else {}
        return {
            "schema": 1,
            "run_id": "run",
            "created_ns": ORIGIN,
            "job": self.job.to_json(),
            "provenance": {"client": client, **source},
            "files": {},
            "sha256": "0" * 64,
        }

    def lines(self) -> list[str]:
        """Return the lines of the records, including those of drivers."""
        count, draw = self.shape.functions, self.draw
        resumed = self.has("resumed") and count > 1
        half = draw.randint(1, count - 1) if resumed else count
        lines: list[Any] = []
        self._launch(lines, range(half), 0, 0)
        if self.has("waves"):
            self._launch(lines, [draw.randrange(count)], 1, draw.randint(2 * S, 6 * S), again=True)
        if self.has("slept"):
            began_ns = ORIGIN + draw.randint(0, 4 * S)
            slept = {"began_ns": began_ns, "ended_ns": began_ns + draw.randint(1, 9 * S)}
            lines.insert(draw.randrange(len(lines) + 1), {"suspended": slept})
        if not (resumed and self.has("killed")):
            lines.append(self._end(6 * S))
        elif self.has("alive"):
            sign = {"alive_ns": ORIGIN + draw.randint(0, 18 * S), "started": draw.randint(0, 9)}
            lines.append({"alive": sign})
        if resumed:
            later = draw.randint(20 * S, 60 * S)
            lines.append({"resumed": {"resumed_ns": ORIGIN + later}})
            if self.has("without driver"):
                # Functions that are active without a driver.
                at = [draw.randint(4 * S, 18 * S) for _ in range(draw.randint(1, 3))]
                lines += [self._outcome(0, 0, at_ns, later) for at_ns in at]
            self._launch(lines, range(half, count), 2, later, again=True)
            lines.append(self._end(later + 9 * S))
        texts = [json.dumps(line) + "\n" for line in lines]
        if self.has("damaged"):
            texts.insert(draw.randrange(len(texts) + 1), texts[0][: len(texts[0]) // 2] + "\n")
            texts.insert(draw.randrange(len(texts) + 1), draw.choice(("7", "null", "[1]")) + "\n")
            # This function does not exist.
            texts.append(json.dumps(self._outcome(count, 0, 0)) + "\n")
        return texts

    def _job(self) -> JobSpec:
        draw, own = self.draw, self.has("own function")
        url = "https://store" if self.has("https") else "http://store"
        # Of the simplest kind: other tests cover the owners of hosts.
        for trait, host in (("on AWS", "s3.us-east-1.amazonaws.com"), ("outside", "store.example")):
            url = f"https://{host}" if self.has(trait) else url
        target = replace(
            TARGET,
            client="boto3" if self.has("other") else "wire",
            endpoint_url=url,
            store="seaweedfs" if self.has("other", 0.5) else None,
            uses_kms=(asks := self.has("kms")),
        )
        of = DescribedJob(
            name="made-up",
            workload="custom" if own else "mixed" if self.has("mixed") else "write",
            objects=draw.randint(1, 3),
            duration=60.0 if self.has("timed") else None,
            target=target,
            control=replace(TARGET, uses_kms=asks, sse="aws:kms" * draw.randint(0, 1))
            if self.has("control")
            else None,
            endpoints=("http://other",) if self.has("other", 0.5) else (),
            number=self.shape.functions,
            concurrency=draw.randint(1, 3) if self.has("few at once") else 100,
            size=None if self.has("sizes") else draw.choice(SIZES),
            network_rate=draw.choice((10**5, 10**7, 10**9)) if self.has("link") else None,
            # Until its duration ends, a function does all of a warm-up; rows made here may not.
            warm_up=int(self.has("warm-up") and not self.has("timed")),
            options={
                "function": ("f",) if "metrics" in self.shape.traits else (),
                "function_region": "eu-west-1" if self.has("two regions") else None,
                "barrier": 0.9 if self.has("barrier") else None,
                "hedge": draw.choice((0.05, "p95")) if self.has("hedged") else None,
                **({"existing": "a/", "cold_objects": 3} if self.has("existing") else {}),
            },
        )
        rate = draw.choice((1.0, 10.0)) if self.has("open loop") and not own else None
        threads = draw.randint(2, 3) if self.has("threads") and not own else 1
        mix: tuple[tuple[str, float], ...] = ()
        if self.has("mix") and not own:
            mix = tuple((kind, draw.choice((1, 5, 0.3))) for kind in draw.sample(KINDS, 3))
        split = 2 if self.has("ranges") else None
        load = Load(threads=threads, rate=rate, mix=mix, split=split)
        common = asdict(load)
        if self.has("array") and not own:
            # The bill for arrays in a bucket counts grids, and has tests of its own.
            billed = self.has("memory") or self.has("on AWS")
            path = "/data" if draw.random() < 0.5 or billed else None
            load = replace(array_load(library="zarr", shape=(8,), chunks=(2,), path=path), **common)
            of = replace(of, workload="array")
        if PATTERNS and self.has("contended") and not own:
            of = replace(of, workload="conditional", size=None)
            load = load_of("conditional", pattern=draw.choice(PATTERNS), **common)
        if self.has("scanned") and not own:
            of = replace(of, workload="parquet", size=1 << 20)
            share, guess = draw.choice((0.5, 1.0)), draw.choice((100, 1000))
            load = load_of(
                "parquet",
                threads=threads,
                rate=rate,
                layout_from=LIKE,
                column_fraction=share,
                footer_guess=guess,
            )
        if self.has("listed") and not own:
            of = replace(of, workload="list", size=draw.choice((None, 100)))
            load = load_of("list", threads=threads, rate=rate, breadth=2)
        if self.has("shuffled") and not own:
            of = replace(of, workload="shuffle", size=None)
            mappers = draw.randint(1, max(1, of.number - 1))
            reducers = max(1, of.number - mappers)
            load = load_of(
                "shuffle", threads=threads, mappers=mappers, reducers=reducers, total=1 << 20
            )
        return replace(of, load=load)

    def _launch(
        self, lines: list[Any], indexes: Any, wave: int, at_ns: int, *, again: bool = False
    ) -> None:
        draw, indexes = self.draw, list(indexes)
        if again:
            created_ns = ORIGIN + at_ns
            of_wave = {"number": wave, "created_ns": created_ns, "count": len(indexes)}
            lines.append({"wave": {**of_wave, "files": {}}})
        for index in indexes:
            if self.has("lost", 0.3):
                if draw.random() < 0.6:
                    came_ns = ORIGIN + at_ns + draw.randint(0, 8 * S)
                    times = {"submitted_ns": ORIGIN + at_ns, "collected_ns": came_ns}
                    lines.append(
                        {**times, "refusals": draw.randint(0, 1), "lost": _lost(index, wave)}
                    )
                if draw.random() < 0.8:
                    continue
            lines.append(self._outcome(index, wave, at_ns))
            if self.has("duplicates", 0.5):
                more = self._outcome(index, wave, at_ns)
                more["record"]["duplicate"] = draw.random() < 0.3
                lines.insert(draw.randrange(len(lines) + 1), more)

    def _end(self, ended_ns: int) -> dict[str, Any]:
        end: dict[str, Any] = {"saved": True, "ended_ns": ORIGIN + ended_ns, "files": {}}
        if self.has("barrier", 0.8):
            end["barrier"] = {"expected": 5, "announced": self.draw.randint(0, 5), "batches": 1}
            end["barrier"] |= {"opened_ns": ORIGIN, "waited_s": 1.0}
        if self.has("far", 0.7):
            end["requests"] = {"get": self.draw.randint(0, 50), "list": self.draw.randint(0, 9)}
            end["requests"]["put"] = self.draw.randint(0, 1)
        if self.has("control", 0.7):
            names = ("head", "list", "put", "get")
            end["store_requests"] = {name: self.draw.randint(0, 3) for name in names}
        if self.has("neighbours", 0.7):
            shared_s = self.draw.randint(0, 9) / 4
            end["neighbours"] = {"commands": self.draw.randint(1, 3), "shared_s": shared_s}
        if self.has("stopped", 0.7):
            end["stopped"] = {"by": "Ctrl-C", "after_s": self.draw.randint(0, 9) / 4}
        if self.has("dates"):
            sent = ORIGIN + self.draw.randint(0, S)
            end["probes"] = [[sent, sent + self.draw.randint(0, S), sent // S]]
        return {"end": end}

    def _outcome(
        self, index: int, wave: int, at_ns: int, collected_ns: int | None = None
    ) -> dict[str, Any]:
        draw = self.draw
        submitted = ORIGIN + at_ns
        skew = draw.choice((-1, 1)) * draw.randint(0, 6 * S) if self.has("skewed", 0.6) else 0
        start = submitted + draw.randint(0, 10 * MS if self.has("prompt") else S)
        tables, end = self._tables(start)
        if self.has("planned", 0.8):
            _give_planned_keys(tables["operations"], self.job, index, wave)
        came = end + draw.randint(0, S) if collected_ns is None else ORIGIN + collected_ns
        worker = draw.randrange(4)
        step = draw.randint(-S, S) if self.has("stepped", 0.4) else 0
        step = draw.randint(0, 9 * S) if self.has("slept", 0.2) else step
        most = 10**7 if self.has("greedy") else 10**5
        cpu = [draw.randint(0, most) / 10**6 for _ in range(2)]
        record = {
            "run_id": "run",
            "index": index,
            "launch": wave,
            "worker_id": f"w{worker}",
            "cold_start": draw.random() < 0.5,
            "version": "0",
            "python": "3",
            "start_ns": start,
            "end_ns": end,
            "wall_start_ns": start,
            "wall_end_ns": end + step,
            "cpu_user_s": cpu[0],
            "cpu_sys_s": cpu[1],
            "dropped": self._dropped(start, end),
            "max_rss_bytes": 0 if draw.random() < 0.05 else draw.randint(10**7, 10**9),
            **tables,
            "error": "deadline: stopped" if self.has("failures", 0.15) else None,
            **self._more(start, end, sum(cpu)),
        }
        shift(record, skew)
        return {
            "submitted_ns": submitted,
            "collected_ns": came,
            "refusals": draw.randint(0, 2) if self.has("far") else 0,
            "record": record,
        }

    def _dropped(self, start: int, end: int) -> dict[str, list[int]]:
        """Return runs of instants, as columns."""
        draw = self.draw
        names = ("first_ns", "last_ns", "count", "until_ns")
        rows = []
        if self.has("dropped", 0.7) and self.job.workload not in {"function", "shuffle"}:
            for _ in range(draw.randint(1, 3)):
                first, count = draw.randint(start, end), draw.randint(1, 40)
                last = first + (draw.randint(0, 2 * S) if count > 1 else 0)
                # A damaged record may have no wait.
                rows.append((first, last, count, last + draw.randint(-MS, S)))
        return {name: [row[n] for row in rows] for n, name in enumerate(names)}

    def _more(self, start: int, end: int, cpu_s: float) -> dict[str, Any]:
        draw, far = self.draw, self.has("far", 0.8)
        gated = self.has("barrier", 0.9)
        born = far and draw.random() < 0.6
        reported = draw.random() < 0.8
        counted = draw.random() < 0.9
        # Busy for so much of a second.
        busy = S if self.has("greedy") else S // 50
        asked = draw.choice((None, 0, 7, 8, 40))
        return {
            "run_wait_ns": draw.choice((None, draw.randint(0, busy))),
            "cpus": draw.randint(1, 4),
            "memory_mib": draw.choice((None, 128, 1769, 4096)) if self.has("memory") else None,
            "generator_bytes_per_s": draw.randint(10**8, 10**10),
            "barrier_wait_ns": draw.randint(0, S) if gated else None,
            "barrier_late": gated and draw.random() < 0.3,
            "delivery": f"d{draw.randint(0, 10**6)}" if far else None,
            "duplicate": False,
            "born_ns": start - draw.randint(0, S) if born else None,
            "import_ns": draw.randint(0, S) if born else None,
            "machine": draw.choice(("x86_64", "aarch64")) if self.has("memory") else None,
            "interpreter_ns": draw.choice((None, draw.randint(0, end - start))),
            "lock_probes": asked,
            "lock_delayed": None if asked is None else draw.randint(0, asked),
            "barrier_puts": draw.randint(1, 2) if gated and counted else None,
            "barrier_gets": draw.randint(0, 9) if gated and counted else None,
            "control_puts": draw.randint(1, 3) if self.has("control") else None,
            "control_gets": draw.randint(0, 1) if self.has("control") else None,
            "measured_cpu_ns": round(cpu_s * S) // draw.randint(1, 9) if reported else None,
        }

    def _tables(self, start: int) -> tuple[dict[str, Any], int]:
        """Return the tables of a record, and when it ended."""
        draw, threads = self.draw, self.job.load.threads
        at = [start + draw.randint(0, 100 * MS) for _ in range(threads)]
        rows: list[dict[str, Any]] = []
        for number in range(draw.randint(0, self.shape.operations)):
            thread = number % threads
            warm = self.has("warm-up", 0.4) and number < threads * 2
            rows.append(self._operation(at[thread], warmup=warm))
            at[thread] = rows[-1]["end_ns"] + draw.randint(0, 50 * MS)
        rows.sort(key=lambda row: row["start_ns"])
        tables: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("attempts", "steps", "bad_ranges", "usages", "accesses")
        }
        for number, row in enumerate(rows):
            row["index"] = number
            for name, of in self._parts(row).items():
                tables[name] += [{"operation": number, **one} for one in of]
        end = max((row["end_ns"] for row in rows), default=start) + draw.randint(0, 10 * MS)
        tables["operations"] = rows
        return {name: columns(name, of) for name, of in tables.items()}, end

    def _operation(self, start: int, *, warmup: bool) -> dict[str, Any]:
        draw = self.draw
        kind = self._kind()
        size = self.job.size or draw.choice(SIZES)
        moves = kind in {"put", "get", "get_range", "call", "scan"}
        error = draw.choice(("throttled", "timeout")) if self.has("failures", 0.25) else None
        took = draw.randint(MS, 20 * S if self.has("slow", 0.1) else 2 * S)
        offset = draw.randrange(size) if kind == "get_range" else 0
        moved = draw.randint(1, size - offset) if kind == "get_range" else size if moves else 0
        if error:
            moved = draw.choice((0, moved))
        if self.has("straight") and moved:
            took = moved * 20 + draw.randint(0, 9)
        known = not self.has("unknown", 0.3) and kind != "call"
        read = kind in {"get", "get_range", "scan"}
        bad = draw.randint(1, moved) if moved and read and self.has("corrupt", 0.3) else 0
        late = draw.randint(0, MS if self.has("prompt") else S)
        took = took // 400 if self.has("prompt", 0.8) else took
        due = start - late if self.has("open loop", 0.9) and not warmup else None
        return {
            "kind": kind,
            "key": self._key(kind, size),
            "size": size if known else None,
            "start_ns": start,
            "end_ns": start + took,
            "bytes": moved,
            "payload_ns": 0,
            "first_byte_ns": start + draw.randint(0, took) if read and moved else None,
            "last_byte_sent_ns": start + draw.randint(0, took) if kind == "put" else None,
            "verified_bytes": moved - bad if read and known else 0,
            "bad_bytes": bad,
            "bad_ranges": int(bad > 0),
            "error": "corrupt" if bad else error,
            "warmup": warmup,
            "offset": offset,
            "generation": 0,
            "count": self._count(kind),
            "intended_ns": due,
        }

    def _kind(self) -> str:
        if self.job.workload == "custom":
            return self.draw.choice(("call", "put", "get"))
        kinds = {
            "shuffle": ("put", "wait", "get", "get_range"),
            "parquet": ("scan", "scan", "put"),
            "list": ("list_all", "list_all", "put"),
        }
        if self.job.workload in kinds:
            return self.draw.choice(kinds[self.job.workload])
        if self.job.workload == "conditional":
            return self.draw.choice((*map(str, PATTERNS), "observe", "put"))
        if self.has("mixed"):
            return self.draw.choice(KINDS)
        if self.has("usages"):
            return self.draw.choice(("write_array", "read_array"))
        return "get_range" if self.has("ranges") else self.draw.choice(("put", "get"))

    def _count(self, kind: str) -> int:
        if kind in PATTERNS:
            return self.draw.randint(0, 1)
        return self.draw.randint(0, 9) if kind in {"list", "list_all", "delete_many"} else 1

    def _accesses(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Return reads and writes of shared keys, in any order and with any end."""
        draw = self.draw
        tokens: Sequence[str | None] = (None, "0.0.0", "0.0.1", "1.0.0", "9.9.9", "?00")
        if self.job.workload == "list":
            tokens = ("missing", "double", "unexpected", "out of order")
        count = draw.randint(0, 3) if self.job.workload in {"conditional", "list"} else 0
        made = []
        for _ in range(count):
            start = draw.randint(row["start_ns"], row["end_ns"])
            made.append(
                {
                    "key": f"run/conditional/register-0000000{draw.randrange(2)}",
                    "act": draw.choice(("read", "write")),
                    "version": draw.choice(tokens),
                    "base": draw.choice(tokens),
                    "start_ns": start,
                    "end_ns": draw.randint(start, row["end_ns"]),
                    "ending": draw.choice(("done", "refused", "conflict", "failed", "unknown")),
                }
            )
        return made

    def _key(self, kind: str, size: int) -> str:
        if kind == "call":
            return self.draw.choice(("load", "compute", "store"))
        if self.job.workload == "shuffle":
            return f"a/{self.draw.randrange(9):024x}{self.draw.randrange(4):08x}.{size}"
        return f"{self.draw.choice(('', 'a/', 'a/b/'))}{self.draw.randrange(9):032x}.{size}"

    def _parts(self, row: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return the other rows of an operation."""
        draw, usages = self.draw, self.has("usages", 0.8)
        rss = [None if draw.random() < 0.2 else draw.randint(10**7, 10**9) for _ in range(2)]
        bad = {
            "key": row["key"],
            "offset": draw.randint(0, 9),
            "length": 16,
            "bad_bytes": row["bad_bytes"],
            "found": draw.choice(("zeros", "other_object")),
            "found_key_hash": draw.choice((None, "00ff")),
            "found_generation": draw.choice((None, 3)),
            "found_offset": draw.choice((None, 0, 16)),
        }
        usage = {
            "rss_before_bytes": rss[0],
            "rss_peak_bytes": rss[1],
            "threads_peak": draw.choice((None, 4)),
            "cpu_user_s": draw.random(),
            "cpu_sys_s": draw.random(),
        }
        return {
            "attempts": [] if row["kind"] == "call" else self._attempts(row),
            "steps": self._steps(row),
            "bad_ranges": [bad] if row["bad_ranges"] else [],
            "usages": [usage] if usages else [],
            "accesses": self._accesses(row),
        }

    def _attempts(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        draw = self.draw
        failed = draw.randint(0, 2) if self.has("throttled") else 0
        result: list[str | None] = [
            draw.choice(("throttled", "connection_error")) for _ in range(failed)
        ]
        left, scans = row["end_ns"] - row["start_ns"], row["kind"] == "scan"
        # Requests for a footer, whose bytes the last request has here.
        result += [None] * (draw.randint(0, 3) if scans and row["bytes"] else 0)
        requests = {"scan": "get", "wait": "list"}
        made, at = [], row["start_ns"]
        for number, error in enumerate([*result, None if row["bytes"] else row["error"]]):
            wait = draw.randint(0, left // 4) if number else 0
            took = draw.randint(0, left // 4)
            at, left = at + wait + took, left - wait - took
            answered = at - took if draw.random() < 0.5 else None
            moved = row["bytes"] if number == len(result) else 0
            moved = moved if error is None else draw.choice((0, 77))
            made.append(
                {
                    "request": requests.get(row["kind"]) or row["kind"].split("_")[0],
                    "part": 0,
                    "number": number,
                    "start_ns": at - took,
                    "end_ns": at,
                    "wait_ns": wait,
                    "status": 503 if error and not self.has("blind", 0.5) else 200,
                    "error": error,
                    "detail": error,
                    "request_id": "id",
                    "host_id": None,
                    "remote": "127.0.0.1:1",
                    "reused": draw.random() < 0.5,
                    "bytes": moved,
                    "answered_ns": answered,
                    "date_s": None if answered is None or not self.has("dates") else answered // S,
                }
            )
            if made[-1]["request"] == "get" and self.has("hedged", 0.5):
                made.append(self._second(made[-1]))
        return made

    def _second(self, first: dict[str, Any]) -> dict[str, Any]:
        """Return a second request for the bytes of another, and let one of them be given up."""
        draw = self.draw
        start = draw.randint(first["start_ns"], first["end_ns"])
        second = {**first, "start_ns": start, "end_ns": start + draw.randint(0, 99 * MS)}
        second["answered_ns"] = second["date_s"] = None
        if first["error"] is not None:
            return second
        loser = draw.choice((first, second))
        given_up = {"error": draw.choice(("hedged", "hedged", "throttled")), "detail": "other"}
        loser |= {**given_up, "bytes": draw.choice((0, 77)), "status": draw.choice((None, 200))}
        return second

    def _steps(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a curve that ends at the operation's bytes, unless the run is a broken one."""
        draw, left, moved = self.draw, row["end_ns"] - row["start_ns"], row["bytes"]
        steps = []
        if self.has("straight"):
            for parts in range(6, 1, -1):
                steps.append({"step_ns": left // parts, "step_bytes": moved // parts})
                left, moved = left - left // parts, moved - moved // parts
        for _ in range(draw.randint(0, 3) if self.has("steps") else 0):
            took, now = draw.choice((0, draw.randint(0, left))), draw.randint(0, moved)
            steps.append({"step_ns": took, "step_bytes": now})
            left, moved = left - took, moved - now
        moved -= moved > 0 and self.has("broken", 0.1)
        return [*steps, {"step_ns": left, "step_bytes": moved}]


def _lost(index: int, wave: int) -> dict[str, Any]:
    return {"index": index, "launch": wave, "cause": "killed by SIGKILL", "not_started": not wave}


def _give_planned_keys(columns: dict[str, list[Any]], job: JobSpec, index: int, wave: int) -> None:
    """Make the operations the puts of a write, in order, for any number of them."""
    count = {True: 0, False: 0}
    for row, warmup in enumerate(columns["warmup"]):
        columns["kind"][row], columns["offset"][row] = "put", 0
        columns["key"][row] = planned_key(job.target.prefix, index, wave, count[warmup], job.size)
        count[warmup] += 1


def planned_key(prefix: str, index: int, wave: int, number: int, size: int | None) -> str:
    """Return the key of an object of the run ``run``."""
    name = f"run/{index}/{wave}/{number}".encode()
    return f"{prefix}{hashlib.blake2b(name, digest_size=16).hexdigest()}.{size}"
