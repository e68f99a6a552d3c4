"""The table of designs, the cheapest of them, and the words for it; the command as a user calls it."""

import json

import numpy as np
import pytest
from fixtures_design import study_of, trained_home
from formats_page import section
from scipy.stats import t
from typer.testing import CliRunner

from ablations.answers.run_to_run import ASSUMED_SD
from ablations.cli import app
from ablations.findings.design_options import Blueprint
from ablations.findings.results import read_results
from ablations.findings.study_design import assumed_of, foresee, settings_of
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.report.documents.design import design_document, own_sentence
from ablations.study.expand import expand

DESIGN = section("`platform design --json`")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A sweep file, and a home in which another sweep of the scale has trained."""
    path = tmp_path_factory.mktemp("design")
    study_of(path, name="next", seeds="[0, 1]")
    trained_home(path / "home", study_of(path), sd=0.01)
    return path


@pytest.fixture(scope="module")
def printed(folder):
    """Of two simulated runs each, as what is looked at here are levels."""
    asked = ("--detect", "0.04", "--home", folder / "home", "--json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)
        return json.loads(run("design", folder / "next.yaml", *asked))


def test_the_json_has_the_keys_of_the_page(printed):
    assert printed.keys() == DESIGN.outline()
    assert all(one.keys() == DESIGN.after("A design: ").listed() for one in printed["designs"])
    sights = [
        one[question] for one in printed["designs"] for question in ("level", "ceiling", "compute", "interaction")
    ]
    assert all(sight.keys() == DESIGN.after("last four has ").quoted() for sight in sights)
    assert printed["known"].keys() == DESIGN.after("`known` has ").quoted()
    assert printed["known"]["run_to_run"].keys() == DESIGN.after("`run_to_run` of it has ").quoted()


def test_the_cheapest_is_the_first_that_sees_it(printed):
    designs = printed["designs"]
    lefts = [one["left"] for one in designs]
    assert lefts == sorted(lefts)
    seeing = [one for one in designs if one["level"]["seen"] is not None and one["level"]["seen"] <= 0.04]
    assert printed["cheapest"] == seeing[0]
    assert printed["known"]["source"] == "earlier runs"
    # Runs of seeds 0 to 2 are trained: those of the file cost nothing more.
    own = next(one for one in designs if (one["seeds"], one["budget"], one["samples"]) == ([0, 1], 1.0, 4))
    assert (own["cost"], own["left"]) == (4.0, 0.0)
    assert own["seconds"] == 0.0


def test_the_document_has_a_row_for_each_design_and_marks_the_files_own(folder, printed, monkeypatch):
    monkeypatch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)
    study = expand(folder / "next.yaml")
    prospect = foresee(Blueprint(study=study, home=Home(folder / "home"), budget=study.sweep.budget.compute))
    table, *said = design_document(prospect, "level", 0.04)
    headings = [column.heading for column in table.columns]
    rows = [dict(zip(headings, row, strict=True)) for row in table.rows]
    assert [one["level"].number for one in rows] == [one["level"]["seen"] for one in printed["designs"]]
    assert [one["to train"].number for one in rows] == [one["left_gpu_hours"] for one in printed["designs"]]
    (own,) = [one for one in rows if one[""].text == "file"]
    assert (own["seeds"].text, own["time"].text) == ("2", "0 s")
    assert said[-1].text.startswith("The cheapest design that would detect a difference in level of 0.04: `seeds: [")


def test_a_design_without_enough_readings_sees_nothing_and_says_so(tmp_path):
    study = study_of(tmp_path, more="budget: {compute: 0.25}\n")  # an evaluation every .05: five readings
    told = []
    prospect = foresee(
        Blueprint(study=study, home=Home(tmp_path), budget=0.25),
        only_own=True,
        done=lambda *counts: told.append(counts),
    )
    assert told == [(1, 1)]
    assert all(sight.seen is None for sight in prospect.own.sights.values())
    assert own_sentence(prospect) == (
        "As written, no run can be fitted: it would have 5 evaluations after step 0; a fit needs 6."
    )


def test_the_window_is_that_of_the_file(tmp_path):
    more = "budget: {compute: 1, fit_from: 0.2, fit_on: 0.72}\nfit: {r0: free, loss: huber, ceiling: 0.8}\n"
    blueprint = Blueprint(study=study_of(tmp_path, more=more), home=Home(tmp_path), budget=1.0)
    settings = settings_of(blueprint, blueprint.as_written)
    assert (settings.r0, settings.loss, settings.ceiling) == ("free", "huber", 0.8)
    assert settings.fit_from == pytest.approx(125.0)
    assert settings.fit_to == pytest.approx(0.75 * 625)  # the reading that is due at .72 is taken at .75


def test_the_assumed_law_is_the_papers_with_its_budget_as_the_unit(tmp_path):
    scale = assumed_of(study_of(tmp_path).reference.recipe)
    # Half of the way from .3 to .61 at C_mid, which is 2542 of 16,000 GPU-hours.
    assert scale.law(np.array([625.0 * 2542 / 16_000]))[0] == pytest.approx((0.3 + 0.61) / 2)
    assert scale.prompts == 200


def flat_home(path, study, levels):
    """The home in which the runs of the study neither rise nor fall, by variant at these levels of their seeds."""
    home = trained_home(path, study)
    rng = np.random.default_rng(46)
    for run in study.runs:
        log = home.run(run.id).metrics
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        for row in rows:
            if row["kind"] == "eval":
                row["pass_rate"] = rng.binomial(800, levels[run.variant][run.seed]) / 800
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return home


def half_widths(home, study):
    """Of the level: what the design as written foresees, and what the comparison finds."""
    found = foresee(Blueprint(study=study, home=home, budget=study.sweep.budget.compute), only_own=True)
    results = read_results(read_sweep(home, study.sweep.name))
    answer = results.comparison.variants[1].answers["level"]
    return found, found.own.sights["level"].half_width, (answer.hi - answer.lo) / 2


def test_runs_that_do_not_rise_foretell_the_half_width_that_the_comparison_finds(tmp_path):
    study = study_of(tmp_path, name="flat", seeds="[0, 1]")
    levels = {"scalerl": [0.30, 0.42], "logits=bf16": [0.55, 0.33]}
    found, foreseen, delivered = half_widths(flat_home(tmp_path / "home", study, levels), study)
    assert {run.verdict for run in found_fits(tmp_path / "home", "flat")} <= {"no rise", "too noisy to tell"}
    assert foreseen == pytest.approx(delivered, rel=0.02)
    # Squares about the means of both: .12^2 / 2 + .22^2 / 2 with two degrees of freedom.
    sd = np.sqrt((0.12**2 / 2 + 0.22**2 / 2) / 2)
    assert foreseen == pytest.approx(t(2).ppf(0.975) * sd, rel=0.1)
    assert found.known.num_runs == 4


def found_fits(home, sweep):
    return [run.fit for run in read_results(read_sweep(Home(home), sweep)).runs]


def test_rising_runs_foretell_the_half_width_that_the_comparison_finds_too(tmp_path):
    study = study_of(tmp_path, name="rising")
    _, foreseen, delivered = half_widths(trained_home(tmp_path / "home", study), study)
    assert foreseen == pytest.approx(delivered, rel=0.05)


def test_curves_of_another_trainer_that_fall_foretell_what_the_comparison_finds_too(tmp_path):
    rng = np.random.default_rng(8)
    ends = {"a-s0": 0.75, "a-s1": 0.6, "b-s0": 0.3, "b-s1": 0.7}
    lines = ["curve,compute,score,samples"]
    for name, end in ends.items():
        scores = rng.binomial(200, np.linspace(0.9, end, 11)) / 200
        lines += [f"{name},{40 * place},{score},200" for place, score in enumerate(scores)]
    (tmp_path / "fallen.csv").write_text("\n".join(lines) + "\n")
    file = tmp_path / "fallen.csv"
    found = json.loads(run("design", file, "--reference", "a", "--json"))["designs"]
    # Half of the budget has five evaluations after step 0, so no run of it could be fitted.
    assert {one["budget"] for one in found} == {400.0, 800.0}
    foreseen = next(one for one in found if (one["seeds"], one["budget"]) == (2, 400.0))["level"]["half_width"]
    (_, b) = json.loads(run("compare", file, "--reference", "a", "--json"))["variants"]
    assert foreseen == pytest.approx((b["level_difference_hi"] - b["level_difference_lo"]) / 2, rel=0.05)


def test_one_seed_has_the_half_width_that_the_comparison_finds_with_other_sweeps(tmp_path):
    """Both take how far runs lie apart from the seeds of `before`."""
    home = trained_home(tmp_path / "home", study_of(tmp_path, name="before"))
    study = study_of(tmp_path, name="now", seeds="[7]")
    found = foresee(Blueprint(study=study, home=home, budget=study.sweep.budget.compute), only_own=True)
    assert found.known.others.sweeps == ("before",)
    before = read_results(read_sweep(home, "before")).comparison.spreads["level"]
    # Two recipes of three seeds: four degrees of freedom.
    assert found.own.sights["level"].half_width == pytest.approx(t(4).ppf(0.975) * before.sd * np.sqrt(2), rel=0.05)
    assert found.own.sights["level"].half_width > 3 * 1.96 * ASSUMED_SD * np.sqrt(2)
