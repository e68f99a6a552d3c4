"""The warm start: a few hundred supervised steps on demonstrations, trained once per scale and seed, then shared.

<key>.lock       held by the run that trains the warm start; others wait
<key>.partial/   the training in progress: checkpoint/ and warm_start.jsonl, as in a run
<key>/           the model, warm_start.jsonl, and SHA256SUMS for `sha256sum -c`
"""

import hashlib
import json
import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock, Timeout
from torch import Tensor

from scalerl.durable import file_sha256
from scalerl.errors import Cancelled, CannotResume, Diverged
from scalerl.learner.adamw import AdamW
from scalerl.model.build import empty_policy
from scalerl.model.packing import padded_micro_batches
from scalerl.model.policy import Policy
from scalerl.prompts.demonstrations import keep_right_demonstrations
from scalerl.recipe import PretrainedModel, ResolvedRecipe
from scalerl.recipe.models import model_sha256
from scalerl.recipe.scale import Optimiser
from scalerl.run.checkpoint import Manifest, SaveInterval, read_checkpoint, write_checkpoint
from scalerl.run.run_folder import remove_leftovers, replace_folder, write_atomically
from scalerl.run.run_log import MetricsLog, read_rows
from scalerl.tasks import Task
from scalerl.tokens import make_tokenizer

LOG, SUMS = "warm_start.jsonl", "SHA256SUMS"
MADE_MODEL_TOKENS = 8192
"""Maximum tokens per pass, including padding, for a model made from scratch, unless `micro_batch_tokens` is larger:
such
models are small, and fewer passes are faster. A pretrained model uses `micro_batch_tokens`."""
ASK_LOCK_EVERY_S = 0.2


class Listener:
    """Receives a warm start's messages for the run that trains it or waits for it; this one ignores them."""

    def at_step(self, step: int, text: str) -> None:
        """Called after each step, or while another run trains, with the steps so far. Cancelled ends the training."""

    def warn(self, fault: str) -> None:
        """Called with the description of a damaged file."""


def start_key(recipe: ResolvedRecipe, seed: int, left_out: Sequence[str] = ()) -> str:
    """Hash of everything that decides the supervised weights; `left_out` are the task's `newly_left_out`."""
    parts = recipe.canonical("model", "tasks", "warm_start", "threads")
    if not recipe.generation.thinks:  # without thinking, demonstrations have no thinking part
        parts["thinking"] = "none"
    if left_out:  # depends on downstream files too
        parts["left_out"] = list(left_out)
    default = MADE_MODEL_TOKENS
    if recipe.model.type == "pretrained":
        default = Optimiser.model_fields["micro_batch_tokens"].default
    if pass_tokens(recipe) != default:  # sums are rounded differently
        parts["micro_batch_tokens"] = pass_tokens(recipe)
    return hashlib.sha256(json.dumps({**parts, "seed": seed}, sort_keys=True).encode()).hexdigest()[:12]


def pass_tokens(recipe: ResolvedRecipe) -> int:
    """Maximum number of tokens in one forward and backward pass, padding included."""
    asked = recipe.optimiser.micro_batch_tokens
    return asked if recipe.model.type == "pretrained" else max(asked, MADE_MODEL_TOKENS)


def load_or_train(
    policy: Policy, task: Task, recipe: ResolvedRecipe, seed: int, folder: Path, listener: Listener | None = None
) -> Path:
    """Load the warm start of the scale and seed into `policy`, training it first if needed; return its folder.

    A pretrained model without a warm start uses its own folder.
    """
    if recipe.model.type == "pretrained" and recipe.warm_start.steps == 0:
        source = unchanged_folder(recipe.model)
        policy.load_weights(source)
        return source
    folder.mkdir(parents=True, exist_ok=True)
    listener = listener or Listener()
    finished = folder / start_key(recipe, seed, task.newly_left_out)
    partial = folder / f"{finished.name}.partial"
    with lock_held(folder / f"{finished.name}.lock", partial / LOG, recipe.warm_start.steps, listener):
        fault = fault_of(finished) if finished.exists() else ""
        if fault:
            listener.warn(f"{fault}. Retraining the warm start")
        if fault or not finished.exists():
            # Always in FP32: recipes that differ only in precision start from the same weights.
            tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
            start = empty_policy(recipe.model, policy.device)
            if recipe.model.type == "pretrained":
                start.load_weights(unchanged_folder(recipe.model))
            partial.mkdir(exist_ok=True)
            train_start(start, task, recipe, seed, partial, listener)
            with replace_folder(finished) as made:
                start.save(made, eos_token_id=tokenizer.eos_ids[0])
                tokenizer.save(made)
                shutil.copyfile(partial / LOG, made / LOG)
                write_sums(made)
            shutil.rmtree(partial)
        policy.load_weights(finished)
    return finished


