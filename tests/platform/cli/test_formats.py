"""docs/formats.md has the keys that the commands print, all of them and no others."""

import json
import re
from typing import Any

import pytest
from fixtures_home import make_home, write_state
from formats_page import section
from typer.testing import CliRunner

from ablations.cli import app, error_document
from ablations.errors import FileError, FileProblem, Place
from ablations.fit.curve_file import COLUMNS

FIT = section("`platform fit --json`").table().keys()
COMPARE = section("`platform compare --json`")
PAPER = section("`platform paper --json`")
FORECAST = section("`platform forecast --json`")
JSON = section("JSON of the commands")
ERROR = JSON.example()
STATUS = section("`platform status --json`").example()


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The home of a sweep of which one run failed."""
    path = tmp_path_factory.mktemp("home")
    sweep = make_home(path, seeds=(0, 1))
    write_state(sweep.home, sweep.plan.variants[1].runs[1].id, "failed", message="RuntimeError: no")
    return str(path)


def printed(home: str, *command: str) -> Any:
    result = CliRunner().invoke(app, [*command, "--json", "--home", home], catch_exceptions=False)
    return json.loads(result.stdout)


def test_fit(home):
    explained = printed(home, "fit", "loo", "--explain")
    for entry in explained:
        assert entry.keys() == FIT
        assert entry["posterior"].keys() == {"A", "B", "C_mid", "R_0"}
    meaning = section("`platform fit --json`").table()
    of_posterior = set(re.findall(r"(?:lo|hi)_\d+|median", meaning["posterior"]))
    assert all(one.keys() == of_posterior for entry in explained for one in entry["posterior"].values())
    of_cutoffs = set(meaning["cutoffs"].partition("a list of ")[2].split(", "))
    assert all(one.keys() == of_cutoffs for entry in explained for one in entry["cutoffs"])
    assert all(entry.keys() == FIT - {"words", "cutoffs"} for entry in printed(home, "fit", "loo"))


def test_compare(home):
    data = printed(home, "compare", "loo")
    assert data.keys() == COMPARE.outline()
    assert all(line.keys() == COMPARE.table().keys() for line in data["variants"])
    of_run = COMPARE.after("A run has ").quoted()
    assert all(run.keys() == of_run | (FIT - {"words", "cutoffs"}) for run in data["runs"])


def test_compare_paper(home):
    data = printed(home, "paper", "loo")
    assert data.keys() == PAPER.outline()
    assert all(line.keys() == PAPER.after("A variant: ").listed() for line in data["variants"])
    of_fit = PAPER.after("(one entry per seed: ").quoted()
    fits = [fit for line in data["variants"] for fit in (*line["fits"], *line["refits_at_common_A"])]
    assert all(fit.keys() == of_fit for fit in fits)


def test_forecast(home):
    data = printed(home, "forecast", "loo", "--score", "0.5")
    assert data.keys() == FORECAST.outline()
    for line in data["variants"]:
        assert line.keys() == FORECAST.after("A variant: ").listed()
        assert all(one.keys() == FORECAST.after("An entry of its `budgets`: ").listed() for one in line["budgets"])
    intervals = [line["compute_to_reach"] for line in data["variants"] if line["compute_to_reach"]]
    assert intervals
    assert all(one.keys() == FORECAST.after("An interval: ").listed() for one in intervals)
    crossings = [line["crossing"] for line in data["variants"] if line["crossing"]]
    assert crossings
    assert all(one.keys() == FORECAST.after("A crossing: ").listed() for one in crossings)


def test_forecast_backtest(home):
    data = printed(home, "forecast", "loo", "--backtest")
    assert data.keys() == FORECAST.after("With `--backtest`: ").listed()
    assert all(one.keys() == FORECAST.after("a check is ").listed() for one in data["checks"])
    assert all(one.keys() == FORECAST.after("a score ").listed() for one in data["scores"])


def test_a_dry_run(home):
    data = printed(home, "sweep", "sweeps/demo.yaml", "--dry-run")
    assert data.keys() == JSON.after("--dry-run --json`: ").listed()
    assert all(run.keys() == JSON.after("a run has ").quoted() for run in data["runs"])


def test_an_error():
    (place,) = ERROR["error"]["places"]
    problem = FileProblem(
        place=Place(source=place["source"], line=place["line"], key=place["key"]),
        found=place["found"],
        right=place["right"],
    )
    error = FileError(problem)
    assert error_document(error.advice, error.exit_code, error) == ERROR


def test_status(home):
    data = printed(home, "status", "loo")
    assert data.keys() == STATUS.keys()
    assert all(run.keys() == STATUS["runs"][0].keys() for run in data["runs"])
    assert [failure.keys() for failure in data["failures"]] == [STATUS["failures"][0].keys()]


def test_the_columns_of_a_csv_file():
    assert set(COLUMNS) == section("The CSV file of `platform fit`").table().keys()
