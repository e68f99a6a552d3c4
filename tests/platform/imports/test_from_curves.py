"""Curves of other trainers are compared as the runs of a sweep are, to the last digit."""

import csv
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dashboard.app_pages import open_page
from fixtures_design import BUDGET as BUDGET_OF_SMOKE
from fixtures_design import SAMPLES, study_of, trained_home
from fixtures_home import BUDGET, make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.report.documents.blocks import Folded
from ablations.report.documents.comparison import report_document
from ablations_dashboard.escape import with_code
from scalerl.run.run_log import read_rows

OF_THE_PLATFORM = {"overrides", "hours", "cost"}


def printed(*arguments: str) -> dict:
    result = CliRunner().invoke(app, ["compare", *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def imported(home: Path, path: Path, *options: str) -> list[str]:
    """The arguments that name the sweep that this file becomes."""
    where = ["--home", str(home)]
    result = CliRunner().invoke(app, ["import", str(path), *options, *where], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return [path.stem, *where]


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["compare", *arguments])
    assert result.exception is not None
    return str(result.exception)


def as_csv(
    sweep: StartedSweep, path: Path, *, last: dict[str, float] | None = None, unit: float = 1.0, samples: int = 16
) -> Path:
    """The evaluations of a sweep's runs as another trainer would write them, of some variants only up to `last`."""
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["curve", "seed", "compute", "score", "prompts", "samples_per_prompt"])
        for variant in sweep.plan.variants:
            for run in variant.runs:
                for row in read_rows(sweep.run(run.id).metrics):
                    if row["kind"] == "eval" and row["compute_gpu_hours"] <= (last or {}).get(variant.name, BUDGET):
                        out.writerow(
                            [
                                variant.name,
                                run.seed,
                                row["compute_gpu_hours"] / unit,
                                row["pass_rate"],
                                row["num_prompts"],
                                samples,
                            ]
                        )
    return path


def sweep_of(folder: Path, seeds: tuple[int, ...]) -> StartedSweep:
    """One whose runs' recipes can be read, so that it is known which of them begin alike."""
    study = study_of(folder, name="loo", seeds=str([*seeds]))
    return read_sweep(trained_home(folder / "home", study), "loo")


@pytest.mark.parametrize("seeds", [(0,), (0, 1, 2)])
def test_a_csv_file_of_a_sweeps_readings_is_compared_as_the_sweep_is(tmp_path, seeds):
    sweep = sweep_of(tmp_path, seeds)
    of_sweep = printed("loo", "--home", str(tmp_path / "home"))
    path = as_csv(sweep, tmp_path / "mine.csv", samples=SAMPLES)
    named = imported(tmp_path / "other", path, "--ceiling", "0.73")  # what the task of scale smoke allows
    of_file = printed(*named, "--reference", "scalerl")
    assert (of_file["sweep"], of_file["reference"], of_file["reasons"]) == ("mine", "scalerl", [])
    for theirs, ours in zip(of_file["variants"], of_sweep["variants"], strict=True):
        assert theirs.keys() == ours.keys()
        assert {k: v for k, v in theirs.items() if k not in OF_THE_PLATFORM} == {
            k: v for k, v in ours.items() if k not in OF_THE_PLATFORM
        }
        assert theirs["cost"] == pytest.approx(len(seeds) * BUDGET_OF_SMOKE)
    names = [variant.name for variant in sweep.plan.variants]
    assert [run["variant"] for run in of_file["runs"]] == [name for name in names for _ in seeds]


def of_command(command: str, *arguments: str) -> dict:
    result = CliRunner().invoke(app, [command, *arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_file_is_forecast_as_its_sweep_is_and_both_agree_with_compare_to_the_digit(tmp_path):
    sweep = make_home(tmp_path / "home", seeds=(0, 1, 2))
    path, home = str(as_csv(sweep, tmp_path / "mine.csv", samples=16_000)), str(sweep.home.path)
    for arguments in ([path, "--reference", "scalerl"], ["loo", "--home", home]):
        level = of_command("compare", *arguments)["variants"][1]
        found = of_command("forecast", *arguments, "--budget", "1x")
        difference = found["variants"][1]["budgets"][0]["difference"]
        numbers = [difference[name] for name in ("estimate", "lo", "hi")]
        assert numbers == [level[f"level_difference{end}"] for end in ("", "_lo", "_hi")]


def test_a_design_for_curves_from_elsewhere_knows_their_spread(tmp_path, monkeypatch):
    monkeypatch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)  # of ceilings, which are not looked at here
    path = str(as_csv(make_home(tmp_path / "home", seeds=(0, 1, 2)), tmp_path / "mine.csv", samples=16_000))
    designs = of_command("design", path, "--reference", "scalerl")["designs"]
    assert [(one["seeds"], one["budget"], one["cost"]) for one in designs[:2]] == [(2, 1000, 6000), (3, 1000, 9000)]
    at_budget = [one["level"]["seen"] for one in designs if one["budget"] == BUDGET]
    assert at_budget == sorted(at_budget, reverse=True)
    # Runs differ by chance alone: binomial errors of 14 readings of 16,000 answers each.
    assert 0.001 < at_budget[-1] < 0.01
    result = CliRunner().invoke(app, ["design", path, "--reference", "scalerl"], catch_exceptions=False)
    said = " ".join(result.stdout.split())
    assert "with 80% power, in pass rate; for compute as a ratio. -: none. Cost: compute of 3 variants." in said
    assert re.search(
        r"Curve and noise are those of scalerl; runs differ by a sd of 0\.00\d\d in level \(\d+ degrees", said
    )
    one_seed = str(as_csv(make_home(tmp_path / "one"), tmp_path / "one.csv"))
    with pytest.raises(AblationsError, match="design needs a second seed of some variant"):
        CliRunner().invoke(app, ["design", one_seed, "--reference", "scalerl"], catch_exceptions=False)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_forecast_without_any_fit_ends_with_its_reason(tmp_path, options):
    path = tmp_path / "short.csv"
    path.write_text(WITHOUT_A_FIT)
    result = CliRunner().invoke(app, ["forecast", str(path), "--reference", "a", *options])
    assert isinstance(result.exception, AblationsError)
    assert result.exception.exit_code == 2
    assert re.match(r"short: no run has a forecast \(.*curve 'a-s0': 1 evaluation", str(result.exception))
    # A reader of JSON finds the reasons there; no empty table is printed.
    assert bool(result.stdout) == ("--json" in options)


def test_notes_of_an_import_are_no_reasons(tmp_path, monkeypatch):
    sweep = make_home(tmp_path / "home", seeds=(0, 1))
    path = as_csv(sweep, tmp_path / "mine.csv", last={"loo-curriculum": 100})
    named = imported(tmp_path / "other", path)
    notes = [
        "The reference is scalerl, the first variant given; --reference NAME chooses another.",
        f"The last evaluations of the 6 runs lie between 100 and {BUDGET:,g} compute.",
    ]
    for command in ("compare", "forecast", "paper"):
        found = of_command(command, *named)
        assert found["notes"] == notes
        assert [one.partition(":")[0] for one in found["reasons"]] == [f"curve 'loo-curriculum-s{n}'" for n in (0, 1)]
    said = CliRunner().invoke(app, ["forecast", *named], catch_exceptions=False).stdout
    assert notes[1] in (text := " ".join(said.split()))
    assert text.count("No forecast: ") == 2
    said = CliRunner().invoke(app, ["compare", *named, "--explain"], catch_exceptions=False).stdout
    assert all(" ".join(said.split()).count(note) == 1 for note in notes)
    page = open_page(monkeypatch, tmp_path / "other", "compare", sweep="mine")
    # A page has a chooser of references, and no note on it.
    (folded,) = (one for one in page.expander if one.label == "1 note on the import")
    assert [one.value for one in folded.caption] == [with_code(notes[1])]
    results = read_results(read_sweep(Home(tmp_path / "other"), "mine"))
    (folded,) = (one for one in report_document(results, now=datetime(2026, 11, 29, tzinfo=UTC))
                 if isinstance(one, Folded) and one.title == "2 notes on the import")  # fmt: skip
    assert [one.text for one in folded.blocks] == notes


WITHOUT_A_FIT = "curve,seed,compute,score\na,0,0,0.2\na,0,1,0.5\nb,0,0,0.2\nb,0,1,0.6\n"


def test_a_comparison_without_any_fit_ends_with_its_reason(tmp_path):
    path = tmp_path / "short.csv"
    path.write_text(WITHOUT_A_FIT)
    assert "nothing is compared: a has no fit (curve 'a-s0': 1 evaluation" in refused(str(path), "--reference", "a")
    path.write_text("curve,compute,score\na,0,23\n")
    assert "a pass rate must lie in [0, 1]; divide percent by 100" in refused(str(path), "--reference", "a")
