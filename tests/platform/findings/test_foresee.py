"""The table of designs, the cheapest of them, and the words for it; the command as a user calls it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from fixtures_design import BUDGET, EVERY, PROMPTS, SAMPLES, study_of, trained_home
from formats_page import section
from scipy.stats import t
from typer.testing import CliRunner

from ablations.answers.half_widths import Sight
from ablations.answers.run_to_run import ASSUMED_SD
from ablations.cli import app
from ablations.findings.choices import Blueprint, Costs, StudyDesign
from ablations.findings.foresee import Foreseen, Prospect, assumed_of, foresee, settings_of
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.report.words.design import answer, design_row, own_sentence, source_sentence

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
    """Of six simulated runs each, as what is looked at here are levels."""
    asked = ("--detect", "0.04", "--home", folder / "home", "--json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 6)
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


def test_more_of_anything_sees_smaller_levels(printed):
    def seen(seeds, budget, samples):
        designs = {(len(one["seeds"]), one["budget"], one["samples"]): one for one in printed["designs"]}
        return designs[seeds, budget, samples]["level"]["seen"]

    assert seen(5, 1.0, 4) < seen(3, 1.0, 4) < seen(2, 1.0, 4)
    assert seen(3, 1.0, 16) < seen(3, 1.0, 4)
    assert seen(3, 2.0, 4) < seen(3, 1.0, 4)  # twice the readings in the last third


def test_a_dry_run_names_the_command_that_simulates_the_study(folder):
    arguments = ("sweep", folder / "next.yaml", "--dry-run", "--home", folder / "home")
    said = run(*arguments)
    assert "To see what the sweep could detect, run `platform design" in said
    assert "No earlier run" not in said
    assert len(json.loads(run(*arguments, "--json"))["runs"]) == 4


def test_without_earlier_runs_a_dry_run_names_the_command_alone(folder, tmp_path):
    said = run("sweep", folder / "next.yaml", "--dry-run", "--home", tmp_path)
    assert "No earlier run of scale smoke is in this home folder. To see what the sweep could detect, run `" in said
    assert "with 80% power" not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--detect", "0"), "--detect: found 0; a difference in pass rate must be between 0 and 1"),
        (("--detect", "0.9", "--question", "compute"), "--detect: found 0.9; for compute, write a ratio above 1"),
        (("--noise", "2"), "--noise: found 2; must be between 0 and 1"),
        (("--budget", "-1"), "--budget: found -1; must be a number greater than 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(folder, options, said):
    result = CliRunner().invoke(app, ["design", str(folder / "next.yaml"), *options])
    assert said in str(result.exception)


def prospect_of(tmp_path, *sights: Sight, costs=(6.0, 4.0, 12.0)) -> Prospect:
    """Designs of 3, 2 and 6 seeds that see these differences in everything."""
    blueprint = Blueprint(study=study_of(tmp_path), home=Home(tmp_path), budget=1.0)
    sizes = ((0, 1, 2), (0, 1), (0, 1, 2, 3, 4, 5))
    designs = tuple(
        Foreseen(
            choice=StudyDesign(seeds=seeds, budget=1.0, samples=16 if len(seeds) == 6 else 4),
            costs=Costs(whole=cost, left=cost, num_runs=2 * len(seeds), left_share=1.0),
            seconds=None,
            num_readings=20,
            sights={"level": sight, "ceiling": sight, "compute": sight},
        )
        for seeds, sight, cost in zip(sizes, sights, costs, strict=True)
    )
    return Prospect(blueprint=blueprint, known=assumed_of(blueprint.study.reference.recipe), designs=designs)


def sights(*seen):
    return [Sight(half_width=None if one is None else one / 1.4, seen=one) for one in seen]


def test_the_answer_names_what_to_write(tmp_path):
    prospect = prospect_of(tmp_path, *sights(0.03, 0.04, 0.01))
    assert answer(prospect, "level", 0.02) == (
        "The cheapest design that would detect a difference in level of 0.02: `seeds: [0, 1, 2, 3, 4, 5]` and "
        "`budget: {compute: 1}` in the file, `--set evaluation.samples=16` with it, for 7,500 modelled GPU-hours."
    )
    assert answer(prospect, "ceiling", 0.05).startswith(
        "The cheapest design that would detect a difference in ceiling of 0.05: `seeds: [0, 1]` and "
        "`budget: {compute: 1}`"
    )
    assert answer(prospect, "level", 0.03) == (
        "The file as it is would detect a difference in level of 0.03, and no cheaper design tried would."
    )


def test_the_answer_says_that_no_design_sees_it(tmp_path):
    prospect = prospect_of(tmp_path, *sights(0.03, None, math.log(1.2)))
    assert answer(prospect, "compute", math.log(1.01)).startswith(
        "None of the 3 designs tried would detect a compute ratio of 1.01; the smallest "
        "detectable difference is a compute ratio of 1.03: `seeds: [0, 1, 2]`"
    )
    blind = prospect_of(tmp_path, *sights(None, None, None))
    assert answer(blind, "ceiling", 0.02) == (
        "None of the 3 designs tried would detect a difference in ceiling of 0.02: none detects any difference in "
        "ceiling."
    )


def test_a_line_shows_ratios_for_compute_and_a_dash_for_nothing(tmp_path):
    prospect = prospect_of(tmp_path, *sights(math.log(1.5), None, 0.01))
    row = design_row(prospect, prospect.designs[0])
    assert [row[name] for name in ("", "seeds", "runs", "cost", "compute")] == ["file", "3", "6", "3,750", "x 1.50"]
    assert design_row(prospect, prospect.designs[1])["level"] == "-"


def test_what_is_assumed_is_said(tmp_path):
    prospect = prospect_of(tmp_path, *sights(0.03, 0.04, 0.01))
    assert source_sentence(prospect) == (
        "No earlier run of scale smoke in this home folder has a fit, so these numbers rest on an assumed "
        "run-to-run sd of 0.0075 and on the paper's curve and noise, with its 16,000 GPU-hours as one unit of the "
        "scale."
    )


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
    assert own_sentence(prospect) == "As written, no run can be fitted: 5 evaluations after step 0, of 6."


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


def extended(home: Home, name: str) -> None:
    """Every run goes on to twice the budget, where one recipe's runs come together."""
    for variant in read_sweep(home, name).plan.variants:
        for run in variant.runs:
            log = home.run(run.id).metrics
            rows = [json.loads(line) for line in log.read_text().splitlines()]
            last = rows[-1]
            for number in range(1, 21):
                share = number / 20
                rate = (1 - share) * last["pass_rate"] + share * 0.6
                later = {"compute_gpu_hours": BUDGET + EVERY * number, "step": 400 + 20 * number}
                rows.append(last | later | {"pass_rate": round(rate * PROMPTS * SAMPLES) / (PROMPTS * SAMPLES)})
            log.write_text("".join(json.dumps(row) + "\n" for row in rows))
            folder = home.run(run.id)
            folder.write_status(replace(folder.read_status(), compute_gpu_hours=2 * BUDGET))
    sweep = read_sweep(home, name)
    replace(sweep, plan=replace(sweep.plan, budget_gpu_hours=2 * BUDGET, fit_to_gpu_hours=2 * BUDGET)).write_plan()


