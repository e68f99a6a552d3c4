"""Whole runs with an adapter: what they hold on disk, and that they resume to the bit."""

import pytest
import torch
from safetensors import safe_open
from trainer.runs import rows_of, trained
from trainer.tiny_adapter import adapted_recipe
from trainer.tiny_text_model import text_model
from transformers import AutoModelForCausalLM

from scalerl.model.adapter import AdaptedPolicy
from scalerl.model.build import new_policy
from scalerl.run.assemble import assemble
from scalerl.run.checkpoint import read_checkpoint
from scalerl.schedules import SCHEDULES

LEARNS = {
    "evaluation": {"every": 2.0, "samples": 2},
    "warm_start": {"steps": 5, "batch": 16, "learning_rate": 1e-2, "noise": 0.25},
    "optimiser": {"learning_rate": 1e-2, "warmup_steps": 0},
    "entropy_bonus": 0.1,
}
"""With a gradient even where no answer is right."""
ROUNDS = {
    "off_policy": {"type": "ppo_off_policy", "k": 2},
    "loss": {"type": "grpo"},
    "correction": {"type": "truncate"},
    "kl": {"coefficient": 0.1},
}
"""A reference, and a copy of the start of each round."""
SMALL_STATE = 100_000
"""Bytes of a checkpoint's manifest, of the headers of its files, and of what is not a tensor."""


def bytes_of(tensors):
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def versions_in(cluster):
    """Every set of weights in a cluster's state."""
    learner = cluster["learner"]
    under_way = [weights for _, _, weights in cluster["pushes"]]
    return [
        learner["policy"],
        *([learner["start"]] if "start" in learner else []),
        cluster["generator"]["weights"],
        *under_way,
    ]


@pytest.mark.slow
def test_a_run_stopped_twice_equals_one_in_one_go_to_the_bit(tmp_path, warm_starts, qwen):
    recipe = adapted_recipe(qwen, **LEARNS, **ROUNDS)
    whole = trained(tmp_path / "whole", recipe, warm_starts, [8.0])
    parts = trained(tmp_path / "parts", recipe, warm_starts, [1.5, 4.0, 8.0])
    steps = [row for row in rows_of(whole) if row["kind"] == "train"]
    assert len(steps) >= 4
    assert len({row["entropy"] for row in steps}) == len(steps)
    assert rows_of(parts) == rows_of(whole)
    ours, theirs = (AutoModelForCausalLM.from_pretrained(folder.model).state_dict() for folder in (parts, whole))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


@pytest.mark.engines
def test_a_run_of_two_ranks_resumes_to_the_bit_and_leaves_a_model(tmp_path, warm_starts, qwen):
    recipe = adapted_recipe(qwen, learner={"type": "fsdp", "ranks": 2}, **LEARNS, **ROUNDS)
    whole = trained(tmp_path / "whole", recipe, warm_starts, [8.0])
    parts = trained(tmp_path / "parts", recipe, warm_starts, [4.0, 8.0])
    assert rows_of(parts) == rows_of(whole)
    ours, theirs = (AutoModelForCausalLM.from_pretrained(folder.model).state_dict() for folder in (parts, whole))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    start = AutoModelForCausalLM.from_pretrained(qwen).state_dict()
    assert any(not torch.equal(tensor, start[name]) for name, tensor in ours.items())
    # Two checkpoints of 16 KiB for the adapter, each moment and the start of the round, and the names of tensors.
    assert sum(path.stat().st_size for path in parts.checkpoint.glob("rank-*")) < 2 * (4 * 16384 + SMALL_STATE)


def test_a_checkpoint_holds_the_adapter_alone_and_the_model_folder_its_sum_with_the_weights(tmp_path, warm_starts):
    # Wide enough that the adapter outweighs the rows of the log and the rollouts in flight.
    folder = text_model(tmp_path / "qwen", hidden=128)
    recipe = adapted_recipe(folder, {"rank": 32}, **{**LEARNS, **ROUNDS, "warm_start": {"steps": 0}})
    run = trained(tmp_path / "run", recipe, warm_starts, [50.0])
    assert sum(row["kind"] == "train" for row in rows_of(run)) >= 3
    found = read_checkpoint(run.checkpoint, run.metrics, assemble(recipe, 0, warm_starts).tasks.trained.train)
    assert found is not None
    learner, generator = found.state["cluster"]["learner"], found.state["cluster"]["generator"]
    adapter = bytes_of(learner["policy"])
    assert all(".lora_" in name for weights in (learner["policy"], generator["weights"]) for name in weights)
    # Another version of the adapter for the start of the round, which the generator has too; no model, no reference.
    versions = {tuple(tensor.sum().item() for tensor in one.values()) for one in versions_in(found.state["cluster"])}
    size = sum((run.checkpoint / name).stat().st_size for name in found.manifest.files)
    print(f"adapter {adapter}, versions {len(versions)}, checkpoint {size} bytes")
    # The adapter and its two moments, and each other version of the adapter that is under way.
    assert size <= 1.2 * 3 * adapter + (len(versions) - 1) * adapter + SMALL_STATE

    policy = new_policy(recipe)
    assert isinstance(policy, AdaptedPolicy)
    policy.load_weights(folder)
    policy.import_weights(learner["policy"])
    model = AutoModelForCausalLM.from_pretrained(run.model, dtype=torch.float32).eval()
    tokens = torch.arange(24).view(2, 12)
    with torch.no_grad():
        torch.testing.assert_close(policy.logits(policy.hidden(tokens)), model(tokens).logits, rtol=1e-4, atol=1e-4)
    with safe_open(run.model / "model.safetensors", framework="pt") as file:
        assert not any("lora" in name for name in file.keys())  # noqa: SIM118, not a dict


def test_the_generator_decodes_what_the_learner_scores(tmp_path, qwen):
    settings = {"off_policy": {"type": "ppo_off_policy", "k": 1}, "warm_start": {"steps": 0}}
    recipe = adapted_recipe(qwen, **{**LEARNS, **settings})
    cluster = assemble(recipe, 0, tmp_path).cluster
    rows = [SCHEDULES["ppo_off_policy"](cluster).update.metrics for _ in range(3)]
    assert not any(row["skipped"] for row in rows)
    assert max(row["mismatch"] for row in rows) <= 1e-5
    weights = cluster.learner.weights()
    assert any(float(tensor.abs().max()) > 1e-3 for name, tensor in weights.items() if ".lora_B." in name)


def test_the_seed_of_a_run_draws_its_adapter(tmp_path, qwen):
    recipe = adapted_recipe(qwen)
    first, again, other = (assemble(recipe, seed, tmp_path).cluster.learner.weights() for seed in (0, 0, 1))
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())
    assert all(torch.equal(tensor, other[name]) == (".lora_B." in name) for name, tensor in first.items())
