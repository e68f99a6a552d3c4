"""Seeds, budgets and samples that are looked at, and what they cost, by hand."""

import pytest
from fixtures_design import study_of, trained_home

from ablations.findings.design_options import Blueprint, StudyDesign, seeds_of
from ablations.home.home import Home


@pytest.mark.parametrize(
    ("seeds", "count", "found"),
    [((0,), 3, (0, 1, 2)), ((0, 1, 2), 2, (0, 1)), ((7, 1), 5, (7, 1, 0, 2, 3)), ((4,), 1, (4,))],
)
def test_seeds_that_are_there_are_kept(seeds, count, found):
    assert seeds_of(seeds, count) == found


def test_the_file_comes_first_and_no_design_twice(tmp_path):
    blueprint = Blueprint(study=study_of(tmp_path), home=Home(tmp_path), budget=1.0)
    designs = list(blueprint.choices())
    assert designs[0] == StudyDesign(seeds=(0, 1, 2), budget=1.0, samples=4)
    assert len(designs) == len(set(designs)) == 3 * 3 * 2
    assert {len(one.seeds) for one in designs} == {2, 3, 5}
    assert ({one.budget for one in designs}, {one.samples for one in designs}) == ({0.5, 1.0, 2.0}, {4, 16})


def test_what_is_trained_is_not_paid_again(tmp_path):
    study = study_of(tmp_path)
    blueprint = Blueprint(study=study, home=trained_home(tmp_path / "home", study), budget=1.0)
    own = blueprint.costs(StudyDesign(seeds=(0, 1, 2), budget=1.0, samples=4))
    assert (own.whole, own.left, own.num_runs) == (6.0, 0.0, 6)
    more_seeds = blueprint.costs(StudyDesign(seeds=(0, 1, 2, 3, 4), budget=1.0, samples=4))
    assert (more_seeds.whole, more_seeds.left, more_seeds.num_runs) == (10.0, 4.0, 10)
    longer = blueprint.costs(StudyDesign(seeds=(0,), budget=2.0, samples=4))
    assert (longer.whole, longer.left, longer.left_share) == (4.0, 2.0, 0.5)
    other_runs = blueprint.costs(StudyDesign(seeds=(0, 1, 2), budget=1.0, samples=16))
    assert (other_runs.whole, other_runs.left) == (6.0, 6.0)
