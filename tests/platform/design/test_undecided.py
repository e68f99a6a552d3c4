"""What would tell where a comparison cannot, by hand."""

from dataclasses import replace

import pytest
from fixtures_home import make_home

from ablations.design.command import design_command
from ablations.design.undecided import what_would_tell
from ablations.verdict.compare import Comparison
from ablations.verdict.results import Results, read_results


@pytest.fixture
def results(tmp_path) -> Results:
    return read_results(make_home(tmp_path, seeds=(0, 1)))


def with_line(results: Results, **changes) -> Results:
    """The reference, and one variant of which everything is told but what is changed."""
    reference, other, _ = results.comparison.variants
    told = {"level_difference": "level down", "difference": "ceiling down", "efficiency": "less compute"}
    variants = (reference, replace(other, **{**told, **changes}))
    spreads = results.comparison.spreads
    return replace(results, comparison=Comparison(reference="scalerl", variants=variants, spreads=spreads))


def test_nothing_is_said_where_every_verdict_tells(results):
    assert what_would_tell(with_line(results)) == ""
    assert what_would_tell(with_line(results, level_difference="no difference seen")) == ""


def test_seeds_shrink_an_interval_to_the_widest_that_tells(results):
    # Half-widths .036 and .025: two seeds times (.036 / .025)^2 are 4.1, so five.
    changed = with_line(results, level_difference="cannot tell", delta_level_lo=-0.03, delta_level_hi=0.042)
    assert what_would_tell(changed) == (
        "What would tell where it cannot: 5 seeds instead of 2 for level; `platform design sweeps/loo.yaml` says what "
        "each design would see."
    )


def test_an_interval_without_an_end_needs_compute(results):
    changed = with_line(
        results,
        difference="cannot tell",
        delta_A_hi=None,
        efficiency="cannot tell",
        compute_ratio_lo=0.8,
        compute_ratio_hi=1.35,  # a factor of 1.69, where 1.5 is the widest: 2 x (ln 1.69 / ln 1.5)^2 = 3.3
    )
    assert "4 seeds instead of 2 for compute; twice the budget or more for ceiling;" in what_would_tell(changed)


def test_more_than_ten_seeds_are_not_proposed(results):
    changed = with_line(results, difference="cannot tell", delta_A_lo=-0.1, delta_A_hi=0.1)  # 12.5
    assert what_would_tell(changed).startswith("What would tell where it cannot: twice the budget or more for ceiling;")


def test_curves_of_other_trainers_have_no_file_to_name(results):
    changed = with_line(results, level_difference="cannot tell", delta_level_lo=-0.03, delta_level_hi=0.042)
    changed = replace(changed, sweep=replace(changed.sweep, plan=replace(changed.plan, scale="")))
    assert what_would_tell(changed) == "What would tell where it cannot: 5 seeds instead of 2 for level."


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (
            "platform sweep 'my study.yaml' --scale smoke --set a=1 --jobs 2 --home h --yes --executor slurm",
            "platform design 'my study.yaml' --scale smoke --set a=1 --home h",
        ),
        ("platform sweep loo.yaml --budget=2 --dry-run --json", "platform design loo.yaml --budget=2"),
        ("", "platform design FILE"),
    ],
)
def test_the_command_keeps_what_makes_the_study(results, command, found):
    assert design_command(replace(results.plan, command=command)) == found
