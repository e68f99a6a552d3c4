"""The paper's own comparison rule, its figure 7, and where they are shown."""

import json
import math
import shutil

import numpy as np
import pytest
from curves import eq1
from fixtures_home import changed, make_home, planned_run, write_run
from places import REPOSITORY
from scipy.optimize import curve_fit
from typer.testing import CliRunner

from ablations.answers.paper_grid import paper_fit
from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.paper_comparison import WARNING, paper_compare, paper_comparison
from ablations.findings.results import read_results
from ablations.fit.curve import Curve
from ablations.report.documents.paper_comparison import paper_document
from ablations.report.figures.planes import linearised_score

SEVENTH = 100 + 6 * (40_000 - 100) / 99
"""A midpoint of the paper's grid: 2518.18 GPU-hours."""
COMPUTE = np.arange(0, 8001, 200.0)


def run(A=0.61, B=1.92, C_mid=SEVENTH, fit_to=math.inf) -> tuple[Curve, float]:
    return Curve(name=f"A {A}", compute=COMPUTE, score=eq1(COMPUTE, A, B, C_mid)), fit_to


def compared(**runs_by_variant):
    """The lines of a comparison with `ref` by name."""
    comparison = paper_compare(runs_by_variant, "ref")
    return comparison, {variant.name: variant for variant in comparison.variants}


def test_ceilings_within_0_02_are_equal_and_others_are_up_or_down():
    _, lines = compared(
        ref=[run(0.61)], low=[run(0.59)], lower=[run(0.585)], high=[run(0.63)], higher=[run(0.635)]
    )  # fmt: skip
    assert {name: line.ceiling_verdict for name, line in lines.items()} == {
        "ref": "reference",
        "low": "no difference seen",
        "lower": "ceiling down",
        "high": "no difference seen",
        "higher": "ceiling up",
    }
    assert lines["lower"].ceiling_difference == pytest.approx(-0.025, abs=1e-12)


@pytest.mark.parametrize("A", [0.47, 0.485, 0.61, 0.755])
def test_the_margin_itself_is_still_equal(A):
    # Four grid steps of 0.005; in floating point 0.61 - 0.59 is 0.020000000000000018.
    _, lines = compared(ref=[run(A)], low=[run(A - 0.02)], high=[run(A + 0.02)])
    assert {lines["low"].ceiling_verdict, lines["high"].ceiling_verdict} == {"no difference seen"}


def test_b_is_compared_at_the_mean_ceiling_of_those_that_are_equal():
    comparison, lines = compared(ref=[run(0.61, B=1.9)], near=[run(0.595, B=2.4)], far=[run(0.5, B=1.5)])
    assert comparison.common_A == pytest.approx((0.61 + 0.595) / 2, abs=1e-12)
    assert comparison.common_A == lines["near"].refits[0].A

    def refit(score, C_mid):
        C, R = COMPUTE[COMPUTE > 1500], score[COMPUTE > 1500]
        (B,), _ = curve_fit(lambda C, B: eq1(C, 0.6025, B, C_mid), C, R, p0=(1.5,), bounds=(0.05, 12))
        return np.sum((R - eq1(C, 0.6025, B, C_mid)) ** 2), B

    midpoints = 100 + (40_000 - 100) / 99 * np.arange(100)
    expected = {name: min(refit(lines[name].fits[0].curve.score, C) for C in midpoints)[1] for name in ("ref", "near")}
    assert lines["near"].B_at_common_A == pytest.approx(expected["near"], rel=1e-5)
    assert lines["near"].delta_B == pytest.approx(expected["near"] - expected["ref"], abs=1e-4)
    assert (lines["ref"].delta_B, lines["far"].B_at_common_A, lines["far"].delta_B) == (0, None, None)
    assert lines["far"].refits == ()


def test_seeds_are_fitted_one_by_one_and_averaged():
    third = 100 + 12 * (40_000 - 100) / 99
    comparison, lines = compared(ref=[run(0.60, B=1.8), run(0.62, B=2.0, C_mid=third)], other=[run(0.61)])
    ref = lines["ref"]
    assert [fit.A for fit in ref.fits] == pytest.approx([0.60, 0.62])
    assert pytest.approx(0.61) == ref.A
    assert pytest.approx(1.9, rel=1e-6) == ref.B
    assert ref.C_mid == pytest.approx(math.sqrt(SEVENTH * third))
    assert lines["other"].ceiling_difference == pytest.approx(0, abs=1e-12)
    (table,) = paper_document(comparison, sweep="loo", compute_name="GPU-hours")
    assert [row[1].text for row in table.rows] == ["2", "1"]


def test_a_variant_that_cannot_be_fitted_is_left_out_with_its_reason():
    comparison, lines = compared(ref=[run()], short=[run(fit_to=2000)])
    assert list(lines) == ["ref"]
    (reason,) = comparison.reasons
    assert reason.startswith("short: curve 'A 0.61': 3 evaluations with compute in (1500, 2000]")
    (table,) = paper_document(comparison, sweep="loo", compute_name="GPU-hours")
    assert reason in table.notes


