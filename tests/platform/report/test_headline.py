"""The verdict in one line, for every kind of outcome."""

import dataclasses
from dataclasses import replace

import pytest
from fixtures_answers import with_line
from generated_home import Size, write_home
from imported import compared

from ablations.findings.results import read_results
from ablations.imports.orders import Foreign
from ablations.report.documents.comparison import next_line
from ablations.report.documents.headline import headline
from ablations.study.resolve import load_resolved


def with_level(results, name, verdict, estimate, lo, hi, *, joint_verdict=None):
    """The results with another level of a variant; without `joint_verdict` the joint interval says the same."""
    level = {"verdict": verdict, "joint_verdict": joint_verdict or verdict, "estimate": estimate, "lo": lo, "hi": hi}
    return with_line(results, name, answers={"level": level})


SLOWER = "loo-loss and loo-curriculum need 1.49 to 1.64 times the compute of scalerl to the same pass rate."
"""The C_mid of loo-curriculum is 1.5 times the reference's; loo-loss rises to less."""
LOWER = "loo-loss has a lower ceiling than scalerl, by 0.072 [0.066, 0.078]."
ALIKE = "No difference is seen between the ceilings of scalerl and loo-curriculum."


def test_the_change_of_the_first_line_names_the_references_own_value(tmp_path):
    results = read_results(write_home(tmp_path, Size(variants=2, seeds=2, evaluations=12, metrics=11)))
    own = load_resolved("scalerl", "smoke").optimiser.learning_rate
    assert f"(optimiser.learning_rate = 0.0001 instead of {own:g})" in headline(results)[0]


def test_a_reference_that_all_fall_short_of_leads(decided):
    level = decided.compared("loo-curriculum").answers["level"]
    less = f"{-level.estimate:.3f} [{-level.hi:.3f}, {-level.lo:.3f}]"
    assert headline(decided) == (
        f"scalerl leads: the runner-up, loo-curriculum (curriculum.type = uniform), is {less} lower in pass rate at "
        "equal compute.",
        LOWER,
        ALIKE,
        SLOWER,
        "Every comparison is decided.",
    )


def test_the_best_of_those_that_beat_the_reference_leads_with_what_it_changes(decided):
    one = with_level(decided, "loo-loss", "level up", 0.05, 0.03, 0.07)
    both = with_level(one, "loo-curriculum", "level up", 0.02, 0.01, 0.03)
    assert headline(both)[0] == (
        "loo-loss (loss.type = dapo) leads scalerl by 0.050 [0.030, 0.070] in pass rate at equal compute; "
        "2 of 2 beat scalerl."
    )
    alone = with_level(decided, "loo-loss", "level up", 0.05, 0.03, 0.07, joint_verdict="cannot tell")
    assert headline(alone)[0].endswith("at equal compute, but not with an interval corrected for 2 comparisons.")


def test_several_ceilings_without_a_difference_share_a_sentence(decided):
    alike = with_line(
        decided,
        "loo-loss",
        answers={"ceiling": {"verdict": "no difference seen", "estimate": 0.0, "lo": -0.01, "hi": 0.01}},
    )
    said = "No difference is seen between the ceiling of scalerl and those of loo-loss and loo-curriculum."
    assert said in headline(alike)


def test_what_is_undecided_is_named_with_what_it_would_cost_to_know(decided):
    # A half-width of .03 is to become .025: 3 seeds times (.03 / .025)^2 are 4.3, so 5, of it and of the reference.
    unsure = with_level(decided, "loo-curriculum", "cannot tell", 0.01, -0.02, 0.04)
    assert headline(unsure) == (
        "No variant is known to beat scalerl: loo-curriculum (curriculum.type = uniform) is ahead "
        "by 0.010 [-0.020, 0.040] in pass rate at equal compute, which is not certain; 1 of 2 variants falls short of "
        "scalerl.",
        LOWER,
        ALIKE,
        SLOWER,
        "Undecided: the level of loo-curriculum.",
    )
    assert next_line(unsure) == (
        "Next: 5 seeds instead of 3 of loo-curriculum and scalerl would settle the level, for 8,000 more GPU-hours "
        "(12,000 with all variants): `seeds: [0, 1, 2, 3, 4]` in the sweep file, then "
        f"`platform sweep sweeps/loo.yaml --home {decided.sweep.home.path}`."
    )


def test_an_interval_without_an_end_needs_more_compute(decided):
    answers = {"ceiling": {"verdict": "cannot tell", "estimate": None, "lo": 0.01, "hi": None}}
    unsure = with_line(decided, "loo-loss", answers=answers)
    assert headline(unsure)[1:] == (
        ALIKE,
        SLOWER,
        "Undecided: the ceiling of loo-loss.",
    )
    assert next_line(unsure) == (
        "Next: At least twice the budget of loo-loss and scalerl would settle the ceiling, for 12,000 more GPU-hours "
        "(18,000 with all variants): "
        f"`platform sweep sweeps/loo.yaml --budget 4000h --home {decided.sweep.home.path}`."
    )


def test_one_seed_decides_nothing(finished):
    estimate = finished.compared("loo-curriculum").answers["level"].estimate
    assert headline(finished) == (
        f"scalerl is highest so far, loo-curriculum (curriculum.type = uniform) next, {estimate:+.3f} relative to "
        "scalerl, but one seed cannot separate them.",
    )