@contextmanager
def lock_held(lock: Path, log: Path, steps: int, listener: Listener) -> Iterator[None]:
    """Hold the lock; while another run holds it, report that run's progress to the listener."""
    waiting = FileLock(lock)
    while True:
        try:
            waiting.acquire(timeout=ASK_LOCK_EVERY_S)
            break
        except Timeout:
            step = steps_in(log)
            listener.at_step(step, f"waiting for the warm start that another run is training: step {step} of {steps}")
    try:
        yield
    finally:
        waiting.release()


def steps_in(log: Path) -> int:
    """Number of steps that another process has logged so far."""
    try:
        return max((row["step"] for row in read_rows(log)), default=0)
    except (OSError, ValueError, KeyError):  # being replaced or truncated just now
        return 0


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS for all files of the folder."""
    lines = [f"{file_sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir()) if path.is_file()]
    write_atomically(folder / SUMS, "".join(lines).encode())


def fault_of(folder: Path) -> str:
    """The first file that differs from what was written, and the reason; empty if none does."""
    sums = folder / SUMS
    if not sums.exists():
        return f"{sums} is missing"
    for line in sums.read_text(errors="replace").splitlines():
        written, _, name = line.partition("  ")
        path = folder / name
        if not name or not path.is_file():
            return f"{path if name else sums} is {'missing' if name else 'damaged'}"
        if file_sha256(path) != written:
            return f"{path} has changed since it was written: its SHA-256 is not the one in {SUMS}"
    return "" if sums.stat().st_size else f"{sums} is empty"


def unchanged_folder(model: PretrainedModel) -> Path:
    """The model's folder; ValueError if its content has changed since the recipe was resolved."""
    folder = Path(model.path)
    found = model_sha256(folder) if folder.is_dir() else "no folder"
    if found != model.path_sha256:
        raise ValueError(
            f"model.path {folder}: its content has changed since the run was planned (its hash is {found}, not "
            f"{model.path_sha256}); restore it, or restart the sweep to train on the new content"
        )
    return folder


def train_start(
    policy: Policy,
    task: Task,
    recipe: ResolvedRecipe,
    seed: int,
    partial: Path,
    listener: Listener,
) -> None:
    """Minimise cross-entropy on the responses of fresh demonstrations; the learning rate falls linearly to a tenth.

    Training starts from random weights, unless the model is pretrained. Log and checkpoints are kept in the folder
    `partial`, and a restart resumes bit-exactly. Raises Diverged if the loss is not finite.
    """
    if recipe.warm_start.steps > 0:
        keep_right_demonstrations(task)
    if recipe.model.type != "pretrained":
        policy.init_weights(torch.Generator().manual_seed(seed))
    training, steps = _Training(policy, task, recipe, seed), recipe.warm_start.steps
    remove_leftovers(partial)
    last, length = _resume(training, partial, listener)
    interval = SaveInterval(recipe.checkpoint_every_s)
    with closing(MetricsLog(partial / LOG, length)) as log:

        def save() -> None:
            nonlocal last
            with interval.saving():
                last = write_checkpoint(partial / "checkpoint", training.state_dict(), log.sync(), last)

        while training.step < steps:
            row = training.take_step()
            log.write(row)
            try:
                listener.at_step(row["step"], f"warm start: step {row['step']} of {steps}, loss {row['loss']:.4g}")
            except Cancelled:
                save()
                raise
            if interval.is_due:
                save()
        log.sync()


