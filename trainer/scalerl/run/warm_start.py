"""The supervised start: a few hundred steps on written demonstrations, trained once per scale and seed, then shared."""

import hashlib
import json
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from scalerl.model.build import empty_policy
from scalerl.model.policy import Policy
from scalerl.recipe import PretrainedModel, ResolvedRecipe
from scalerl.recipe.models import model_sha256
from scalerl.run.run_folder import replace_folder
from scalerl.tasks import Task, TaskError
from scalerl.tokens import make_tokenizer


def key(recipe: ResolvedRecipe, seed: int) -> str:
    """Hash of all that decides the supervised weights."""
    parts = recipe.canonical("model", "tasks", "warm_start", "threads")
    return hashlib.sha256(json.dumps({**parts, "seed": seed}, sort_keys=True).encode()).hexdigest()[:12]


def load_or_train(policy: Policy, task: Task, recipe: ResolvedRecipe, seed: int, folder: Path) -> Path:
    """Fill `policy` with the warm start of its scale and seed, trained first if need be; returns its own folder.

    A pretrained model without a warm start is its own.
    """
    if recipe.model.type == "pretrained" and recipe.warm_start.steps == 0:
        source = unchanged_folder(recipe.model)
        policy.load_weights(source)
        return source
    folder.mkdir(parents=True, exist_ok=True)
    finished = folder / key(recipe, seed)
    with FileLock(folder / f"{finished.name}.lock"):
        if not (finished / "config.json").exists():
            # Always in FP32: recipes that differ only in precision start from the same weights.
            tokenizer = make_tokenizer(recipe.model)
            start = empty_policy(recipe.model, torch.device(recipe.device))
            if recipe.model.type == "pretrained":
                start.load_weights(unchanged_folder(recipe.model))
            train(start, task, recipe, seed)
            with replace_folder(finished) as partial:
                start.save(partial, eos_token_id=tokenizer.eos_ids[0])
                tokenizer.save(partial)
    policy.load_weights(finished)
    return finished


def unchanged_folder(model: PretrainedModel) -> Path:
    """The model's folder; ValueError if it no longer holds what the recipe was resolved with."""
    folder = Path(model.path)
    found = model_sha256(folder) if folder.is_dir() else "no folder"
    if found != model.path_sha256:
        raise ValueError(
            f"model.path {folder}: its content has changed since the run was planned (its hash is {found}, not "
            f"{model.path_sha256}); restore it, or start the sweep again to train on the new content"
        )
    return folder


def train(policy: Policy, task: Task, recipe: ResolvedRecipe, seed: int) -> None:
    """Cross-entropy on the response tokens of fresh demonstrations; learning rate falls linearly to a tenth.

    From random weights, unless the model is a pretrained one.
    """
    settings = recipe.warm_start
    if not task.has_demonstrations:
        raise TaskError(
            f"warm_start: task {task.name!r} has no demonstrations, and a model made from scratch never answers "
            "correctly without them; name a column of written solutions by the task's `solution`"
        )
    rng = np.random.default_rng((seed, 2))
    if recipe.model.type != "pretrained":
        policy.init_weights(torch.Generator().manual_seed(seed))
    router_loss = 0.0 if recipe.model.type == "llama" else recipe.model.router_loss
    adam = torch.optim.AdamW(policy.parameters(), lr=settings.learning_rate, betas=(0.9, 0.95), fused=True)
    for step in range(settings.steps):
        for group in adam.param_groups:
            group["lr"] = settings.learning_rate * (1 - 0.9 * step / settings.steps)
        rows = demonstration_batch(task, rng, settings.batch, settings.noise)
        tokens, mask = (part.to(policy.device) for part in rows)
        length_B = mask.shape[1] - mask.flip(1).int().argmax(1)  # a demonstration ends with its response
        scores = policy.score(tokens, temperature=1.0, length_B=length_B)
        loss = -(scores.logprobs_BT * mask).sum() / mask.sum()
        if scores.balance_B is not None:
            loss = loss + router_loss * scores.balance_B.mean()
        adam.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        adam.step()


def demonstration_batch(task: Task, rng: np.random.Generator, count: int, noise: float) -> tuple[Tensor, Tensor]:
    """Right-padded tokens and the mask of response tokens, both [B, T], on the host."""
    rows = [task.demonstrate(rng, noise) for _ in range(count)]
    width = max(len(prompt.tokens) + len(response) for prompt, response in rows)
    tokens = np.zeros((count, width), dtype=np.int64)
    mask = np.zeros((count, width), dtype=np.bool_)
    for i, (prompt, response) in enumerate(rows):
        start, end = len(prompt.tokens), len(prompt.tokens) + len(response)
        tokens[i, :end] = (*prompt.tokens, *response)
        mask[i, start:end] = True
    return torch.from_numpy(tokens), torch.from_numpy(mask)
