"""Home folders as large as one wants: runs drawn from eq. 1 and written by the code that writes those of real ones.

The sweep is a file that `platform sweep` would accept, on scale `smoke`; ids, recipes, plan, run logs, checkpoints and
statuses are made of it by the platform's and the trainer's own functions. Nothing that reads the home folder can know
that nobody trained the runs. Everything but the times of files follows from the size.
"""

import json
import shutil
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ablations.answers.run_to_run import ASSUMED_SD
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.running.make_plan import make_plan
from ablations.study.expand import SweepRun, expand
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.tasks import KSmallest
from scalerl.run.checkpoint import write_checkpoint
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import MetricsLog, Progress, evaluation_row
from scalerl.run.status import RunStatus

NAME = "many"
R_0 = 0.3
SOLID = 0.8
"""Share of a prompt's answers that its difficulty decides; chance decides the rest."""
AXES = {
    "lr": ("optimiser.learning_rate", lambda n: round(1e-4 * 1.02**n, 9)),
    "ratio": ("loss.max_ratio", lambda n: 2.1 + 0.25 * n),
    "prompts": ("batch.prompts", lambda n: 17 + n),
}
"""What variants change, in turn: a dotted path, and the value of the n-th that changes it."""
COLUMNS = (
    *("loss", "grad_norm", "learning_rate", "entropy", "mismatch", "reward_mean", "pass_rate", "truncated"),
    *("mean_tokens", "trainer_idle", "generator_idle", "zero_variance", "interrupted", "ratio_clipped", "ratio_mean"),
    *("ess", "survivors", "retired", "epoch"),
)
"""Numbers of an optimiser step, in the order in which they are written as far as they are asked for."""
ALWAYS = 10
"""Numbers of a step besides: three of its progress, two of staleness, four of device-seconds, tokens_per_s."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """`Size(variants=40, seeds=5, evaluations=200, metrics=20)`."""

    variants: int
    """The reference among them."""
    seeds: int
    evaluations: int
    """Of each run, after that before RL; one optimiser step lies between two."""
    metrics: int
    """Numbers of an optimiser step."""

    def __post_init__(self) -> None:
        most = ALWAYS + len(COLUMNS)
        if not ALWAYS <= self.metrics <= most:
            raise ValueError(f"metrics: found {self.metrics}; must be {ALWAYS} to {most}")
        if self.variants < 2:
            raise ValueError(f"variants: found {self.variants}; must be 2 or more")


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The law that a run's readings are drawn about."""

    A: float
    B: float
    C_mid: float


def write_home(path: Path, size: Size) -> StartedSweep:
    """A home folder with one sweep, all of whose runs are done."""
    home = Home(path.absolute())
    file = home.sweep(NAME) / "sweep.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(sweep_file(size), indent=1))  # JSON is YAML
    study = expand(file)
    command = f"platform sweep {file} {home.option}"
    sweep = StartedSweep(home=home, plan=make_plan(study, NAME, budget=None, command=command))
    sweep.write_plan()
    truths = dict(zip((variant.name for variant in study.variants), laws(size.variants), strict=True))
    for run in study.runs:
        write_generated_run(sweep, run, truths[run.variant], size)
    return sweep


def sweep_file(size: Size) -> dict[str, Any]:
    """What a user would write: each variant changes one setting."""
    variants = {}
    for number in range(size.variants - 1):
        axis, place = list(AXES)[number % len(AXES)], number // len(AXES)
        setting, value = AXES[axis]
        variants[f"{axis}-{value(place):g}"] = {setting: value(place)}
    return {
        "name": NAME,
        "doc": "How fast are the pages of many runs?",
        "reference": "scalerl",
        "scale": "smoke",
        "variants": variants,
        "seeds": list(range(size.seeds)),
        "budget": {"compute": 3.0},
    }


def laws(count: int) -> list[Truth]:
    """Of the reference, and of variants with ceilings up to .06 apart and half to twice its compute."""
    rng = np.random.default_rng(count)
    others = [
        Truth(
            A=float(0.65 + rng.uniform(-0.06, 0.06)),
            B=float(rng.uniform(1.4, 2.2)),
            C_mid=float(300 * 2 ** rng.uniform(-1, 1)),
        )
        for _ in range(count - 1)
    ]
    return [Truth(A=0.65, B=1.8, C_mid=300.0), *others]


