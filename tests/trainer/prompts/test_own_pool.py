"""Draws by the weights of a user's own function: in proportion, with what is known so far, and resumed exactly."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from trainer.own_functions import CURRICULUM, own_function
from trainer.tiny import make_group, make_prompt

from scalerl.checks.own_trial import tried
from scalerl.prompts.ordered_pool import pool_of
from scalerl.recipe.own_function import OwnFailed

PROMPTS = [
    replace(make_prompt(name, tokens=(7,) * (3 + number)), difficulty=float(number))
    for number, name in enumerate("abcd")
]


def pool_by(folder, weights, **parameters):
    """A pool whose function returns this expression of `given`."""
    body = CURRICULUM.split("    uncertain")[0] + f"    return CurriculumOutputs(weight_N={weights})\n"
    return pool_of(PROMPTS, own_function(folder, "curriculum", body, **parameters), np.random.default_rng(0))


def answered(name, rewards):
    group = make_group(name, [[5, 1]] * len(rewards), [[-1.0, -1.0]] * len(rewards), list(rewards))
    return replace(group, prompt=next(prompt for prompt in PROMPTS if prompt.id == name))


def test_prompts_are_drawn_in_proportion_to_their_weights(tmp_path):
    pool = pool_by(tmp_path, "given.difficulty_N")
    counts = Counter(pool.draw().id for _ in range(6000))
    assert counts["a"] == 0
    # Weights 1, 2 and 3 of 6; the standard error of 3000 is 39.
    assert [counts[name] for name in "bcd"] == pytest.approx([1000, 2000, 3000], abs=150)


def test_the_function_is_given_what_is_known_of_each_prompt(tmp_path):
    pool = pool_by(tmp_path, "np.ones(len(given.draws_N))")
    drawn = Counter(pool.draw().id for _ in range(10))
    pool.record(answered("b", [1.0, -1.0, -1.0, -1.0]))
    pool.record(answered("b", [1.0, 1.0, 1.0, -1.0]))
    given = pool.inputs()
    assert given.difficulty_N.tolist() == [0, 1, 2, 3]
    assert given.length_N.tolist() == [3, 4, 5, 6]
    assert given.draws_N.tolist() == [drawn[name] for name in "abcd"]
    assert given.groups_N.tolist() == [0, 2, 0, 0]
    assert given.pass_rate_N.tolist() == [0, 0.5, 0, 0]
    assert pool.epoch == min(drawn[name] for name in "abcd")
    assert not pool.is_exhausted


def test_a_resumed_pool_draws_what_it_would_have_drawn(tmp_path):
    one, other = (pool_by(tmp_path, "1 / (1 + given.draws_N)") for _ in range(2))
    for _ in range(7):
        one.draw()
    one.record(answered("c", [1.0, -1.0]))
    other.load_state_dict(one.state_dict())
    assert [one.draw() for _ in range(20)] == [other.draw() for _ in range(20)]
    np.testing.assert_equal(vars(one.inputs()), vars(other.inputs()))


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ("given.draws_N * 0.0", "weights that are NaN, infinite or below 0, or all 0"),
        ("given.difficulty_N - 1.0", "weights that are NaN, infinite or below 0, or all 0"),
        ("given.difficulty_N[:2]", "weight_N of shape (2,); its axes are N=4"),
    ],
)
def test_weights_that_are_no_probabilities_end_the_run_in_words(weights, words, tmp_path):
    pool = pool_by(tmp_path, weights)
    with pytest.raises(OwnFailed) as caught:
        pool.draw()
    assert str(caught.value).startswith(f"{tmp_path}/my_ideas/curriculums.py: mine returns ")
    assert words in str(caught.value)


def test_a_curriculum_is_accepted_with_its_time(tmp_path):
    answer = tried("curriculum", own_function(tmp_path, "curriculum", CURRICULUM, floor=0.2))
    assert not answer["remedy"], answer
    assert answer["found"].endswith(" ms for a draw from 1,000 prompts")


BROKEN = {
    "only unknown prompts": ("uncertain + floor, 1.0", "0.0, given.groups_N.max() == 0", "or all 0"),
    "random": ("uncertain + floor", "np.random.random(1000)", "returns something different when called again"),
    "in place": ("uncertain =", "given.draws_N[:] = 1; uncertain =", "changes its input draws_N"),
    "slow": ("uncertain =", "import time; time.sleep(0.05); uncertain =", "ms for a draw from 1,000 prompts"),
}
"""What is written instead of what, and words of the message."""


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_curriculum_is_refused(fault, tmp_path):
    old, new, words = BROKEN[fault]
    assert old in CURRICULUM
    answer = tried("curriculum", own_function(tmp_path, "curriculum", CURRICULUM.replace(old, new)))
    assert answer["remedy"]
    assert words in answer["found"]
    assert answer["found"].startswith(f"{tmp_path}/my_ideas/curriculums.py:")
    assert answer["remedy"]
