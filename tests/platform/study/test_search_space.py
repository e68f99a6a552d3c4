"""The `search:` block: what it may say, the points it means, and what makes a trial good."""

import math

import pytest
from fixtures_home import BUDGET, R_0, TRUTH, make_home
from places import REPOSITORY

from ablations.answers.compare import compare
from ablations.answers.footing import Footing
from ablations.findings.results import read_results
from ablations.search.objective import pareto_front, told, value
from ablations.study.expand import Study, expand
from ablations.study.search_points import SearchSpace
from ablations.study.search_space import Asymptote, ComputeToReach, ScoreAt

TINY = REPOSITORY / "tests/data/recipes/scales/tiny.yaml"
A, B, C_MID = TRUTH["scalerl"]


@pytest.fixture
def expanded(tmp_path):
    """Writes a search of `scalerl` on the tiny scale (8 prompts, learning rate 1e-3) and expands it."""

    def expand_search(space: str, rest: str = "  trials: 2\n") -> Study:
        path = tmp_path / "test.yaml"
        path.write_text(f"name: test\nreference: scalerl\nscale: {TINY}\nsearch:\n  space:\n{space}{rest}")
        return expand(path)

    return expand_search


def space_of(study: Study) -> SearchSpace:
    assert study.space is not None
    return study.space


def test_a_range_of_an_integer_setting_holds_integers(expanded):
    (prompts,) = space_of(expanded("    batch.prompts: {low: 4, high: 16, step: 4}\n")).dimensions
    assert prompts.values() == [4, 8, 12, 16]
    assert all(isinstance(number, int) for number in prompts.values())
    # A stepped range holds the numbers that a person would write, and points cross all dimensions.
    space = space_of(
        expanded(
            "    generation.temperature: {low: 0.7, high: 1.0, step: 0.1}\n    loss.type: {choices: [dapo, gspo]}\n"
        )
    )
    assert space.num_points == 8
    assert [tuple(point.values()) for point in space.points()] == [
        (temperature, loss) for temperature in (0.7, 0.8, 0.9, 1.0) for loss in ("dapo", "gspo")
    ]
    assert space.dimensions[0].contains(0.8)
    assert not space.dimensions[0].contains(0.85)


def test_a_range_without_steps_cannot_be_counted_and_holds_everything_between(expanded):
    space = space_of(expanded("    optimiser.learning_rate: {low: 1e-4, high: 3e-3, log: true}\n"))
    assert space.num_points is None
    assert space.contains({"optimiser.learning_rate": 0.00123456})
    assert not space.contains({"optimiser.learning_rate": 0.0031})
    assert not space.contains({"optimiser.learning_rates": 0.001})


def test_a_point_is_the_reference_with_what_its_values_set(expanded):
    space = space_of(
        expanded(
            "    batch.prompts: {low: 4, high: 16, step: 4}\n"
            "    size: {choices: {small: {model: {layers: 1, mlp: {times: 0.5}}}, large: {model.layers: 4}}}\n"
            "    cluster.slots: {choices: [4, 2]}\n"
        )
    )
    recipe, settings = space.vary({"batch.prompts": 16, "size": "small", "cluster.slots": "2"})
    assert settings == {"batch.prompts": 16, "model.layers": 1, "model.mlp": 32, "cluster.slots": 2}
    assert (recipe.batch.prompts, recipe.model.layers, recipe.model.mlp, recipe.cluster.slots) == (16, 1, 32, 2)
    assert recipe.loss == space.reference.loss


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Fits of a curve drawn from A = 0.61, B = 1.92, C_mid = 320, and of one of which only the start is known."""
    whole = read_results(make_home(tmp_path_factory.mktemp("whole"))).variant("scalerl").fits[0]
    short = read_results(make_home(tmp_path_factory.mktemp("short"), fraction=0.15)).variant("scalerl").fits[0]
    assert (whole.eq1_hi is None, short.eq1_hi is None) == (False, True)
    return whole, short


def test_the_ceiling_is_its_lower_end_or_its_mean_if_it_has_an_upper_end(fits):
    whole, short = fits
    assert value(Asymptote(of="lower"), [whole], BUDGET) == whole.ceiling.lo < A
    assert value(Asymptote(of="mean"), [whole], BUDGET) == pytest.approx(A, abs=0.01)
    assert float(short.draws.A.mean()) > short.ceiling.lo + 0.05  # the prior's, and of no use in a comparison
    assert value(Asymptote(of="mean"), [short], BUDGET) == short.ceiling.lo


@pytest.mark.parametrize("place", [0, 1])
def test_the_ceiling_of_one_seed_is_the_one_that_the_comparison_shows(fits, place):
    some = [fits[place]]
    (line,) = compare({"trial-000": some}, {"trial-000": 1.0}, "trial-000", footing=Footing(compute=1.0)).variants
    assert value(Asymptote(of="lower"), some, BUDGET) == line.asymptote.lo
    mean = line.asymptote.lo if line.asymptote.A is None else line.asymptote.A
    assert value(Asymptote(of="mean"), some, BUDGET) == mean


def test_the_score_at_a_budget_and_the_compute_to_a_score_are_those_of_the_curve(fits):
    whole, _ = fits
    # Eq. 1 at 1.5 x 2000 GPU-hours: 0.31 + 0.30 / (1 + (320 / 3000)^1.92) = 0.6060.
    assert value(ScoreAt(budget=1.5), [whole], BUDGET) == pytest.approx(0.6060, abs=0.01)
    # The inverse of eq. 1: 320 (0.19 / 0.11)^(1 / 1.92) = 425.4.
    assert pytest.approx(425.4, abs=0.1) == C_MID * ((0.5 - R_0) / (A - 0.5)) ** (1 / B)
    assert value(ComputeToReach(score=0.5), [whole], BUDGET) == pytest.approx(425.4, rel=0.03)
    assert value(ComputeToReach(score=0.7), [whole], BUDGET) is None
    assert value(ComputeToReach(score=0.2), [whole], BUDGET) == 0.0


def test_seeds_count_by_their_mean(fits):
    whole, short = fits
    assert value(Asymptote(), [whole, short], BUDGET) == pytest.approx((whole.ceiling.lo + short.ceiling.lo) / 2)
    one, other = (value(ComputeToReach(score=0.4), [fit], BUDGET) for fit in fits)
    assert value(ComputeToReach(score=0.4), [whole, short], BUDGET) == pytest.approx(math.sqrt(one * other))


def test_a_sampler_is_told_a_finite_number_for_what_is_never_reached():
    objective = ComputeToReach(score=0.6)
    assert told(objective, 500.0, 2000.0) == pytest.approx(6.2146, abs=1e-4)  # ln 500
    assert told(objective, None, 2000.0) == pytest.approx(9.9035, abs=1e-4)  # ln 20000, ten budgets
    assert told(objective, 1e9, 2000.0) == told(objective, None, 2000.0)
    assert told(objective, 0.0, 2000.0) == pytest.approx(0.6931, abs=1e-4)  # ln 2, a thousandth of a budget
    assert told(Asymptote(), 0.61, 2000.0) == 0.61


def test_the_pareto_front_holds_what_nothing_beats():
    # Ceiling up, compute down: (0.60, 400) is beaten by (0.61, 300); (0.55, 200) is the cheapest; twins stay both.
    values = [(0.60, 400.0), (0.61, 300.0), (0.55, 200.0), (0.55, 250.0), (0.61, 300.0)]
    assert pareto_front(values, [True, False]) == [1, 2, 4]
