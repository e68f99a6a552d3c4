"""What would tell where a comparison cannot, by hand."""

from dataclasses import replace

import pytest
from fixtures_answers import with_line
from fixtures_home import make_home

from ablations.findings.advice import advice, short_advice
from ablations.findings.design_options import design_command
from ablations.findings.results import Results, read_results


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Results:
    return read_results(make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1)))


def told_but(results: Results, **changes) -> Results:
    """The reference, and one variant of which everything is told but what is changed."""
    reference, other, _ = results.comparison.variants
    told = {"level": "level down", "ceiling": "ceiling down", "compute": "less compute"}
    answers = {name: {"verdict": verdict} | changes.get(name, {}) for name, verdict in told.items()}
    assert results.comparison is not None
    pair = replace(results, comparison=replace(results.comparison, variants=(reference, other)))
    return with_line(pair, other.name, answers=answers)


def test_nothing_is_said_where_every_verdict_tells(results):
    assert advice(told_but(results)) == short_advice(told_but(results)) == ""
    assert advice(told_but(results, level={"verdict": "no difference seen"})) == ""


def test_seeds_shrink_an_interval_to_the_widest_that_tells(results):
    # Half-widths .036 and .025: two seeds times (.036 / .025)^2 are 4.1, so five.
    changed = told_but(results, level={"verdict": "cannot tell", "lo": -0.03, "hi": 0.042})
    assert advice(changed) == (
        "To decide the level: 5 seeds instead of 2. `platform design sweeps/loo.yaml` shows what each design could "
        "detect."
    )


def test_an_interval_without_an_end_needs_compute(results):
    changed = told_but(
        results,
        ceiling={"verdict": "cannot tell", "hi": None},
        # A factor of 1.69; 1.5 is the widest: 2 x (ln 1.69 / ln 1.5)^2 = 3.3.
        compute={"verdict": "cannot tell", "lo": 0.8, "hi": 1.35},
    )
    said = "To decide the compute: 4 seeds instead of 2. To decide the ceiling: at least twice the budget."
    assert advice(changed).startswith(said)
    assert short_advice(changed) == "To decide compute: 4 seeds; ceiling: at least twice the budget."


def test_more_than_ten_seeds_are_not_proposed(results):
    changed = told_but(results, ceiling={"verdict": "cannot tell", "lo": -0.1, "hi": 0.1})  # 12.5
    assert advice(changed).startswith("To decide the ceiling: at least twice the budget.")


def test_curves_of_other_trainers_have_no_file_to_name(results):
    changed = told_but(results, level={"verdict": "cannot tell", "lo": -0.03, "hi": 0.042})
    assert advice(replace(changed, sweep=None)) == "To decide the level: 5 seeds instead of 2."


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