class _Training:
    """State of supervised training between two steps."""

    def __init__(self, policy: Policy, task: Task, recipe: ResolvedRecipe, seed: int) -> None:
        self.policy, self.task, self.recipe, self.step = policy, task, recipe, 0
        self.rng = np.random.default_rng((seed, 2))
        rate = recipe.warm_start.learning_rate
        self.adam = AdamW(policy.parameters(), lr=rate, betas=(0.9, 0.95), fused=True)

    def take_step(self) -> dict[str, Any]:
        """Take one optimiser step on a fresh batch; return its row of the log."""
        settings, model = self.recipe.warm_start, self.recipe.model
        rate = settings.learning_rate * (1 - 0.9 * self.step / settings.steps)
        for group in self.adam.param_groups:
            group["lr"] = rate
        tokens, mask = demonstration_batch(self.task, self.rng, settings.batch, settings.noise)
        self.adam.zero_grad(set_to_none=True)
        router_loss = 0.0 if model.type == "llama" else model.router_loss
        loss = accumulate(self.policy, tokens, mask, router_loss=router_loss, max_tokens=pass_tokens(self.recipe))
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), 1.0))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise Diverged(
                f"warm start: loss {loss}, gradient norm {norm} at step {self.step + 1}; use a smaller "
                f"warm_start.learning_rate than {settings.learning_rate:g}"
            )
        self.adam.step()
        self.step += 1
        return {"kind": "warm_start", "step": self.step, "loss": loss, "grad_norm": norm, "learning_rate": rate}

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return {
            "policy": self.policy.exported_weights(),
            "adam": self.adam.state_dict(),
            "rng": self.rng.bit_generator.state,
            "step": self.step,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from `state_dict`."""
        self.policy.import_weights(state["policy"])
        self.adam.load_state_dict(state["adam"])
        self.rng.bit_generator.state = state["rng"]
        self.step = state["step"]


def _resume(training: _Training, partial: Path, listener: Listener) -> tuple[Manifest | None, int]:
    """Restore the newest whole checkpoint; return its manifest and the length of the log at that time."""
    try:
        found = read_checkpoint(partial / "checkpoint", partial / LOG, ())
    except CannotResume as error:
        listener.warn(f"{str(error).partition('. The run cannot')[0]}. Retraining the warm start from scratch")
        shutil.rmtree(partial / "checkpoint")
        found = None
    if found is None:
        return None, 0
    for fault in found.faults:
        listener.warn(f"{fault}. The warm start resumed from its previous checkpoint")
    training.load_state_dict(found.state)
    return found.manifest, found.manifest.log.bytes


def accumulate(policy: Policy, tokens: Tensor, mask: Tensor, *, router_loss: float, max_tokens: int) -> float:
    """Add the gradient of the mean cross-entropy over the masked tokens of all rows; return the loss.

    Tokens and mask are on the host. Rows that do not fit into one pass of `max_tokens` are split; the parts add up to
    the whole, up to rounding.
    """
    length_B = mask.shape[1] - mask.flip(1).int().argmax(1)  # a demonstration ends with its response
    passes, num_tokens = padded_micro_batches(length_B, max_tokens), int(mask.sum())
    total: float | Tensor = 0.0
    for rows in passes if len(passes) > 1 else [torch.arange(len(tokens), device=tokens.device)]:
        width = int(length_B[rows].max())
        shown, response = (part[rows, :width].to(policy.device, non_blocking=True) for part in (tokens, mask))
        scores = policy.score(shown, temperature=1.0, length_B=length_B[rows])
        loss = -(scores.logprobs_BT * response).sum() / num_tokens
        if scores.balance_B is not None:
            loss = loss + router_loss * scores.balance_B.mean() * (len(rows) / len(tokens))
        loss.backward()
        total += loss.detach().double()
    return float(total)


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
