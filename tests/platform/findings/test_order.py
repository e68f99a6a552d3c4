"""Variants in another order, and the comparison as a sheet."""

import csv
import json
from io import StringIO
from pathlib import Path

import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.findings.order import in_order
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.report.writers.csv_files import sheet_text


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """scalerl with A = .61; loo-loss with A = .54; loo-curriculum with A = .61, later: C_mid 480 for 320."""
    return make_home(tmp_path_factory.mktemp("home")).home.path


def compared(home: Path, *options: str) -> str:
    result = CliRunner().invoke(app, ["compare", "loo", "--home", str(home), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("level", ["scalerl", "loo-curriculum", "loo-loss"]),
        ("compute", ["scalerl", "loo-curriculum", "loo-loss"]),
        ("name", ["loo-curriculum", "loo-loss", "scalerl"]),
    ],
)
def test_variants_are_sorted(home, order, names):
    assert [one.name for one in in_order(read_results(read_sweep(Home(home), "loo")), order).variants] == names


def test_what_is_not_known_comes_last_and_nothing_is_lost(tmp_path):
    sweep = make_home(tmp_path)
    sweep.run("000001000000").metrics.write_text("")  # loo-loss
    results = read_results(sweep)
    for by in ("level", "ceiling", "compute"):
        names = [variant.name for variant in in_order(results, by).variants]
        assert names[-1] == "loo-loss"
        assert sorted(names) == ["loo-curriculum", "loo-loss", "scalerl"]


def test_the_sheet_has_the_numbers_of_json_and_what_is_changed(home):
    lines = {line["curve"]: line for line in json.loads(compared(home, "--json"))["variants"]}
    rows = [*csv.DictReader(StringIO(sheet_text(read_results(read_sweep(Home(home), "loo")).rows())))]
    assert [row["variant"] for row in rows] == ["scalerl", "loo-loss", "loo-curriculum"]
    assert rows[1]["changes"] == "loss.type = dapo"
    for row in rows:
        line = lines[row["variant"]]
        assert row["ceiling_verdict"] == line["ceiling_verdict"]
        for key in ("A", "A_lo", "level", "level_difference_hi", "compute_ratio", "cost"):
            assert (float(row[key]) if row[key] else None) == line[key]
        assert [float(row["window_from"]), float(row["window_to"])] == line["window"]
