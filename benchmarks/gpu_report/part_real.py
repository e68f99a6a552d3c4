"""Some minutes of real training of a pretrained model on the device, by the trainer's own `train`.

Rollouts are generated and trained on by the same weights (lag 0), so the logged mismatch is between generator and
learner alone. The run is stopped as a user stops it, and leaves a checkpoint.
"""

import os
import signal
import statistics
import threading
from contextlib import suppress

import torch

from gpu_report.clock import peak_bytes
from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.errors import Cancelled
from scalerl.memory.forecast import LIBRARIES, TRANSFORMERS, PromptLengths, peak_memory
from scalerl.recipe import ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

ROWS = ("real.steps", "real.finite", "real.mismatch", "real.pass_rate")
SECONDS = 300.0
UNREACHED = 1e9
"""GPU-hours that no run of minutes reaches."""


def run(setting: Setting, results: Results) -> None:
    """Train for five minutes, at most half of the part's limit, and report what the log says."""
    if setting.model is None or not setting.model.is_dir():
        why = "no --model was given" if setting.model is None else f"--model {setting.model} is no folder"
        for name in (*ROWS, *(["real.memory"] if setting.is_cuda else [])):
            results.skip(name, why)
        return
    recipe = recipe_of_model(setting)
    folder = RunFolder(setting.scratch / "run")
    folder.create(recipe, 0)
    stop = threading.Timer(min(SECONDS, setting.limit_s / 2), os.kill, (os.getpid(), signal.SIGTERM))
    with peak_bytes(torch.device(setting.device)) as peak:
        stop.start()
        try:
            with suppress(Cancelled):
                train(folder.path, budget_gpu_hours=UNREACHED, warm_starts=setting.scratch / "warm_starts")
        finally:
            stop.cancel()
    rows = list(read_rows(folder.metrics, kind="train"))
    taken = [row for row in rows if not row["skipped"]]
    wall_s = folder.read_status().wall_s
    differing = sum(row["zero_variance"] < 1 for row in taken)
    results.report("real.steps", len(taken), wall_s=wall_s, steps_with_unequal_rewards=differing)
    if not rows:
        return
    results.report("real.finite", sum(row["loss"] is None or row["grad_norm"] is None for row in rows))
    results.report("real.mismatch", statistics.fmean(row["mismatch"] for row in taken) if taken else float("nan"))
    third = max(1, len(rows) // 3)
    first, last = (statistics.fmean(row["pass_rate"] for row in part) for part in (rows[:third], rows[-third:]))
    results.report("real.pass_rate", last - first, first_third=first, last_third=last)
    if setting.is_cuda:
        forecast = forecast_bytes(recipe)
        results.report("real.memory", peak.total / forecast, measured=peak.total, forecast=forecast)


def recipe_of_model(setting: Setting) -> ResolvedRecipe:
    """A short task in the model's own words, eight rollouts of each of eight prompts."""
    task = {"type": "k_smallest", "symbols": 12, "min_length": 2, "max_length": 4}
    return ResolvedRecipe.model_validate(
        {
            "model": {"type": "pretrained", "path": str(setting.model)},
            "tasks": [task | {"train_prompts": 512, "validation_prompts": 16}],
            "off_policy": {"type": "ppo_off_policy", "k": 1},
            "curriculum": {"type": "uniform"},
            "length_control": {"type": "none"},
            "parameters": setting.of(cuda="mixed", cpu="fp32"),
            "zero_variance": "keep",
            "batch": {"prompts": 8, "generations": 8},
            "generation": {"thinking": "none", "answer": setting.of(cuda=64, cpu=16)},
            "optimiser": {
                "learning_rate": 1e-6,
                "warmup_steps": 2,
                "micro_batch_tokens": setting.of(cuda=8192, cpu=1024),
                "packing": "prompts",
                "gradient_checkpointing": setting.is_cuda,
            },
            "cluster": {"generators": 1, "trainers": 1, "slots": 64},
            "evaluation": {"every": 1.0, "samples": 1},
            "checkpoint_every_s": 60,
            "compute_unit_gpu_hours": UNREACHED,
            "device": setting.device,
        }
    )


def forecast_bytes(recipe: ResolvedRecipe) -> int:
    """Forecast of the run's one process, without the libraries, which lie on the host."""
    task = all_tasks(recipe.tasks, (), make_tokenizer(recipe.model, thinks=recipe.generation.thinks)).trained
    (process,) = peak_memory(recipe, PromptLengths.of(recipe, task, [])).processes
    return process.total - LIBRARIES - TRANSFORMERS
