"""Counts of right answers by prompt: as text and back, against a loop over the answers."""

from functools import partial

import numpy as np
import pytest
from trainer.tiny import PolicySampler, random_policy, tiny_recipe

from scalerl.evaluation.drift import policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator, samples_of
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.rollout import Judgement
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer


def counts(right, judged):
    return PromptCounts(right=np.array(right), judged=np.array(judged))


@pytest.mark.parametrize(
    ("right", "judged", "text"),
    [
        ([8, 7, 0, 5], [8, 8, 8, 8], "8:8705"),
        ([8, 7, 0, 4], [8, 8, 8, 7], "8:8704:8887"),
        ([16, 10, 0], [16, 16, 16], "16:ga0"),
        ([35, 1], [35, 35], "35:z1"),
        ([36, 1, 35], [36, 36, 36], "36:10010z"),
        ([0, 1295], [0, 1295], "1295:00zz:00zz"),
        ([1296], [1296], "1296:100"),
    ],
)
def test_counts_are_digits_to_base_36_and_come_back(right, judged, text):
    assert counts(right, judged).to_text() == text
    back = PromptCounts.from_text(text)
    assert (back.right.tolist(), back.judged.tolist()) == (right, judged)


@pytest.mark.parametrize(
    "text", ["", "8", "8:", "8:8A", "8:89", "8:870:88", "8:87:77", "36:100", "0:00", "08:8", "8:8705\n", ":8705"]
)
def test_text_that_is_no_counts_is_refused(text):
    with pytest.raises(ValueError, match="found "):
        PromptCounts.from_text(text)


@pytest.mark.parametrize("texts", [["8:8705", "8:0018", "8:2222"], ["36:10010z", "36:00000a"], ["16:g"]])
def test_counts_of_several_evaluations_are_found_together(texts):
    found = PromptCounts.from_texts(texts)
    assert found is not None
    alone = [PromptCounts.from_text(text) for text in texts]
    assert found.right.tolist() == [one.right.tolist() for one in alone]
    assert found.judged.tolist() == [one.judged.tolist() for one in alone]


@pytest.mark.parametrize(
    "other", ["8:8704:8887", "8:870", "8:87050", "7:7705", "8:8905", "8:87-5", "8:87\ud8005", "8:87é5"]
)
@pytest.mark.parametrize("place", [0, 1])
def test_counts_that_are_not_alike_or_invalid_are_not_found_together(other, place):
    texts = ["8:8705", "8:0018"]
    texts.insert(place, other)
    assert PromptCounts.from_texts(texts) is None


@pytest.mark.parametrize("samples", [1, 3])
def test_a_row_counts_the_answers_of_each_held_out_prompt_in_its_place(samples, monkeypatch):
    recipe = tiny_recipe(evaluation={"samples": samples})
    policy, task = random_policy(recipe), make_task(recipe.tasks[0], make_tokenizer(recipe.model))

    def verdict(prompt, response):
        # Whatever the policy says: by the length of what it says, some of each, and some that cannot be judged.
        return ("right", "wrong", "crashed", "right")[(len(response) + len(prompt.tokens)) % 4]

    monkeypatch.setattr(task, "judge", lambda prompt, response: Judgement(verdict(prompt, response)))
    evaluator = HeldOutEvaluator(recipe=recipe, task=task, seed=0, drift=partial(policy_drift, start=policy))
    sampler = PolicySampler(recipe, task, policy)
    (row,) = evaluator.measure(sampler, 2)
    found = PromptCounts.from_text(row["prompt_counts"])
    entropy = np.random.SeedSequence((0, 1, 2))
    answers = [one.rollout for one in samples_of(recipe, sampler, task.validation, samples, entropy)]
    outcomes = [
        [verdict(prompt, one.tokens.tolist()) for one in answers if one.prompt.id == prompt.id]
        for prompt in task.validation
    ]
    assert found.right.tolist() == [one.count("right") for one in outcomes]
    assert found.judged.tolist() == [samples - one.count("crashed") for one in outcomes]
    assert len({tuple(one) for one in outcomes}) > 1
    assert "crashed" in {outcome for one in outcomes for outcome in one}
    assert row["pass_rate"] == pytest.approx(found.right.sum() / found.judged.sum(), abs=1e-15)
    assert (row["num_samples"], row["num_prompts"]) == (found.judged.sum(), np.count_nonzero(found.judged))
