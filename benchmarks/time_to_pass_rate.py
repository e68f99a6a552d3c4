"""Wall time to a held-out pass rate: this trainer beside TRL's GRPOTrainer, on two CPU threads, in turns.

    python benchmarks/time_to_pass_rate.py               # three seeds, half an hour
    python benchmarks/time_to_pass_rate.py --seeds 0 --target 0.3

All start from the same weights (the warm start of `recipes/scales/laptop.yaml`) and train on the same prompts: GRPO
with clip 0.2 on 48 x 8 answers, advantages over the prompt's own standard deviation, mean of sample means, no KL term,
the same AdamW, learning rate, warm-up, gradient norm, temperature and token limit.

    trl         its GRPOTrainer: generation by `transformers`, then an optimiser step, on two threads. Gradient
                checkpointing, which would only cost it time at this size, is off
    in turns    this trainer, the same: PPO-off-policy-1 in one process of two threads
    pipelined   this trainer as it is meant to run: PipelineRL-8 on the wall clock, a process that decodes and one that
                trains, one thread each. Its steps are off-policy, so it may need more of them

Rewards come from the same verifier, and an answer longer than the answer budget, which our generator cuts off and TRL's
does not, counts as wrong on all sides. Every ten steps the weights are measured on the 256 held-out prompts, eight
answers each, by one and the same evaluator; the clock stands still meanwhile. The time to the target lies between two
measurements, by a straight line. Each seed runs every trainer once, so that all of them see the machine in the same
hour. Writes `results/time_to_pass_rate.json`.
"""

import argparse
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
import trl
from datasets import Dataset
from record import write_record
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from ablations.study.resolve import load_resolved
from scalerl.cluster.cluster import Cluster
from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.evaluation.drift import policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.make import make_generator
from scalerl.generator.request import Finished, Request
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.model.llama import Llama
from scalerl.model.policy import Policy, frozen_copy
from scalerl.processes.generator_process import GeneratorWork
from scalerl.processes.launch import LocalLauncher, local_units
from scalerl.processes.process_cluster import WallCluster
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import ResolvedRecipe
from scalerl.run.warm_start import load_or_train
from scalerl.schedules import SCHEDULES
from scalerl.tasks import Task, make_task
from scalerl.tasks.lengths import longest_prompt
from scalerl.tokens import make_tokenizer
from scalerl.weights.shared_memory import SharedMemoryStore

EVERY = 10
"""Optimiser steps between two measurements."""
GRPO = {
    "loss": {"type": "grpo", "clip": 0.2},
    "aggregation": "sample",
    "advantage": "prompt",
    "zero_variance": "keep",
    "curriculum": {"type": "uniform"},
    "length_control": {"type": "none"},
}
OURS = {
    "in turns": {"off_policy": {"type": "ppo_off_policy", "k": 1}},
    "pipelined": {
        "off_policy": {"type": "pipeline", "k": 8},
        "cluster": {"type": "wall", "generators": 1, "slots": 64, "generator_threads": 1},
        "threads": 1,
    },
}