def write_generated_run(sweep: StartedSweep, run: SweepRun, truth: Truth, size: Size) -> None:
    """The folder of a run that is done: recipe, log, checkpoint, what it printed, status."""
    folder = sweep.run(run.id)
    folder.create(run.recipe, run.seed)
    rng = np.random.default_rng((int(run.id, 16), run.seed))
    of_run = Truth(A=truth.A + ASSUMED_SD * float(rng.standard_normal()), B=truth.B, C_mid=truth.C_mid)
    log = MetricsLog(folder.metrics, 0)
    rates = []
    assert isinstance(run.recipe, ResolvedRecipe)
    for row in run_rows(run.recipe, of_run, sweep.plan.budget_gpu_hours, size, rng):
        log.write(row)
        if row["kind"] == "eval":
            rates.append(row["pass_rate"])
    write_checkpoint(folder.checkpoint, {"step": size.evaluations}, log.sync())
    log.close()
    folder.log(1).parent.mkdir()
    folder.log(1).write_text(f"{run.variant}, seed {run.seed}: done\n")
    write_done(folder, sweep.plan.budget_gpu_hours, size.evaluations, rates[-1])


def write_done(folder: RunFolder, compute: float, step: int, pass_rate: float) -> None:
    """status.json of a run that is done."""
    folder.write_status(
        RunStatus(
            state="done",
            attempt=1,
            host=socket.gethostname(),
            heartbeat=folder.metrics.stat().st_mtime,
            step=step,
            compute_gpu_hours=compute,
            budget_gpu_hours=compute,
            pass_rate=pass_rate,
            wall_s=0.1 * step,
            code_versions=("generated",),
            threads=1,
        )
    )


def end_early(folder: RunFolder, compute: float, state: str, message: str = "") -> None:
    """Make a run that is done one that ended at this compute, in this state."""
    rows = folder.metrics.read_bytes().splitlines(keepends=True)
    kept = [row for row in rows if json.loads(row)["compute_gpu_hours"] <= compute]
    log, last = MetricsLog(folder.metrics, len(b"".join(kept))), json.loads(kept[-1])
    shutil.rmtree(folder.checkpoint)
    write_checkpoint(folder.checkpoint, {"step": last["step"]}, log.sync())
    log.close()
    spent = {name: last[name] for name in ("step", "compute_gpu_hours")}
    folder.write_status(replace(folder.read_status(), state=state, message=message, **spent))


def run_rows(
    recipe: ResolvedRecipe, truth: Truth, budget: float, size: Size, rng: np.random.Generator
) -> Iterator[dict[str, Any]]:
    """The rows of a run log: an evaluation before RL, then steps and evaluations in turn."""
    (task,) = recipe.tasks
    assert isinstance(task, KSmallest)
    difficulty = rng.permutation((np.arange(task.validation_prompts) + 0.5) / task.validation_prompts)
    for step, compute in enumerate(np.linspace(0, budget, size.evaluations + 1).tolist()):
        if step:
            yield step_row(progress_at(step, compute), size.metrics, rng)
        yield evaluation(step, compute, truth, difficulty, recipe.evaluation.samples, rng)


def progress_at(step: int, compute: float) -> Progress:
    """A thousand tokens a step."""
    return Progress(
        step=step,
        compute_gpu_hours=compute,
        flops=round(compute * 2e9),
        tokens=1000 * step,
    )


def evaluation(
    step: int, compute: float, truth: Truth, difficulty: np.ndarray, samples: int, rng: np.random.Generator
) -> dict[str, Any]:
    """Answers to each prompt, right as its difficulty and chance have it: R_0 + (A - R_0) / (1 + (C_mid / C)^B) of all.

    `difficulty` has shape (prompts,), evenly over 0 to 1.
    """
    rate = R_0 + (truth.A - R_0) / (1 + (truth.C_mid / compute) ** truth.B) if compute else R_0
    right = rng.binomial(samples, SOLID * (difficulty < rate) + (1 - SOLID) * rate)
    judged = np.full(right.size, samples)
    return evaluation_row(
        "eval",
        progress_at(step, compute),
        {
            "task": "k_smallest",
            "pass_rate": float(right.sum() / judged.sum()),
            "num_prompts": int(right.size),
            "num_samples": int(judged.sum()),
            "mean_tokens": 6.5,
            "truncated": 0.05,
            "outcomes": {"right": int(right.sum()), "wrong": int((judged - right).sum())},
            "prompt_counts": PromptCounts(right=right, judged=judged).to_text(),
        },
        0.1 * step,
    )


def step_row(progress: Progress, metrics: int, rng: np.random.Generator) -> dict[str, Any]:
    """The row of an optimiser step with as many numbers as are asked for; those of a real one are more."""
    names, compute = COLUMNS[: metrics - ALWAYS], progress.compute_gpu_hours
    return {
        "kind": "train",
        **asdict(progress),
        **dict(zip(names, np.abs(rng.normal(0.5, 0.1, len(names))).tolist(), strict=True)),
        "staleness": {"0": 88, "1": 712, "2": 171},
        "device_s": {
            "generator": {"decode": 0.76 * 3600 * compute, "wait_weights": 0.04 * 3600 * compute},
            "trainer": {"forward_backward": 0.14 * 3600 * compute, "wait_rollouts": 0.06 * 3600 * compute},
        },
        "tokens_per_s": 4000.0,
        "mfu": None,
        "wall_s": 0.1 * progress.step,
    }
