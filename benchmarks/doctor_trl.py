"""What `platform doctor` says of imported runs of TRL's GRPOTrainer with a planted cause, and of healthy ones.

    python benchmarks/doctor_trl.py                # about forty minutes on two free cores
    python benchmarks/doctor_trl.py FOLDER [NAME ...]   # keeps the runs, and trains none twice

Every run starts from the warm start of scale `smoke` and trains on its task for 200 steps, unless the planted cause is
another task, another start or other settings of TRL. What is planted is the cause, never a number of the log. The rules
were mended with the runs of seeds 0 and 1 at hand; those of seed 2 were trained after that. Writes
results/doctor_trl.json: of every run the rules that the doctor names, in its order.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from datasets import Dataset
from doctor_planted import examined, recipe_with
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from ablations.diagnosis.diagnose import Diagnosis, diagnose
from ablations.diagnosis.history import History
from ablations.imports.orders import Foreign
from ablations.logs.meaning import LogMeaning
from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.run.warm_start import load_or_train
from scalerl.tasks import Task, make_task
from scalerl.tokens import make_tokenizer

STEPS, EVALUATE_EVERY, HELD_OUT = 200, 20, 128
TASK = {"type": "k_smallest", "symbols": 12, "min_length": 3, "max_length": 6, "validation_prompts": 200}
Reward = Callable[[list[int], bool], float]
"""Of the tokens of an answer, and whether it is right."""


def right(tokens: list[int], is_right: bool) -> float:
    """1 for a right answer."""
    return float(is_right)


def length(tokens: list[int], is_right: bool) -> float:
    """A tenth for every token."""
    return len(tokens) / 10


def shortness(tokens: list[int], is_right: bool) -> float:
    """Less for every token."""
    return 1 - len(tokens) / 10


PLANTED: dict[str, tuple[str, dict[str, Any]]] = {
    "learning rate x 100": ("score gone at once", {"trl": {"learning_rate": 5e-2}}),
    "learning rate x 20": ("score gone at once", {"trl": {"learning_rate": 1e-2}}),
    "learning rate / 10,000": ("learning rate too low", {"trl": {"learning_rate": 5e-8}}),
    "a loss without the advantage": ("entropy gone", {"trainer": "imitates"}),
    "a loss that rewards entropy": ("entropy explodes", {"trainer": "explores"}),
    "a reward that pays length": ("truncation grows", {"reward": length}),
    "a reward that pays short answers": ("empty answers", {"reward": shortness}),
    "prompts too hard": (
        "no signal",
        {
            "recipe": {
                "tasks": [{**TASK, "symbols": 24, "min_length": 11, "max_length": 12}],
                "warm_start": {"steps": 5},
            }
        },
    ),
    "prompts too easy": (
        "no signal",
        {
            "recipe": {
                "tasks": [{**TASK, "max_length": 3, "symbols": 8, "train_prompts": 200, "validation_prompts": 40}],
                "warm_start": {"steps": 800},
            }
        },
    ),
    "24 training prompts": ("learned by heart", {"recipe": {"tasks": [{**TASK, "train_prompts": 24}]}}),
    "12 held-out prompts": ("noisy evaluation", {"held_out": 12}),
    "32 steps on each batch": ("learning rate too high", {"trl": {"num_iterations": 32, "learning_rate": 2e-3}}),
}
HEALTHY: dict[str, dict[str, Any]] = {
    "grpo": {},
    "dapo": {"trl": {"loss_type": "dapo", "epsilon_high": 0.28}},
    "dr_grpo": {"trl": {"loss_type": "dr_grpo", "scale_rewards": "none"}},
    "kl": {"trl": {"beta": 0.01}},
    "two steps on each batch": {"trl": {"num_iterations": 2}},
}


class Imitates(GRPOTrainer):
    """Every rollout is made likelier."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return super()._compute_loss(model, {**inputs, "advantages": torch.ones_like(inputs["advantages"])})


