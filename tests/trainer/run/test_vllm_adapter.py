"""Rollouts of vLLM with an adapter, which is added to the weights that it serves: what the learner makes of them."""

import pytest
import torch
from trainer.tiny_adapter import adapted_recipe
from trainer.tiny_text_model import text_model

from scalerl.run.assemble import assemble
from scalerl.schedules import SCHEDULES

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

ONE_VERSION = {
    "generator": {"type": "vllm"},
    "off_policy": {"type": "ppo_off_policy", "k": 1},
    "curriculum": {"type": "uniform"},
    "optimiser": {"learning_rate": 1e-2, "warmup_steps": 0},
}
"""Every step trains on what its own weights have generated."""
TOKENS = tuple(range(20, 34))
"""Tokens to score."""


def test_vllm_and_the_learner_agree_on_a_model_with_an_adapter(tmp_path):
    recipe = adapted_recipe(text_model(tmp_path / "qwen", hidden=128), **ONE_VERSION)
    parts = assemble(recipe, 0, tmp_path)
    cluster = parts.cluster
    policy = cluster.learner.policy
    start = cluster.off_clock.score(TOKENS)
    generator = torch.Generator().manual_seed(0)
    policy.import_weights(
        {key: torch.randn(one.shape, generator=generator) / 8 for key, one in cluster.learner.weights().items()}
    )
    try:
        cluster.synchronise()
        found = [SCHEDULES["ppo_off_policy"](cluster).update.metrics for _ in range(3)]
        probe = cluster.probe()
        cluster.synchronise()
        gap = probe.gap(cluster.generator)
        kept = cluster.generator.state_dict()["weights"]
        ours = policy.score(torch.tensor([TOKENS]), 1.0).logprobs_BT[0, 1:].numpy(force=True)
        served = cluster.generator.score(TOKENS)
    finally:
        cluster.close()
    largest = float(abs(served - ours).max())
    print(
        "mismatch",
        [row["mismatch"] for row in found],
        "probe",
        gap,
        "largest",
        largest,
        "drift",
        abs(ours - start).mean(),
    )
    assert abs(ours - start).mean() > 0.1
    assert largest <= 1e-4
    assert not any(row["skipped"] for row in found)
    assert max(row["mismatch"] for row in found) <= 1e-4
    assert gap <= 1e-4
    # What is kept of a generator is the adapter alone.
    assert all(".lora_" in name for name in kept)
