"""The `search:` block: what it may say, the points it means, and what makes a trial good."""

import math

import pytest
from fixtures_home import BUDGET, R_0, TRUTH, make_home
from places import REPOSITORY

from ablations.findings.results import read_results
from ablations.search.objective import pareto_front, title, told, value, value_text
from ablations.study.expand import Study, expand
from ablations.study.search_points import SearchSpace, point_text
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


def test_a_search_alone_is_a_study_of_the_reference_to_begin_with(expanded):
    study = expanded("    batch.prompts: {low: 4, high: 16, step: 4}\n")
    assert [variant.name for variant in study.variants] == ["scalerl"]
    assert len(study.runs) == 3


def test_what_a_search_leaves_out_has_its_default(expanded):
    search = expanded("    batch.prompts: {low: 4, high: 16}\n").sweep.search
    assert (search.sampler, search.seed, search.trials) == ("tpe", 0, 2)
    assert search.objective == (Asymptote(of="lower"),)


def test_one_objective_or_a_list_of_them_may_be_written(expanded):
    one = expanded("    batch.prompts: {low: 4, high: 16}\n", "  trials: 2\n  objective: {type: score_at, budget: 2}\n")
    assert one.sweep.search.objective == (ScoreAt(budget=2.0),)
    several = "  trials: 2\n  objective:\n  - {type: asymptote, of: mean}\n  - {type: compute_to_reach, score: 0.6}\n"
    two = expanded("    batch.prompts: {low: 4, high: 16}\n", several)
    assert two.sweep.search.objective == (Asymptote(of="mean"), ComputeToReach(score=0.6))


def test_a_range_of_an_integer_setting_holds_integers(expanded):
    (prompts,) = space_of(expanded("    batch.prompts: {low: 4, high: 16, step: 4}\n")).dimensions
    assert prompts.values() == [4, 8, 12, 16]
    assert all(isinstance(number, int) for number in prompts.values())
    (every,) = space_of(expanded("    batch.prompts: {low: 4, high: 7}\n")).dimensions
    assert every.values() == [4, 5, 6, 7]


def test_a_stepped_range_holds_the_numbers_a_person_would_write(expanded):
    (temperature,) = space_of(expanded("    generation.temperature: {low: 0.7, high: 1.0, step: 0.1}\n")).dimensions
    assert temperature.values() == [0.7, 0.8, 0.9, 1.0]
    assert temperature.contains(0.8)
    assert not temperature.contains(0.85)


def test_a_range_without_steps_cannot_be_counted_and_holds_everything_between(expanded):
    space = space_of(expanded("    optimiser.learning_rate: {low: 1e-4, high: 3e-3, log: true}\n"))
    assert space.num_points is None
    assert space.contains({"optimiser.learning_rate": 0.00123456})
    assert not space.contains({"optimiser.learning_rate": 0.0031})
    assert not space.contains({"optimiser.learning_rates": 0.001})


def test_points_cross_all_dimensions(expanded):
    space = space_of(
        expanded("    batch.prompts: {low: 4, high: 8, step: 4}\n    loss.type: {choices: [dapo, gspo]}\n")
    )
    assert space.num_points == 4
    assert list(space.points()) == [
        {"batch.prompts": 4, "loss.type": "dapo"}, {"batch.prompts": 4, "loss.type": "gspo"},
        {"batch.prompts": 8, "loss.type": "dapo"}, {"batch.prompts": 8, "loss.type": "gspo"},
    ]  # fmt: skip


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


def test_as_many_trials_as_recipes_beside_the_reference_are_taken(expanded):
    # 4, 8, 12 and 16 prompts; 8 is the reference's own.
    study = expanded("    batch.prompts: {low: 4, high: 16, step: 4}\n", "  trials: 3\n  sampler: grid\n")
    assert study.sweep.search.trials == 3


def test_a_point_reads_as_its_settings():
    point = {"optimiser.learning_rate": 0.00123456, "batch.prompts": 16, "loss.type": "dapo"}
    assert point_text(point) == "optimiser.learning_rate = 0.001235, batch.prompts = 16, loss.type = dapo"


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Fits of a curve drawn from A = 0.61, B = 1.92, C_mid = 320, and of one of which only the start is known."""
    whole = read_results(make_home(tmp_path_factory.mktemp("whole"))).variant("scalerl").fits[0]
    short = read_results(make_home(tmp_path_factory.mktemp("short"), fraction=0.15)).variant("scalerl").fits[0]
    assert (whole.eq1_hi is None, short.eq1_hi is None) == (False, True)
    return whole, short


def test_the_ceiling_is_its_lower_end_or_its_mean(fits):
    whole, _ = fits
    assert value(Asymptote(of="lower"), [whole], BUDGET) == whole.eq1_lo < A
    assert value(Asymptote(of="mean"), [whole], BUDGET) == pytest.approx(A, abs=0.01)


def test_a_ceiling_without_an_upper_end_counts_with_its_lower_end(fits):
    _, short = fits
    assert float(short.draws.A.mean()) > short.eq1_lo + 0.05  # the prior's, and of no use in a comparison
    assert value(Asymptote(of="mean"), [short], BUDGET) == short.eq1_lo


def test_the_score_at_a_budget_is_that_of_the_curve(fits):
    whole, _ = fits
    # Eq. 1 at 1.5 x 2000 GPU-hours: 0.31 + 0.30 / (1 + (320 / 3000)^1.92) = 0.6060.
    assert value(ScoreAt(budget=1.5), [whole], BUDGET) == pytest.approx(0.6060, abs=0.01)


def test_the_compute_to_a_score_is_that_of_the_curve(fits):
    whole, _ = fits
    # The inverse of eq. 1: 320 (0.19 / 0.11)^(1 / 1.92) = 425.4.
    assert pytest.approx(425.4, abs=0.1) == C_MID * ((0.5 - R_0) / (A - 0.5)) ** (1 / B)
    assert value(ComputeToReach(score=0.5), [whole], BUDGET) == pytest.approx(425.4, rel=0.03)
    assert value(ComputeToReach(score=0.7), [whole], BUDGET) is None
    assert value(ComputeToReach(score=0.2), [whole], BUDGET) == 0.0


def test_seeds_count_by_their_mean(fits):
    whole, short = fits
    assert value(Asymptote(), [whole, short], BUDGET) == pytest.approx((whole.eq1_lo + short.eq1_lo) / 2)
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


def test_values_are_named_as_they_may_be_shown():
    assert [title(one) for one in (Asymptote(), ScoreAt(budget=1.5), ComputeToReach(score=0.6))] == [
        "A, lower end", "pass rate at 1.5", "compute to 0.6",
    ]  # fmt: skip
    assert value_text(ComputeToReach(score=0.6), None) == "never"
    assert value_text(ComputeToReach(score=0.6), 1830.4) == "1830"
    assert value_text(Asymptote(), 0.6123) == "0.612"
