"""Rollouts of vLLM in every precision, with a tied head, with an adapter, of a folder that `transformers` has written:
what the learner makes of them before any weight has changed, and after."""

import pytest
import torch
from trainer.tiny import tiny_recipe
from trainer.tiny_adapter import adapted_recipe
from trainer.tiny_text_model import text_model

from scalerl.errors import Rejected
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.schedules import SCHEDULES

pytestmark = [pytest.mark.engines, pytest.mark.timeout(300)]

SERVED = {"hidden": 64, "layers": 2, "heads": 2, "mlp": 64}
EXPERTS = {"type": "moe", **SERVED, "experts": 4, "experts_per_token": 2}
ONE_VERSION = {
    "generator": {"type": "vllm"},
    "off_policy": {"type": "ppo_off_policy", "k": 1},
    "zero_variance": "keep",
    "curriculum": {"type": "uniform"},
    "optimiser": {"learning_rate": 1e-3, "warmup_steps": 0},
}
"""Every step trains on what its own weights have generated."""
TOLERANCES = {"fp32": 1e-5, "mixed": 0.03, "bf16": 0.03, "fp16": 0.01}
"""Nats between the log-probs of a token, in the mean."""


def mismatches(tmp_path, model, **settings):
    """Of three steps, each after the update of the one before it."""
    recipe = ResolvedRecipe.model_validate(tiny_recipe(**ONE_VERSION, **settings).model_dump() | {"model": model})
    cluster = assemble(recipe, 0, tmp_path).cluster
    try:
        return [SCHEDULES["ppo_off_policy"](cluster).update.metrics["mismatch"] for _ in range(3)]
    finally:
        cluster.close()


@pytest.mark.parametrize("parameters", TOLERANCES)
@pytest.mark.parametrize("model", [SERVED, EXPERTS], ids=["dense", "experts"])
def test_generator_and_learner_agree_in_every_precision_with_an_fp32_head(tmp_path, model, parameters):
    found = mismatches(tmp_path, model, parameters=parameters, logits="fp32")
    print("mismatch", found)
    assert max(found) <= TOLERANCES[parameters]


def of_tied_head(tmp_path, parameters):
    model = {"type": "pretrained", "path": str(text_model(tmp_path / "qwen", hidden=128))}
    end_think = {"type": "interruption", "phrase": "</think>"}
    return mismatches(tmp_path, model, parameters=parameters, length_control=end_think)


@pytest.mark.parametrize("parameters", ["fp32", "mixed"])
def test_generator_and_learner_agree_on_a_pretrained_model_with_a_tied_head(tmp_path, parameters):
    found = of_tied_head(tmp_path, parameters)
    print("mismatch", found)
    assert max(found) <= TOLERANCES[parameters]


def test_a_tied_head_that_is_not_packed_again_is_found_by_the_probe(tmp_path, monkeypatch):
    monkeypatch.setattr("scalerl.generator.vllm_worker.pack_heads", lambda model: None)
    with pytest.raises(Rejected):
        of_tied_head(tmp_path, "fp32")


TOKENS = tuple(range(20, 34))
"""Tokens to score."""


def test_vllm_and_the_learner_agree_on_a_model_with_an_adapter(tmp_path):
    settings = ONE_VERSION | {"optimiser": {"learning_rate": 1e-2, "warmup_steps": 0}}
    recipe = adapted_recipe(text_model(tmp_path / "qwen", hidden=128), **settings)
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
    print("mismatch", [row["mismatch"] for row in found], "probe", gap, "largest", largest)
    assert abs(ours - start).mean() > 0.1
    assert largest <= 1e-4
    assert not any(row["skipped"] for row in found)
    assert max(row["mismatch"] for row in found) <= 1e-4
    assert gap <= 1e-4
    # What is kept of a generator is the adapter alone.
    assert all(".lora_" in name for name in kept)