def test_runs_that_were_extended_do_not_narrow_what_is_promised_at_the_budget_of_the_file(tmp_path):
    """The levels of the same runs at half of their length lie further apart; `compare` finds that, and so does this."""
    study = study_of(tmp_path, name="before")
    home = trained_home(tmp_path / "home", study, sd=0.03)
    at_the_budget = read_results(read_sweep(home, "before"))
    extended(home, "before")
    promised = foresee(Blueprint(study=study, home=home, budget=1.0), only_own=True).own.sights["level"].half_width
    (line,) = [one for one in at_the_budget.comparison.variants if one.name != "scalerl"]
    level = line.answers["level"]
    assert promised == pytest.approx((level.hi - level.lo) / 2, rel=0.3)
    # At the end of the longer runs their levels are nearly equal.
    longer = read_results(read_sweep(home, "before")).comparison.spreads["level"]
    assert longer.sd < at_the_budget.comparison.spreads["level"].sd / 2


def test_a_single_seed_is_recommended_only_if_asked_for(folder):
    home = Home(folder / "home")
    study = study_of(folder, name="alone", seeds="[0]")
    several = Blueprint(study=study, home=home, budget=1.0)
    assert {len(choice.seeds) for choice in several.choices()} == {1, 2, 3, 5}  # the file's own is shown
    prospect = foresee(several, only_own=True)
    assert prospect.own.sights["level"].seen < 0.5
    assert prospect.cheapest("level", 0.5) is None
    asked = replace(several, num_seeds=1)
    assert {len(choice.seeds) for choice in asked.choices()} == {1}
    found = foresee(asked, only_own=True).cheapest("level", 0.5)
    assert found is not None
    assert found.choice.seeds == (0,)
