"""Compare the layouts of a shuffle: what the plan says before, and what a run takes here.

Eight mappers write 64 MiB for eight reducers.
"""

from serverless_bench import JobSpec, ShuffleLoad, embedded_target, plan, run_job, summarize

SETTINGS = [(layout, start) for layout in ("objects", "ranges") for start in ("barrier", "eager")]

with embedded_target() as target:
    for layout, start in SETTINGS:
        load = ShuffleLoad(
            mappers=8, reducers=8, total=64 << 20, partitions=layout, reduce=start, poll=0.05
        )
        job = JobSpec(workload="shuffle", target=target, number=16, concurrency=16, load=load)
        run = run_job(job, f"sbench-runs/shuffle/{layout}-{start}")
        figures = summarize(run).to_json()["shuffle"]
        mapped, reduced = figures["phases"]
        dollars = plan(job).to_json()["total"]
        print(
            f"{layout}, {start:7}: on Lambda {reduced['planned_end_s']:.2f} s"
            f" and ${dollars:.4f}; here {reduced['end_s']:.2f} s,"
            f" mappers until {mapped['end_s']:.2f} s, {mapped['requests']} and"
            f" {reduced['requests']}, {figures['lost']} of {figures['partitions']} partitions lost"
        )
