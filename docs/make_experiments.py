"""Run studies at the small scale, and write their pages, pictures and figures.

make studies                                  all: more than an hour on an idle machine
python docs/make_experiments.py NAME...           these; interrupted ones are resumed
python docs/make_experiments.py --pages NAME...   from the saved figures, without runs
python docs/make_experiments.py --simulate        false alarms and power of the method, again

Other flags are passed to ``sbench study run``: ``--run-duration 0.5 --into /tmp/pages``
tries a study in a short form, without replacing the committed pages.
"""

import argparse
import io
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from docs.experiment_figures import from_data, to_data
from docs.experiment_simulation import Simulated, noise_of, simulate
from docs.tables import markdown, write_rows
from serverless_bench.base.clock import monotonic_ns
from serverless_bench.base.units import NS_PER_S
from serverless_bench.features.studies import STATE, names
from serverless_bench.features.studies.loading import load_study
from serverless_bench.features.studies.observations import observe
from serverless_bench.features.studies.plan import Plan, load_plan
from serverless_bench.features.studies.plot import save_plot
from serverless_bench.features.studies.report import Report, make_report, show

ROOT: Final = Path(__file__).parents[1]
STUDIES: Final = ROOT / "serverless_bench" / "features" / "studies"
PAGES: Final = STUDIES / "results"
RUNS: Final = ROOT / "sbench-runs" / "pages"
"""Directory of unfinished studies; each is removed when its page is complete."""
SBENCH: Final = (sys.executable, "-m", "serverless_bench")
COUNTED: Final = (0, 6)
"""Exit codes of studies that came to an end, with or without failed runs."""
DRAWN: Final = 1000
SIMULATED: Final = STUDIES / "simulated.csv"
_HEADER: Final = (
    *("study", "comparisons", "rounds", "noise", "false alarms, nothing differs"),
    *("false alarms, half differ", "25 % found", "minutes"),
)


def main(arguments: Sequence[str]) -> int:
    """Execute the request; return the number of unfinished studies."""
    line_by_line = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=line_by_line)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--pages", action="store_true")
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--into", type=Path, default=PAGES)
    asked, flags = parser.parse_known_args(arguments)
    wanted, failed = asked.names or names(), 0
    if asked.simulate:
        write_simulations(asked.into, wanted)
        return 0
    asked.into.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        if not asked.pages and not run(name, asked.into, flags):
            failed += 1
        elif not asked.pages or (asked.into / f"{name}.json").exists():
            write_page(name, asked.into)
    return failed


def run(name: str, into: Path, flags: Sequence[str]) -> bool:
    """Run a study, or the rest of it, and save its figures."""
    root, begun_ns = RUNS / name, monotonic_ns()
    what: tuple[str, ...] = (name, "--run-dir", str(RUNS), "--name", name, *flags)
    if (root / STATE).exists():
        what = ("--resume", str(root))
    command = [*SBENCH, "study", "run", *what, "--format", "json"]
    code = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    took_s = (monotonic_ns() - begun_ns) / NS_PER_S
    if root.exists():
        # Including the time before an interruption.
        before = root / "took_s"
        took_s += float(before.read_text()) if before.exists() else 0.0
        before.write_text(str(took_s))
    sys.stdout.write(f"{name}: exit code {code} after {took_s / 60:.1f} min\n")
    sys.stdout.flush()
    if code not in COUNTED:
        return False
    plan = load_plan(root)
    least = plan.study.scales[plan.scale].min_bytes
    observed = observe(root, plan.cells(), repeats=plan.repeats, min_bytes=least)
    data = {**to_data(plan, observed), "took_s": round(took_s)}
    (into / f"{name}.json").write_bytes(orjson.dumps(data) + b"\n")
    shutil.rmtree(root)
    return True


def write_page(name: str, into: Path) -> None:
    """Write the page and the picture of a study from its figures."""
    save_plot(report_of(name, into), into / f"{name}.png")
    (into / f"{name}.md").write_text(page(name, into), encoding="utf-8")


def page(name: str, into: Path = PAGES) -> str:
    """Return the page of a study: question, verdicts and picture; the site adds the rest."""
    took_s = orjson.loads((into / f"{name}.json").read_bytes())["took_s"]
    head, rest = _text(name, into)
    claims = rest.partition("\n## hypotheses\n")[2].partition("\n## ")[0]
    verdicts = "\n".join(line for line in claims.splitlines() if line.startswith("- "))
    return (
        f"{head}\n\n## Verdicts\n\n{verdicts}\n\n![{name}]({name}.png)\n\n"
        f"Made by `sbench study run {name}` in {took_s / 60:.1f} minutes;"
        f" [{name}.json]({name}.json) has the figures of every run.\n"
    )


def choice() -> str:
    """Return the table of all studies: question, year of publication, and minutes."""
    rows = [("study", "question", "published", "minutes")]
    for name in names():
        study, saved = load_study(name), PAGES / f"{name}.json"
        took_s = orjson.loads(saved.read_bytes())["took_s"] if saved.exists() else None
        year, minutes = study.seed.date[:4], "" if took_s is None else f"{took_s / 60:.1f}"
        page = f"[{name}](results/{name}.md)"
        rows.append((page, study.question, year if year.isdigit() else "", minutes))
    return markdown(rows)


def details(name: str) -> str:
    """Return the tables and comparisons of a study, which the site adds to its page."""
    return _text(name, PAGES)[1]


def report_of(name: str, into: Path = PAGES) -> Report:
    """Return the report of a study from its figures."""
    data = orjson.loads((into / f"{name}.json").read_bytes())
    return make_report(*from_data(load_study(name), data))


def _text(name: str, into: Path) -> tuple[str, str]:
    """Return the report as Markdown: the part before its first table, and the rest."""
    out = io.StringIO()
    show(report_of(name, into), out, "markdown")
    head, begin, rest = out.getvalue().strip().partition("\n| ")
    return head.strip(), begin.strip("\n") + rest


def write_simulations(into: Path, wanted: Sequence[str]) -> None:
    """Simulate studies with the noise of their runs, and write the table of the method."""
    write_rows(SIMULATED, [_HEADER, *(_row(name, into) for name in wanted)])


def _row(name: str, into: Path) -> list[str]:
    study, kept = load_study(name), into / f"{name}.json"
    plan = Plan(study=study, scale="small", repeats=study.scales["small"].repeats)
    noise, minutes = None, "-"
    if kept.exists():
        data: dict[str, Any] = orjson.loads(kept.read_bytes())
        plan, observed = from_data(study, data)
        noise, minutes = noise_of(study, observed), f"{data['took_s'] / 60:.1f}"
    found = simulate(plan, noise=noise, studies=DRAWN)
    sys.stdout.write(f"{name}: {found}\n")
    sys.stdout.flush()
    return [f"[{name}](results/{name}.md)", *_cells(found), minutes]


def _cells(found: Simulated) -> list[str]:
    return [
        str(found.among),
        str(found.rounds),
        f"{found.noise:.1%}" + ("" if found.measured else " (assumed)"),
        f"{found.false_alarms:.1%}",
        f"{found.false_among_true:.1%}",
        "-" if found.power != found.power else f"{found.power:.0%}",
    ]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
