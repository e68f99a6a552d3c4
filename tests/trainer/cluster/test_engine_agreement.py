"""A generator that does not serve the weights it was given ends the run with this reason."""

import numpy as np
import pytest
from trainer.tiny import generator_of, random_policy, tiny_recipe

from scalerl.cluster.engine_agreement import NUM_TOKENS, WeightProbe, probe_tokens, refuse_to_disagree
from scalerl.errors import Rejected
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

RECIPE = tiny_recipe(generation={"thinking": 60})
TASK = all_tasks(RECIPE.tasks, (), make_tokenizer(RECIPE.model)).trained


def test_the_gap_is_the_mean_distance_of_the_log_probs_to_a_training_pass():
    old, new = random_policy(RECIPE, 0), random_policy(RECIPE, 1)
    generator = generator_of(RECIPE, TASK, old, slots=2)
    tokens = probe_tokens(RECIPE, TASK.train)
    assert len(tokens) == NUM_TOKENS
    assert tokens[:4] == (*TASK.train[0].tokens, *TASK.train[1].tokens)[:4]
    probe = WeightProbe(tokens=tokens, expected=generator.score(tokens))
    assert probe.gap(generator) == 0
    generator.set_weights(new.exported_weights(), version=1)
    assert probe.gap(generator) == pytest.approx(np.abs(generator.score(tokens) - probe.expected).sum() / 63)
    assert probe.gap(generator) > 0.1


def test_a_gap_beyond_rounding_ends_the_run_and_so_does_one_that_is_not_a_number():
    refuse_to_disagree(RECIPE, 9e-4, 3)
    rounded = tiny_recipe(parameters="mixed")
    refuse_to_disagree(rounded, 0.09, 3)
    for recipe, gap in ((RECIPE, 1.1e-3), (rounded, 0.11), (RECIPE, float("nan"))):
        with pytest.raises(Rejected, match="with weights 7 the generator's log-probabilities differ"):
            refuse_to_disagree(recipe, gap, 7)