def test_a_reference_that_cannot_be_fitted_is_an_error_with_its_reason():
    with pytest.raises(AblationsError, match=r"paper mode compares with 'ref', which has no fit; ref: .* at least 5"):
        compared(ref=[run(fit_to=2000)], other=[run()])
    with pytest.raises(AblationsError, match="variants with runs: other"):
        compared(other=[run()])


def test_the_warning_says_what_the_benchmark_measured():
    measured = json.loads((REPOSITORY / "benchmarks" / "results" / "paper_grid.json").read_text())["equal_pairs"]
    of_B = [round(100 * pair["same_where_A_are_within_0.02"]) for pair in measured]
    of_A = [round(100 * pair["share_with_A_further_apart_than_0.02"]) for pair in measured]
    assert "Of all pairs of runs of one recipe, one seed each, " in WARNING
    assert (
        f" A differs by more than 0.02 in up to {max(of_A)} %; of those with A within 0.02, B at the common A"
        in WARNING
    )
    assert f" differs by more than 1.96 standard errors in {min(of_B)}-{max(of_B)} %" in WARNING


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The results of a finished sweep."""
    return read_results(make_home(tmp_path_factory.mktemp("home")))


def test_a_sweep_is_fitted_on_the_papers_grid_in_proportion_to_its_budget(finished):
    comparison = paper_comparison(finished)
    # Budget 2000 for 16000: cut-off 187.5 for 1500, midpoints 12.5 to 5000 for 100 to 40000.
    assert (comparison.grid, comparison.fit_from, comparison.budget) == ("stated", 187.5, 2000)
    midpoints = 12.5 + (5000 - 12.5) / 99 * np.arange(100)
    for variant in comparison.variants:
        (fit,) = variant.fits
        assert fit.window == (200, 2000)
        assert np.min(np.abs(midpoints / fit.C_mid - 1)) < 1e-12
    A = {variant.name: variant.A for variant in comparison.variants}
    assert pytest.approx({"scalerl": 0.61, "loo-loss": 0.54, "loo-curriculum": 0.61}, abs=0.0151) == A
    assert [variant.ceiling_verdict for variant in comparison.variants] == [
        "reference",
        "ceiling down",
        "no difference seen",
    ]


def test_the_window_of_the_plan_comes_before_the_papers(finished):
    narrower = changed(finished.sweep, fit_from_gpu_hours=300.0, fit_to_gpu_hours=1500.0)
    comparison = paper_comparison(read_results(narrower))
    assert comparison.fit_from == 300
    assert {variant.fits[0].window for variant in comparison.variants} == {(350, 1500)}


def test_a_ceiling_beyond_the_papers_grid_moves_all_variants_to_the_finer_one(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    run_id = planned_run("loo-loss", 0).id
    shutil.rmtree(home.run(run_id).path)
    write_run(home, run_id, (0.88, 1.92, 320.0))
    comparison = paper_comparison(read_results(sweep))
    lines = {variant.name: variant for variant in comparison.variants}
    assert comparison.grid == "finer"
    assert {fit.grid for line in comparison.variants for fit in line.fits} == {"finer"}
    assert pytest.approx(0.88, abs=0.01) == lines["loo-loss"].A
    assert lines["loo-loss"].ceiling_verdict == "ceiling up"
    assert "a finer grid" in paper_document(comparison, sweep="loo", compute_name="GPU-hours")[0].notes[0]


def command(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


def test_compare_paper_as_json_has_every_number_and_the_warning(finished):
    home, results = finished.sweep.home, finished
    printed = json.loads(command("paper", "loo", "--json", "--home", str(home.path)))
    assert printed == {
        "sweep": "loo",
        "together_with": [],
        **json.loads(json.dumps(paper_comparison(results).to_json())),
    }
    assert (printed["mode"], printed["warning"]) == ("paper", WARNING)
    loss = next(variant for variant in printed["variants"] if variant["curve"] == "loo-loss")
    assert (loss["ceiling_verdict"], loss["A_margin"], loss["B_at_common_A"]) == ("ceiling down", 0.02, None)
    assert loss["fits"][0]["window"] == [200, 2000]


def test_without_a_fit_of_the_reference_paper_mode_says_why(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    home.run(planned_run("scalerl", 0).id).metrics.unlink()
    with pytest.raises(AblationsError, match=r"'scalerl', which has no fit; scalerl-s0: done, without"):
        paper_comparison(read_results(sweep))


def test_on_the_axes_of_figure_7_eq_1_is_c_to_the_power_of_b():
    fit = paper_fit(run(0.61, B=1.92)[0])
    C = np.array([250.0, 2518.18, 7900.0, 1e5])
    assert linearised_score(fit, eq1(C, 0.61, 1.92, SEVENTH)) == pytest.approx(C**1.92, rel=1e-6)
