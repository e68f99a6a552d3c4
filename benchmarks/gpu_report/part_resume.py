"""A tiny run that begins on the CPU, is checkpointed there, and goes on on the device to a larger budget.

Its twin does all of it on the CPU. On a CPU the two are equal to the bit; on a GPU the first step after the checkpoint
trains on almost the same rollouts, so its numbers are the same up to rounding.
"""

from itertools import pairwise
from pathlib import Path
from typing import Any

from gpu_report.results import Results
from gpu_report.setting import Setting
from scalerl.recipe import ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.run.train import train

RECIPE: dict[str, Any] = {
    "model": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16},
    "tasks": [
        {
            "type": "k_smallest",
            "symbols": 8,
            "min_length": 2,
            "max_length": 3,
            "train_prompts": 600,
            "validation_prompts": 8,
        }
    ],
    "warm_start": {"steps": 150, "batch": 32, "learning_rate": 1e-2, "noise": 0.1},
    "batch": {"prompts": 4, "generations": 4},
    "generation": {"thinking": 4, "answer": 4},
    "optimiser": {"learning_rate": 1e-3, "warmup_steps": 2},
    "zero_variance": "keep",
    "cluster": {"generators": 8, "trainers": 2, "slots": 3, "parameters_stand_for": 1e6, "tokens_stand_for": 1000},
    "evaluation": {"every": 0.2, "samples": 2},
    "compute_unit_gpu_hours": 1.0,
}
FIRST, WHOLE = 0.3, 0.8
"""GPU-hours at the checkpoint, and of the whole run."""
COMPARED = ("entropy", "grad_norm", "reward_mean")
"""Columns of the first step here that are compared."""
SMALL = 0.05
"""Values below this are compared with this."""


def run(setting: Setting, results: Results) -> None:
    """Train in two attempts, then the twin in one."""
    moved = RunFolder(setting.scratch / "moved")
    attempt(moved, "cpu", FIRST, setting.scratch)
    steps_before = moved.read_status().step
    attempt(moved, setting.device, WHOLE, setting.scratch)
    status = moved.read_status()
    results.report("resume.done", status.state, message=status.message)
    results.report("resume.steps", status.step - steps_before, before=steps_before)
    if setting.is_cuda:
        results.report("resume.warned", sum("resumes on cuda" in text for text in status.warnings))
    twin = RunFolder(setting.scratch / "twin")
    attempt(twin, "cpu", WHOLE, setting.scratch)
    rows, expected = (list(read_rows(folder.metrics, kind="train")) for folder in (moved, twin))
    numbers = [row["step"] for row in rows]
    results.report("resume.log", sum(b - a != 1 for a, b in pairwise(numbers)), rows=len(rows))
    first, other = rows[steps_before], expected[steps_before]
    gaps = {name: abs(first[name] - other[name]) / max(abs(other[name]), SMALL) for name in COMPARED}
    detail: dict[str, Any] = {name: other[name] for name in COMPARED}
    results.report("resume.first_step", max(gaps.values()), **detail)


def attempt(folder: RunFolder, device: str, budget: float, home: Path) -> None:
    """Train up to a budget on a device, from the last checkpoint if there is one."""
    folder.create(ResolvedRecipe.model_validate(RECIPE | {"device": device}), 0)
    train(folder.path, budget_gpu_hours=budget, warm_starts=home / "warm_starts")