class Stopwatch:
    """Seconds of training and pass rates; measuring is not counted."""

    def __init__(self, measure: Callable[[int], float], target: float, max_steps: int) -> None:
        self.measure, self.target, self.max_steps = measure, target, max_steps
        self.rows = [{"step": 0, "seconds": 0.0, "pass_rate": measure(0)}]
        self.seconds, self.since = 0.0, time.perf_counter()

    def after(self, step: int) -> bool:
        """Take note of an optimiser step; whether the target, or the last step allowed, is reached."""
        if step % EVERY:
            return False
        self.seconds += time.perf_counter() - self.since
        self.rows.append({"step": step, "seconds": self.seconds, "pass_rate": self.measure(step // EVERY)})
        self.since = time.perf_counter()
        return self.rows[-1]["pass_rate"] >= self.target or step >= self.max_steps

    def result(self) -> dict[str, Any]:
        """Seconds to the target, None where it was not reached, seconds a step, and every measurement."""
        last = self.rows[-1]
        reached = None
        if last["pass_rate"] >= self.target:
            before = self.rows[-2]
            share = (self.target - before["pass_rate"]) / (last["pass_rate"] - before["pass_rate"])
            reached = before["seconds"] + share * (last["seconds"] - before["seconds"])
        return {
            "seconds_to_target": reached,
            "seconds_a_step": last["seconds"] / last["step"],
            "steps": last["step"],
            "rows": self.rows,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--target", type=float, default=0.45)
    parser.add_argument("--max-steps", type=int, default=600)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    base = load_resolved("scalerl", "laptop").model_dump() | GRPO | {"threads": options.threads}
    recipes = {name: ResolvedRecipe.model_validate(base | changes) for name, changes in OURS.items()}
    recipe = recipes["in turns"]
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model))
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in options.seeds:
            torch.set_num_threads(options.threads)
            start = load_or_train(new_policy(recipe), task, recipe, seed, Path(folder))
            trainers = {"trl": lambda *given: theirs(recipe, task, *given)}
            trainers |= {name: lambda *given, own=own: ours(own, task, *given) for name, own in recipes.items()}
            for name, trainer in trainers.items():
                measured = trainer(start, seed, options.target, options.max_steps)
                runs.append({"trainer": name, "seed": seed, **measured})
                print(seed, name, {key: value for key, value in measured.items() if key != "rows"}, flush=True)
    result = {
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__, "trl": trl.__version__},
        "threads": options.threads,
        "target": options.target,
        "recipe": recipe.model_dump(mode="json"),
        "pipelined": OURS["pipelined"],
        "ratios": {name: ratios(runs, name) for name in OURS},
        "runs": runs,
    }
    write_record("time_to_pass_rate", result)
    print(json.dumps(result["ratios"], indent=1))


def ratios(runs: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """TRL's time over that trainer's, of each seed and the median; None where one of them missed the target."""
    by_seed: dict[int, dict[str, dict[str, Any]]] = {}
    for run in runs:
        by_seed.setdefault(run["seed"], {})[run["trainer"]] = run
    pairs = [(pair["trl"], pair[name]) for pair in by_seed.values()]
    found: dict[str, Any] = {}
    for key in ("seconds_to_target", "seconds_a_step"):
        each = [a[key] / b[key] if a[key] and b[key] else None for a, b in pairs]
        reached = [ratio for ratio in each if ratio is not None]
        found[key] = {"median": statistics.median(reached) if len(reached) == len(each) else None, "each": each}
    return found


# --- the two trainers -----------------------------------------------------------------------------------------------


def ours(recipe: ResolvedRecipe, task: Task, start: Path, seed: int, target: float, max_steps: int) -> dict[str, Any]:
    """This trainer, on the cluster that the recipe names."""
    torch.set_num_threads(recipe.threads)
    policy = new_policy(recipe)
    policy.load_weights(start)
    evaluator = HeldOutEvaluator(
        recipe=recipe, task=task, seed=seed, drift=partial(policy_drift, start=frozen_copy(policy))
    )
    cluster = cluster_of(recipe, task, policy, seed)

    def measure(index: int) -> float:
        with cluster.paused():
            return evaluator.measure(cluster, index)[-1]["pass_rate"]

    schedule = SCHEDULES[recipe.off_policy.type]
    try:
        watch = Stopwatch(measure, target, max_steps)
        cluster.start()
        watch.since = time.perf_counter()
        while True:
            schedule(cluster)
            if watch.after(cluster.learner.version):
                return watch.result()
    finally:
        cluster.close()


def cluster_of(recipe: ResolvedRecipe, task: Task, policy: Policy, seed: int) -> Cluster:
    def generator(slots: int) -> Generator:
        made = make_generator(recipe, new_policy(recipe), slots=slots, max_prompt=longest_prompt(task))
        made.set_weights(policy.exported_weights(), version=0)
        return made

    parts: dict[str, Any] = {
        "recipe": recipe,
        "learner": TorchLearner(policy, recipe),
        "pool": make_pool(recipe, task, (seed, 3)),
        "task": task,
        "rng": np.random.default_rng((seed, 4)),
        "off_clock": generator(512),
    }
    devices = recipe.cluster
    if devices.type == "wall":
        maker = partial(make_generator, recipe, policy, slots=devices.slots, max_prompt=longest_prompt(task))
        store = SharedMemoryStore(policy.exported_weights())
        work = GeneratorWork(maker=maker, store=store, threads=devices.generator_threads)
        return WallCluster(launcher=LocalLauncher(), units=local_units(recipe), work=work, **parts)
    return VirtualCluster(generator=generator(devices.generators * devices.slots), **parts)


class Sampled:
    """Decodes with a policy's weights what an evaluation asks for."""

    def __init__(self, recipe: ResolvedRecipe, task: Task, policy: Policy) -> None:
        self.generator = make_generator(recipe, new_policy(recipe), slots=512, max_prompt=longest_prompt(task))
        self.generator.set_weights(policy.exported_weights(), version=0)

    def sample(self, requests: list[Request]) -> list[Finished]:
        """The rollouts of these requests."""
        return decode_all(self.generator, requests)


def theirs(recipe: ResolvedRecipe, task: Task, start: Path, seed: int, target: float, max_steps: int) -> dict[str, Any]:
    """TRL's GRPOTrainer with the same settings."""
    llama = transformers.LlamaForCausalLM.from_pretrained(start, dtype=torch.float32)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(start / "tokenizer.json"), pad_token="<pad>", eos_token="<eos>", padding_side="left"
    )
    by_id = {prompt.id: prompt for prompt in task.train}
    copy = new_policy(recipe)
    copy.load_weights(start)
    assert isinstance(copy, Llama)
    evaluator = HeldOutEvaluator(
        recipe=recipe, task=task, seed=seed, drift=partial(policy_drift, start=frozen_copy(copy))
    )

    def measure(index: int) -> float:
        copy.import_weights(llama.state_dict())
        return evaluator.measure(Sampled(recipe, task, copy), index)[-1]["pass_rate"]

    def rewards(completion_ids: list[list[int]], id: list[str], **_: Any) -> list[float | None]:
        return [
            1.0 if in_budget(answer, recipe) and task.judge(by_id[name], answer).outcome == "right" else -1.0
            for answer, name in zip(completion_ids, id, strict=True)
        ]

    watch = Stopwatch(measure, target, max_steps)

    class Watch(transformers.TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            control.should_training_stop = watch.after(state.global_step)
            return control

    text = make_tokenizer(recipe.model).decode
    rows = [{"prompt": text(prompt.tokens), "id": prompt.id} for prompt in task.train]
    rollouts = recipe.batch.prompts * recipe.batch.generations
    optimiser = recipe.optimiser
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            seed=seed,
            gradient_checkpointing=False,
            per_device_train_batch_size=rollouts,
            num_generations=recipe.batch.generations,
            max_completion_length=recipe.generation.max_tokens,
            max_steps=max_steps,
            temperature=recipe.generation.temperature,
            loss_type="grpo",
            epsilon=0.2,
            beta=0.0,
            scale_rewards="group",
            learning_rate=optimiser.learning_rate,
            lr_scheduler_type="constant_with_warmup",
            warmup_steps=optimiser.warmup_steps,
            adam_beta1=optimiser.beta1,
            adam_beta2=optimiser.beta2,
            adam_epsilon=optimiser.eps,
            weight_decay=optimiser.weight_decay,
            max_grad_norm=optimiser.max_grad_norm or 0.0,  # 0: no limit
        )
        trainer = GRPOTrainer(
            model=llama,
            reward_funcs=rewards,
            args=config,
            train_dataset=Dataset.from_list(rows),
            processing_class=tokenizer,
            callbacks=[Watch()],
        )
        watch.since = time.perf_counter()
        trainer.train()
    return watch.result()


def in_budget(answer: list[int], recipe: ResolvedRecipe) -> bool:
    """Whether what follows the thinking part, end of sequence included, fits the answer budget."""
    end = make_tokenizer(recipe.model).end_think[0]
    return end in answer and len(answer) - answer.index(end) - 1 <= recipe.generation.answer


if __name__ == "__main__":
    main()