class Explores(GRPOTrainer):
    """Every rollout is made less likely."""

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> Any:
        return super()._compute_loss(model, {**inputs, "advantages": inputs["advantages"] - 1})


TRAINERS = {"": GRPOTrainer, "imitates": Imitates, "explores": Explores}


def trained(folder: Path, name: str, settings: dict[str, Any], seed: int) -> Path:
    """The folder of a run, trained if it is not there."""
    place = folder / f"{name.replace(' ', '-').replace('/', 'over').replace(',', '')}-s{seed}"
    if list(place.glob("checkpoint-*")):
        return place
    recipe = recipe_with(settings.get("recipe", {}))
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model))
    start = load_or_train(new_policy(recipe), task, recipe, seed, folder / "warm")
    model = transformers.LlamaForCausalLM.from_pretrained(start, dtype=torch.float32)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(start / "tokenizer.json"), pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = TRAINERS[settings.get("trainer", "")](
            model=model,
            reward_funcs=rewards_of(task, settings.get("reward", right)),
            args=GRPOConfig(**config_of(recipe, place, seed) | settings.get("trl", {})),
            train_dataset=rows_of(task, recipe, training=True),
            eval_dataset=rows_of(task, recipe, training=False).select(
                range(min(settings.get("held_out", HELD_OUT), len(task.validation)))
            ),
            processing_class=tokenizer,
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return place


def rewards_of(task: Task, reward: Reward) -> Callable[..., list[float]]:
    """TRL's reward function."""
    by_id = {prompt.id: prompt for prompt in (*task.train, *task.validation)}

    def rewards(completion_ids: list[list[int]], id: list[str], **_: Any) -> list[float]:
        return [
            reward(tokens, task.judge(by_id[name], tokens).outcome == "right")
            for tokens, name in zip(completion_ids, id, strict=True)
        ]

    return rewards


def rows_of(task: Task, recipe: ResolvedRecipe, *, training: bool) -> Dataset:
    """Prompts as TRL takes them."""
    text = make_tokenizer(recipe.model).decode
    prompts = task.train if training else task.validation
    return Dataset.from_list([{"prompt": text(prompt.tokens), "id": prompt.id} for prompt in prompts])


def config_of(recipe: ResolvedRecipe, place: Path, seed: int) -> dict[str, Any]:
    """Settings of TRL for scale `smoke`."""
    rollouts = recipe.batch.prompts * recipe.batch.generations
    return {
        "output_dir": str(place),
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "steps",
        "save_steps": STEPS,
        "save_only_model": True,
        "logging_steps": 1,
        "eval_strategy": "steps",
        "eval_steps": EVALUATE_EVERY,
        "disable_tqdm": True,
        "seed": seed,
        "gradient_checkpointing": False,
        "per_device_train_batch_size": rollouts,
        "per_device_eval_batch_size": rollouts,
        "num_generations": recipe.batch.generations,
        "num_generations_eval": 1,
        "max_completion_length": recipe.generation.max_tokens + 5,  # nothing interrupts thinking here
        "max_steps": STEPS,
        "temperature": recipe.generation.temperature,
        "loss_type": "grpo",
        "beta": 0.0,
        "learning_rate": recipe.optimiser.learning_rate,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": recipe.optimiser.warmup_steps,
        "max_grad_norm": 1.0,
    }


def diagnosed(folder: Path, name: str, settings: dict[str, Any], seed: int) -> list[Diagnosis]:
    """What the doctor finds in the last checkpoint's log."""
    path = trained(folder, name, settings, seed)
    (source,) = Foreign(names=(str(path),), meaning=LogMeaning(trainer="trl", compute="step")).sources()[""]
    (run,) = source.read()[0]
    steps, evaluations = ([row for row in run.rows if row["kind"] == kind] for kind in ("train", "eval"))
    return diagnose(History(name=name, steps=steps, evaluations=evaluations))


def main() -> None:
    torch.set_num_threads(1)
    examined(PLANTED, HEALTHY, ((0, 2), (1, 2)), diagnosed, "doctor_trl")


if __name__ == "__main__":
    main()
