"""How many times a run holds the weights of its model."""

from typing import Any

import pytest
import torch
from trainer.tiny import tiny_recipe

from scalerl.run.assemble import assemble


def copies_in(*policies):
    """How many of these policies lie in memory of their own."""
    return len({policy.head_weights()[0].untyped_storage().data_ptr() for policy in policies})


@pytest.mark.parametrize(
    ("axes", "copies"),
    [
        ({}, 3),
        ({"kl": {"coefficient": 0.1}}, 3),
        ({"loss": {"type": "grpo"}, "correction": {"type": "truncate"}, "epochs": 2}, 3),
        (
            {
                "loss": {"type": "grpo"},
                "correction": {"type": "truncate"},
                "kl": {"coefficient": 0.1},
                "off_policy": {"type": "ppo_off_policy", "k": 2},
            },
            4,
        ),
    ],
)
def test_policies_that_are_equal_are_kept_once(axes, copies, tmp_path):
    # The learner's, which evaluations decode; the generators', whose weights are older; the one that the run started
    # from, of which the KL of evaluations and the KL penalty are taken; pi_start only if a round has several batches.
    parts = assemble(tiny_recipe(**axes, warm_start={"steps": 1, "batch": 4}), 0, tmp_path)
    cluster, learner = parts.cluster, parts.cluster.learner
    drift: Any = parts.meter.held_out.drift
    held = [learner.policy, cluster.off_clock.policy, cluster.generator.policy, drift.keywords["start"]]
    held += [frozen.policy for frozen in (learner.reference, learner.start) if frozen is not None]
    assert copies_in(*held) == copies
    assert cluster.off_clock.policy is learner.policy
    weights = [one for one in held for one in one.exported_weights().values()]
    assert all(torch.isfinite(one).all() for one in weights)
