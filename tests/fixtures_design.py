"""A home folder whose runs another sweep of scale smoke has left, drawn from eq. 1 with known noise."""

import json
from pathlib import Path

import numpy as np
from places import REPOSITORY

from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.running.make_plan import make_plan
from ablations.study.expand import Study, expand
from scalerl.run.status import RunStatus

A, B, C_MID, R_0 = 0.62, 1.9, 110.0, 0.2
PROMPTS, SAMPLES = 200, 4
EVERY, BUDGET = 31.25, 625.0
RUN_TO_RUN_SD = 0.05
SECONDS_PER_GPU_HOUR, SECONDS_PER_EVALUATION = 0.3, 0.6


def study_of(path: Path, *, name: str = "before", seeds: str = "[0, 1, 2]", more: str = "") -> Study:
    """The reference and one variant at scale smoke."""
    path.mkdir(parents=True, exist_ok=True)
    file = path / f"{name}.yaml"
    text = f"name: {name}\nreference: scalerl\nscale: smoke\naxes: {{logits: [bf16]}}\nseeds: {seeds}\n{more}"
    file.write_text(text)
    return expand(file, scale=str(REPOSITORY / "recipes" / "scales" / "smoke.yaml"))


def trained_home(path: Path, study: Study, *, sd: float = RUN_TO_RUN_SD) -> Home:
    """The home in which every run of the study is done."""
    home = Home(path)
    plan = make_plan(study, study.sweep.name, budget=None, command=f"platform sweep {study.sweep.name}.yaml")
    StartedSweep(home=home, plan=plan).write_plan()
    rng = np.random.default_rng(16)
    for run in study.runs:
        folder = home.run(run.id)
        folder.path.mkdir(parents=True)
        folder.create(run.recipe, run.seed)
        rows = list(rows_of(rng, A + sd * rng.standard_normal()))
        folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
        wall_s = SECONDS_PER_GPU_HOUR * BUDGET + SECONDS_PER_EVALUATION * 21
        folder.write_status(RunStatus(state="done", step=400, compute_gpu_hours=BUDGET, wall_s=wall_s))
    return home


def rows_of(rng: np.random.Generator, ceiling: float):
    """A training step before every evaluation but the first; binomial noise alone."""
    for number in range(21):
        compute = EVERY * number
        if number:
            spent = {"start": 3.0, "evaluate": SECONDS_PER_EVALUATION * (number + 1), "checkpoint": 1.0}
            row = {"kind": "train", "step": 20 * number, "compute_gpu_hours": compute, "off_clock_s": spent}
            yield row | {"wall_s": SECONDS_PER_GPU_HOUR * compute}
        rate = R_0 + (ceiling - R_0) / (1 + (C_MID / compute) ** B) if compute else R_0
        passed = rng.binomial(PROMPTS * SAMPLES, rate)
        yield {
            "kind": "eval",
            "step": 20 * number,
            "compute_gpu_hours": compute,
            "wall_s": SECONDS_PER_GPU_HOUR * compute,
            "task": "k_smallest",
            "pass_rate": passed / (PROMPTS * SAMPLES),
            "num_prompts": PROMPTS,
            "num_samples": PROMPTS * SAMPLES,
        }
