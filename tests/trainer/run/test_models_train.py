"""Whole runs of other models and precisions: eight steps at scale `smoke`, and a folder that `transformers` loads."""

import pytest
import torch
from recipe_files import read_scale
from trainer.runs import rows_of, trained
from trainer.tiny import tiny_recipe
from trainer.tiny_text_model import TEMPLATE
from transformers import AutoModelForCausalLM, AutoTokenizer

from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.run.checkpoint import read_checkpoint
from scalerl.run.loop import Run
from scalerl.run.warm_start import load_or_train
from scalerl.tasks import all_tasks, make_task
from scalerl.tokens import make_tokenizer

pytestmark = pytest.mark.slow

SMOKE = read_scale("smoke")
MOE = {
    "type": "moe", "hidden": 32, "layers": 2, "heads": 2, "mlp": 48, "experts": 4, "experts_per_token": 2,
    "router_loss": 0.01,
}  # fmt: skip
END_THINK = {"type": "interruption", "phrase": "</think>"}
LEARNS = {"steps": 150, "batch": 32, "learning_rate": 1e-2, "noise": 0.25}
"""What a tied head needs before some answers are right."""
STEPS = 8


def smoke(**changes) -> ResolvedRecipe:
    optimiser = {**SMOKE["optimiser"], **changes.pop("optimiser", {})}
    return ResolvedRecipe.model_validate({**SMOKE, **changes, "optimiser": optimiser})


def eight_steps(path, recipe, warm_starts, monkeypatch):
    """A run that is over after eight steps, whatever they cost."""
    compute = Run.advance

    def advance(self, budget):
        cluster = type(self.cluster)
        monkeypatch.setattr(
            cluster,
            "compute_gpu_hours",
            property(lambda c: budget if c.learner.version >= STEPS else 1e-3 * c.learner.version),
        )
        compute(self, budget)

    monkeypatch.setattr(Run, "advance", advance)
    folder = trained(path, recipe, warm_starts, [1.0])
    steps = rows_of(folder, "train")
    assert len(steps) == STEPS
    return folder, steps


def assert_loads(folder, recipe):
    """By the Auto classes; the same distribution as the policy that the checkpoint holds."""
    model = AutoModelForCausalLM.from_pretrained(folder.model, dtype=torch.float32).eval()
    policy = new_policy(recipe)
    policy.load_weights(folder.model)
    task = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model)).trained
    found = read_checkpoint(folder.checkpoint, folder.metrics, task.train)
    assert found is not None
    state = found.state["cluster"]["learner"]["policy"]
    assert all(torch.equal(tensor, state[name]) for name, tensor in policy.exported_weights().items())
    tokens = torch.arange(24).view(2, 12)
    with torch.no_grad():
        if recipe.parameters == "fp32":
            torch.testing.assert_close(policy.logits(policy.hidden(tokens)), model(tokens).logits, rtol=1e-4, atol=1e-4)
    return model


@pytest.mark.parametrize("parameters", ["bf16", "fp16"])
def test_half_precision_trains_for_eight_steps(tmp_path, warm_starts, monkeypatch, parameters):
    recipe = smoke(parameters=parameters)
    assert recipe.identity(0) != smoke().identity(0)
    folder, steps = eight_steps(tmp_path / "run", recipe, warm_starts, monkeypatch)
    assert sum(step["skipped"] for step in steps) <= (3 if parameters == "fp16" else 0)
    assert all(row["pass_rate"] > 0.05 for row in rows_of(folder, "eval"))
    model = assert_loads(folder, recipe)
    assert all(bool(parameter.isfinite().all()) for parameter in model.parameters())


def test_a_mixture_of_experts_made_from_scratch_trains_for_eight_steps(tmp_path, warm_starts, monkeypatch):
    recipe = smoke(model=MOE, optimiser={"packing": "sequences", "gradient_checkpointing": True})
    folder, steps = eight_steps(tmp_path / "run", recipe, warm_starts, monkeypatch)
    assert not any(step["skipped"] for step in steps)
    assert all(row["pass_rate"] > 0.05 for row in rows_of(folder, "eval"))
    # Two experts a token: 2 where all four are used alike, 4 where two are.
    assert all(1.9 < step["balance"] < 3 for step in steps)
    assert type(assert_loads(folder, recipe)).__name__ == "MixtralForCausalLM"


def test_a_pretrained_model_trains_for_eight_steps_and_stays_what_it_was(tmp_path, warm_starts, monkeypatch, qwen):
    recipe = smoke(
        model={"type": "pretrained", "path": str(qwen)},
        length_control=END_THINK,
        generation={"thinking": 12, "answer": 8},
        warm_start=LEARNS,
    )
    folder, steps = eight_steps(tmp_path / "run", recipe, warm_starts, monkeypatch)
    assert sum(step["skipped"] for step in steps) < STEPS / 2
    model = assert_loads(folder, recipe)
    assert type(model).__name__ == "Qwen2ForCausalLM"
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert set(model.generation_config.eos_token_id) == set(make_tokenizer(recipe.model).eos_ids)
    tokenizer = AutoTokenizer.from_pretrained(folder.model)
    assert tokenizer.chat_template == TEMPLATE
    # What came out can go in.
    again = ResolvedRecipe.model_validate({"model": {"type": "pretrained", "path": str(folder.model)}})
    assert again.model.path_sha256 != recipe.model.path_sha256


def test_without_a_warm_start_a_run_begins_with_the_weights_of_the_folder(tmp_path, warm_starts, qwen):
    recipe = ResolvedRecipe.model_validate({"model": {"type": "pretrained", "path": str(qwen)}})
    policy = new_policy(recipe)
    task = make_task(tiny_recipe().tasks[0], make_tokenizer(recipe.model))
    assert load_or_train(policy, task, recipe, 0, warm_starts) == qwen
    theirs = AutoModelForCausalLM.from_pretrained(qwen, dtype=torch.float32).state_dict()
    assert all(torch.equal(tensor, theirs[name.removeprefix("model.")]) for name, tensor in policy.state_dict().items())


@pytest.mark.parametrize("kind", ["fp16", "pretrained"])
def test_a_run_extended_equals_a_run_with_the_larger_budget(tmp_path, warm_starts, kind, qwen):
    evaluation = {"every": 2.0, "samples": 2}
    if kind == "fp16":
        recipe = tiny_recipe(evaluation=evaluation, parameters="fp16", zero_variance="keep")
    else:
        limits = {"thinking": 8, "answer": 6}
        recipe = tiny_recipe(
            evaluation=evaluation, length_control=END_THINK, generation=limits, warm_start=LEARNS, zero_variance="keep"
        )
        model = {"type": "pretrained", "path": str(qwen)}
        recipe = ResolvedRecipe.model_validate({**recipe.model_dump(mode="json"), "model": model})
    whole = trained(tmp_path / "whole", recipe, warm_starts, [3.0])
    parts = trained(tmp_path / "parts", recipe, warm_starts, [1.0, 2.5, 3.0])
    assert len(rows_of(whole, "train")) > 4
    assert any(not row["skipped"] for row in rows_of(whole, "train"))
    assert rows_of(parts) == rows_of(whole)
    ours, theirs = (AutoModelForCausalLM.from_pretrained(folder.model).state_dict() for folder in (parts, whole))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
