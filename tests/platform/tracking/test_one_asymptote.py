"""One A: every output has the same number, and none where nothing bounds it from above."""

import csv
import io
import json
import math
import re
from dataclasses import replace

import pytest
from fixtures_home import R_0, make_plan, write_run

from ablations.findings.claim_card import Card
from ablations.findings.order import in_order
from ablations.findings.results import Results, read_results
from ablations.home.home import Home
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.report.documents.comparison_tables import numbers_table
from ablations.report.writers.csv_files import csv_files
from ablations.tracking.sortable import numbers_of_run, numbers_of_variant, verdicts_of_variant

CURVES = {
    "scalerl": (0.61, 1.9, 320.0),
    "late": (0.90, 1.5, 9000.0),
    "flat": (R_0, 1.9, 320.0),
    "low": (0.54, 1.9, 320.0),
}
"""A, B and C_mid; nothing bounds the second from above, and the third does not rise."""
BOUNDED = {"scalerl": True, "late": False, "flat": False, "low": True}
CELL = re.compile(r"(?P<A>[\d.]+) \[(?P<lo>[\d.]+), (?P<hi>[\d.]+)\]|>= (?P<least>[\d.]+)|no rise|too noisy to tell")
Ends = tuple[float | None, float | None, float | None]


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    """One seed of each curve."""
    home = Home(tmp_path_factory.mktemp("home"))
    variants = tuple(
        PlannedVariant(name=name, overrides={}, runs=(PlannedRun(seed=0, id=f"{number:012x}"),))
        for number, name in enumerate(CURVES)
    )
    published = {name: {"A": 0.5, "B": 1.9, "C_mid": 320.0} for name in CURVES}
    sweep = StartedSweep(home=home, plan=replace(make_plan(), variants=variants, published=published))
    sweep.write_plan()
    for variant in variants:
        write_run(home, variant.runs[0].id, CURVES[variant.name])
    return read_results(sweep)


def number(text: str) -> float | None:
    """A cell of a CSV file."""
    return float(text) if text else None


def sheet(results: Results, name: str) -> dict[str, dict[str, str]]:
    """A CSV file of the report, by variant."""
    return {row["variant"]: row for row in csv.DictReader(io.StringIO(csv_files(results)[name].decode()))}


def outputs(results: Results) -> dict[str, dict[str, Ends]]:
    """A, A_lo and A_hi of each variant, by the output that has them."""
    keys = ("A", "A_lo", "A_hi")
    found: dict[str, dict[str, Ends]] = {}

    def add(output: str, name: str, values) -> None:
        found.setdefault(output, {})[name] = tuple(values)

    document = json.loads(json.dumps(results.to_json()))
    lines = {line["curve"]: line for line in document["variants"]}
    fits = {run["variant"]: run for run in document["runs"]}
    comparison, of_runs = sheet(results, "comparison.csv"), sheet(results, "fits.csv")
    for variant in results.variants:
        name, run = variant.name, variant.runs[0]
        line, fit = results.compared(name), run.fit
        assert line is not None
        assert fit is not None
        add("Python, comparison", name, (line.asymptote.A, line.asymptote.lo, line.asymptote.hi))
        add("Python, fit", name, (fit.A, fit.A_lo, fit.A_hi))
        add("compare --json", name, (lines[name][key] for key in keys))
        add("fit --json", name, (fits[name][key] for key in keys))
        add("comparison.csv", name, (number(comparison[name][key]) for key in keys))
        add("fits.csv", name, (number(of_runs[name][key]) for key in keys))
        add("MLflow, variant", name, map(numbers_of_variant(results, name).get, keys))
        add("MLflow, seed", name, map(numbers_of_run(results, run).get, keys))
        add("numbers of a variant", name, map(results.fit_numbers(name).get, keys))
    for one in Card(results=results, claims=()).published:
        add("card", one.variant, (one.A_here, one.A_lo, one.A_hi))
    return found


def test_every_output_has_the_same_asymptote_or_none(results):
    found = outputs(results)
    first = found["Python, comparison"]
    for output, by_variant in found.items():
        for name, ends in by_variant.items():
            assert ends == pytest.approx(first[name], nan_ok=False), (output, name)
    assert {name: ends[0] is not None for name, ends in first.items()} == BOUNDED
    assert {name: ends[2] is not None for name, ends in first.items()} == BOUNDED
    assert all(lo is not None and math.isfinite(lo) for _, lo, _ in first.values())
    kinds = {name: verdicts_of_variant(results, name)["A_is"] for name in CURVES}
    assert kinds == {"scalerl": "estimate", "late": "lower bound only", "flat": "no rise", "low": "estimate"}


def test_the_terminal_shows_the_same_or_the_lower_end(results):
    table = numbers_table(results)
    place = [column.heading for column in table.columns].index("A [95 %]")
    rows = [[cell.text for cell in row] for row in table.rows]
    for variant, cells in zip(results.variants, rows, strict=True):
        line, found = results.compared(variant.name), CELL.fullmatch(cells[place])
        assert line is not None
        assert found is not None
        if BOUNDED[variant.name]:
            assert cells[place] == f"{line.asymptote.A:.3f} [{line.asymptote.lo:.3f}, {line.asymptote.hi:.3f}]"
        elif line.asymptote.rises:
            assert 0 <= line.asymptote.lo - float(found["least"]) < 0.01  # rounded down
        else:
            assert found["A"] is found["least"] is None


def test_variants_sorted_by_their_numbers_in_mlflow_stand_as_compare_sorts_them(results):
    numbers = {one.name: numbers_of_variant(results, one.name) for one in results.variants}
    for ranked, number in ((in_order(results, "ceiling"), "A_lo"), (in_order(results, "level"), "level")):
        assert [one.name for one in ranked.variants] == sorted(numbers, key=lambda name: -numbers[name][number])
