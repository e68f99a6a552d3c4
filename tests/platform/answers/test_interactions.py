"""Interactions of two changes: by hand, in words, and how often they are found where the truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from curves import noisy

from ablations.answers.answer import Answer
from ablations.answers.compare import compare
from ablations.answers.interactions import Interaction, interactions
from ablations.answers.questions import LEVEL
from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import run_to_run
from ablations.answers.student import interval_of
from ablations.fit.fitting import fit_curve
from ablations.text import parts_of

CEILINGS = {"0": 0.61, "a": 0.56, "b": 0.57, "a+b": 0.555}
"""Both together lose .055, apart .05 and .04: .035 less than the sum."""


@pytest.fixture(scope="module")
def fits():
    """Two seeds of the reference, of either change, and of both."""
    return {
        name: [fit_curve(noisy(10 * place + seed, A=A, C_mid=1500.0)) for seed in range(2)]
        for place, (name, A) in enumerate(CEILINGS.items())
    }


def test_an_interaction_is_what_both_do_beyond_the_sum(fits):
    comparison = compare(fits, dict.fromkeys(fits, 1.0), "0")
    alone = {line.name: line.answers for line in comparison.variants}
    (found,) = interactions(fits, "0", alone, comparison.spreads)
    level = {line.name: line.level for line in comparison.variants}  # all runs end at one compute
    by_hand = level["a+b"] - level["a"] - level["b"] + level["0"]
    assert (found.first, found.second, found.both) == ("a", "b", "a+b")
    assert found.answers["level"].estimate == pytest.approx(by_hand)
    assert by_hand == pytest.approx(0.035, abs=0.006)
    assert found.answers["ceiling"].lo < 0.035 < found.answers["ceiling"].hi
    # Four cells instead of two: wider than a difference.
    one = alone["a"]["level"]
    assert found.answers["level"].hi - found.answers["level"].lo > one.hi - one.lo
    assert found.to_json()["words"]["level"] == found.word("level")


def test_a_name_with_both_changes_has_the_names_of_two_variants():
    assert parts_of("a+b", ["a", "b", "a+b"]) == ("a", "b")
    assert parts_of("x+y+b", ["x+y", "b"]) == ("x+y", "b")
    assert parts_of("a+c", ["a", "b"]) is None
    assert parts_of("loo-loss", ["loo-loss"]) is None


def pair(estimate, verdict, size, *, question=LEVEL, names=("a", "b")):
    answer = replace(Answer.written(question, estimate=estimate, lo=None, hi=None), verdict=verdict)
    return Interaction(
        first=names[0], second=names[1], both="+".join(names),
        answers={question.name: answer}, sizes={question.name: size},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("estimate", "verdict", "size", "word", "word_of_removals"),
    [
        # Each alone gains .05, and so do both: either does it. Taken away, the same numbers with a minus.
        (-0.05, "level down", 0.15, "do the same work", "need each other"),
        (0.05, "level up", -0.15, "do the same work", "need each other"),
        # Neither alone does anything, both gain .05. Taken away: only without both is .05 lost, so either suffices.
        (0.05, "level up", 0.05, "need each other", "do the same work"),
        (-0.05, "level down", -0.05, "need each other", "do the same work"),
        (0.001, "no difference seen", 0.1, "add up", "add up"),
        (0.02, "cannot tell", 0.1, "cannot tell", "cannot tell"),
    ],
)
def test_words_are_those_of_changes_and_of_choices_taken_away(estimate, verdict, size, word, word_of_removals):
    assert pair(estimate, verdict, size).word("level") == word
    removals = pair(estimate, verdict, size, names=("loo-loss", "loo-advantage"))
    assert removals.word("level") == word_of_removals
    assert removals.said in (word_of_removals, f"level: {word_of_removals}")


def test_an_interaction_as_large_as_a_study_sees_is_found():
    """A study of three changes and their three pairs, three seeds: sd .012, of which .0085 is shared by a seed."""
    rng, found, num_studies, starts = np.random.default_rng(3), 0, 400, ["a", "b", "c"]
    own = (0.012**2 - 0.0085**2) ** 0.5
    for _ in range(num_studies):
        table = 0.5 + 0.0085 * rng.standard_normal(3) + own * rng.standard_normal((7, 3))
        table[-1] += 0.03
        groups = [Repeats.of(row.tolist(), [0.0] * 3, starts) for row in table]
        spread = run_to_run(groups)
        contrast = spread.of_contrast([(1.0, groups[6]), (-1.0, groups[1]), (-1.0, groups[2]), (1.0, groups[0])])
        interval = interval_of([contrast], contrast.estimate)
        found += not interval.lo <= 0 <= interval.hi
    assert found / num_studies >= 0.6
