"""The leave-one-out study at scale `laptop`: how long it takes, what it finds, and its figure.

    python benchmarks/loo_laptop.py --home /tmp/laptop-runs

Trains what is missing in the home folder, runs the same command again to time a sweep with nothing to do, and writes
`results/loo_laptop.json` and `docs/figures/loo_laptop.png` (with Debian's chromium, if it is there).
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from record import write_record

from ablations.findings.results import Results, read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.report.documents.comparison_tables import comparison_table, numbers_table
from ablations.report.figures.plots import curves_figure

ROOT = Path(__file__).parents[1]
COMMAND = "platform sweep sweeps/loo.yaml --scale laptop"
WIDTH, HEIGHT = 1180, 620


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    home = Home(parser.parse_args().home.absolute())
    sweep(home)
    rerun_s = sweep(home)
    results = read_results(read_sweep(home, "loo"))
    record = {
        "command": COMMAND,
        "code_versions": results.code_versions,
        "sweep_min": round(training_minutes(home), 1),
        "rerun_s": round(rerun_s, 2),
        "reference": reference_facts(results),
        "table": table_of(results),
        "comparison": results.to_json(),
    }
    write_record("loo_laptop", record)
    draw(results)
    print(json.dumps({name: record[name] for name in ("sweep_min", "rerun_s", "reference")}, indent=1))
    print(markdown(table_of(results)))


def sweep(home: Home) -> float:
    """Run the command and return its seconds."""
    started = time.monotonic()
    arguments = [*COMMAND.split()[1:], "--home", str(home.path)]
    subprocess.run([sys.executable, "-m", "ablations.cli", *arguments], check=True, cwd=ROOT)
    return time.monotonic() - started


def training_minutes(home: Home) -> float:
    """Minutes from the making of the first run folder to the end of the last run."""
    runs = list((home.path / "runs").iterdir())
    first = min((run / "recipe.json").stat().st_mtime for run in runs)
    last = max((run / "status.json").stat().st_mtime for run in runs)
    return (datetime.fromtimestamp(last, UTC) - datetime.fromtimestamp(first, UTC)).total_seconds() / 60


def reference_facts(results: Results) -> dict[str, float | str]:
    """What the reference's curve shows: evaluations, gain, and how well eq. 1 fits."""
    run = results.variant(results.plan.reference).runs[0]
    assert run.curve is not None
    assert run.fit is not None
    return {
        "evaluations": len(run.curve.score),
        "prompts": int(run.curve.prompts[0]) if run.curve.prompts is not None else 0,
        "gain": round(float(run.curve.score[-1] - run.curve.score[0]), 4),
        "r_squared": round(run.fit.r_squared, 4),
        "asymptote": run.fit.asymptote.to_json(),
        "fit_verdict": run.fit.verdict,
    }


def draw(results: Results) -> None:
    """The curves as a picture."""
    folder = ROOT / "docs/figures"
    folder.mkdir(parents=True, exist_ok=True)
    figure = curves_figure(results)
    figure.update_layout(width=WIDTH, height=HEIGHT)
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is not installed: no picture")
        return
    with TemporaryDirectory() as temporary:
        page = Path(temporary) / "curves.html"
        page.write_text(figure.to_html(include_plotlyjs=True, config={"staticPlot": True}))
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        flags += ["--disable-component-update", "--no-first-run", "--hide-scrollbars", "--virtual-time-budget=5000"]
        flags += [f"--user-data-dir={temporary}/profile", f"--window-size={WIDTH + 16},{HEIGHT + 16}"]
        target = f"--screenshot={folder / 'loo_laptop.png'}"
        subprocess.run([chromium, *flags, target, page.as_uri()], check=True, capture_output=True)


def table_of(results: Results) -> list[dict[str, str]]:
    """The comparison as the report shows it, one line per variant."""
    lines: list[dict[str, str]] = [{} for _ in results.variants]
    for table in (comparison_table(results), numbers_table(results)):
        for line, row in zip(lines, table.rows, strict=True):
            line |= {one.heading: cell.text for one, cell in zip(table.columns, row, strict=True)}
    return lines


def markdown(lines: list[dict[str, str]]) -> str:
    """The table of docs/results/loo_laptop.md."""
    heads = list(lines[0])
    rows = [heads, ["---"] * len(heads), *([line[head] for head in heads] for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