def test_without_a_fit_there_is_no_verdict_and_what_lacks_one_is_named(decided):
    assert headline(dataclasses.replace(decided, comparison=None)) == ("No comparison yet: scalerl has no fit.",)
    lines = tuple(line for line in decided.comparison.variants if line.name != "loo-loss")
    without = dataclasses.replace(decided, comparison=dataclasses.replace(decided.comparison, variants=lines))
    assert headline(without)[3] == "No fit yet: loo-loss."


def test_who_is_known_to_need_less_and_more_compute_is_said(decided):
    faster = {"compute": {"verdict": "less compute", "estimate": 0.81}}
    said = headline(with_line(decided, "loo-curriculum", answers=faster))
    assert said[3:5] == (
        "loo-curriculum needs 0.81 times the compute of scalerl to the same pass rate.",
        "loo-loss needs 1.64 times the compute of scalerl to the same pass rate.",
    )
    much = with_line(decided, "loo-curriculum", answers={"compute": {"verdict": "more compute", "estimate": 12.5}})
    assert "need 1.64 to 12.50 times the compute" in headline(much)[3]
    unknown = {"compute": {"verdict": "cannot tell", "estimate": 0.81}}
    both = with_line(with_line(decided, "loo-curriculum", answers=unknown), "loo-loss", answers=unknown)
    assert "times the compute" not in " ".join(headline(both))


def test_ceilings_that_are_known_to_be_higher_or_lower_are_summed_up(decided):
    up = {name: {"verdict": "ceiling up", "estimate": by} for name, by in (("loo-loss", 0.09), ("loo-curriculum", 0.1))}
    one = with_line(decided, "loo-loss", answers={"ceiling": up["loo-loss"]})
    both = with_line(one, "loo-curriculum", answers={"ceiling": up["loo-curriculum"]})
    assert headline(both)[1] == "loo-loss and loo-curriculum have a higher ceiling than scalerl, by 0.090 to 0.100."
    at_least = with_line(one, "loo-loss", answers={"ceiling": {"verdict": "ceiling up", "estimate": None, "lo": 0.04}})
    assert headline(at_least)[1:3] == ("loo-loss has a higher ceiling than scalerl.", ALIKE)


def test_the_leader_is_compared_with_the_runner_up(tmp_path):
    """The first two of the generated variants lie .015 apart, each about .05 above the reference."""
    results = read_results(write_home(tmp_path, Size(variants=5, seeds=3, evaluations=24, metrics=11)))
    comparison, first = results.comparison, headline(results)[0]
    assert comparison is not None
    leader = comparison.leader
    assert leader is not None
    best, second, *_ = sorted(comparison.variants, key=lambda one: -(one.level or 0.0))
    assert (leader.variant, leader.runner_up) == (best.name, second.name)
    assert leader.ahead.estimate == pytest.approx((best.level or 0.0) - (second.level or 0.0), abs=1e-3)
    assert first.startswith(f"{best.name} (")
    if leader.not_ruled_out:
        assert (leader.ahead.lo or 0.0) < 0
        assert first.endswith(
            f"; {second.name} (better with probability {leader.not_ruled_out[second.name]:.2f}) "
            "is not ruled out as the best."
        )
    else:
        assert first.endswith(f"; the runner-up, {second.name}, is {leader.ahead.unsigned} behind.")
    unsure = replace(leader, not_ruled_out={second.name: 0.4})
    said = replace(results, comparison=replace(comparison, leader=unsure))
    assert headline(said)[0].endswith(
        f" beat scalerl; {second.name} (better with probability 0.40) is not ruled out as the best."
    )
    three = {"a": 0.1, second.name: 0.3, "b": None}
    said = replace(results, comparison=replace(comparison, leader=replace(leader, not_ruled_out=three)))
    assert headline(said)[0].endswith(
        f"; {second.name} (better with probability 0.30) and 2 other variants are not ruled out as the best."
    )


def test_the_only_variant_does_not_come_closest(tmp_path):
    results = read_results(write_home(tmp_path, Size(variants=2, seeds=2, evaluations=12, metrics=11)))
    name = results.variants[1].name
    lower = with_level(results, name, "cannot tell", -0.151, -0.3, 0.01)
    assert "comes closest" not in headline(lower)[0]
    assert headline(lower)[0].endswith(
        "is 0.151 [-0.010, 0.300] lower in pass rate at equal compute, which is not certain."
    )


def test_short_logs_that_all_fall_are_named_before_it_is_called_too_early(tmp_path):
    """Two variants of two seeds fall from .95 to .35 in four evaluations after the start."""
    rows = [
        f"{curve},{seed},{100 * place},{0.95 - 0.15 * place + 0.001 * seed:.3f}"
        for curve in ("scalerl", "quick")
        for seed in (0, 1)
        for place in range(5)
    ]
    (tmp_path / "curves.csv").write_text("\n".join(["curve,seed,compute,score", *rows]))
    foreign = Foreign(names=(str(tmp_path / "curves.csv"),))
    assert headline(compared(foreign, tmp_path / "home", "scalerl")) == (
        "Both variants end below their start: RL makes this model worse.",
        "Too early to compare: scalerl has 4 of the 6 evaluations after step 0 that a fit needs.",
    )
