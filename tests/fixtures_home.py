"""A home folder as a finished sweep leaves it: generated curves written as run logs."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ablations.home.home import Home
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.running.make_plan import make_plan as plan_of_study
from ablations.study.expand import expand
from scalerl.recipe import ResolvedRecipe
from scalerl.run.status import RunStatus

BUDGET = 2000.0
NUM_SAMPLES = 16000
TRUTH = {"scalerl": (0.61, 1.92, 320.0), "loo-loss": (0.54, 1.80, 320.0), "loo-curriculum": (0.61, 1.92, 480.0)}
"""A, B and C_mid of each variant; the pass rate before RL is R_0."""
R_0 = 0.31
CODE_VERSION = "4f1c2d"
HEARTBEAT = 4e9
"""In the next century, so that a run on another machine is alive."""


def make_home(path: Path, *, seeds: tuple[int, ...] = (0,), fraction: float = 1.0, state: str = "done") -> StartedSweep:
    """A sweep `loo` of three variants, every run trained to a fraction of its budget and then in `state`."""
    sweep = StartedSweep(home=Home(path), plan=make_plan(seeds))
    sweep.write_plan()
    for variant in sweep.plan.variants:
        for run in variant.runs:
            write_run(sweep.home, run.id, TRUTH[variant.name], seed=run.seed, fraction=fraction, state=state)
    return sweep


GRID = """\
name: loss_by_batch
reference: scalerl
scale: smoke
grid: {loss.type: [cispo, dapo], batch.prompts: [64, 16, 32]}
seeds: [0, 1]
budget: {compute: 1}
"""


def make_grid(path: Path) -> StartedSweep:
    """A finished sweep of a grid in which the loss matters and the batch does not; its file is `grid.yaml`."""
    (path / "grid.yaml").write_text(GRID)
    study = expand(path / "grid.yaml")
    plan = plan_of_study(study, "loss_by_batch", budget=None, command="platform sweep grid.yaml")
    sweep = StartedSweep(home=Home(path / "home"), plan=plan)
    sweep.write_plan()
    for run in study.runs:
        assert isinstance(run.recipe, ResolvedRecipe)
        law = (0.55, 1.9, 320.0) if run.recipe.loss.type == "dapo" else (0.61, 1.9, 320.0)
        write_run(sweep.home, run.id, law, seed=run.seed)
    return sweep


LADDER = """\
name: steps
reference: scalerl
scales: [smoke, bench]
axes: {loss.type: [dapo]}
seeds: [0, 1]
budget: {compute: 3}
"""


def make_ladder(path: Path) -> Home:
    """A study at two scales, trained and planned, in which the loss matters at both; its file is `steps.yaml`."""
    (path / "steps.yaml").write_text(LADDER)
    home = Home(path / "home")
    for scale in ("smoke", "bench"):
        study = expand(path / "steps.yaml", scale=scale)
        plan = plan_of_study(study, f"steps@{scale}", budget=None, command="platform sweep steps.yaml")
        StartedSweep(home=home, plan=plan).write_plan()
        for run in study.runs:
            assert isinstance(run.recipe, ResolvedRecipe)
            write_run(home, run.id, (0.55 if run.recipe.loss.type == "dapo" else 0.61, 1.9, 60.0), seed=run.seed)
            (home.run(run.id).path / "recipe.json").unlink()
            home.run(run.id).create(run.recipe, run.seed)
    return home


def make_plan(seeds: tuple[int, ...] = (0,)) -> Plan:
    """The plan of `make_home`: three variants, fitted on the first half of 2000 modelled GPU-hours."""
    overrides = {"loo-loss": {"loss": {"type": "dapo"}}, "loo-curriculum": {"curriculum.type": "uniform"}}
    return Plan(
        sweep="loo",
        doc="Which choice raises the ceiling?",
        command="platform sweep sweeps/loo.yaml",
        reference="scalerl",
        scale="laptop",
        compute_unit_gpu_hours=2000.0,
        budget_gpu_hours=BUDGET,
        fit_from_gpu_hours=0.0,
        fit_to_gpu_hours=BUDGET,
        published={"loo-loss": {"A": 0.59, "B": 1.77, "C_mid": 2600.0}},
        variants=tuple(
            PlannedVariant(
                name=name, overrides=overrides.get(name, {}), runs=tuple(planned_run(name, s) for s in seeds)
            )
            for name in TRUTH
        ),
    )


def planned_run(variant: str, seed: int) -> PlannedRun:
    """A run with an id of its own: twelve hex digits made from the variant's position and the seed."""
    return PlannedRun(seed=seed, id=f"{list(TRUTH).index(variant):06x}{seed:06x}")


def write_run(
    home: Home,
    run_id: str,
    truth: tuple[float, float, float],
    *,
    seed: int = 0,
    fraction: float = 1.0,
    state: str = "done",
) -> None:
    """One run folder: an evaluation every 50 modelled GPU-hours drawn from eq. 1, a training step every 25."""
    folder = home.run(run_id)
    folder.path.mkdir(parents=True)
    recipe = {"loss": {"type": "cispo", "max_ratio": 5.0}, "logits": "fp32", "tasks": [{"type": "k_smallest"}]}
    (folder.path / "recipe.json").write_text(json.dumps({"seed": seed, "recipe": recipe}))
    rng = np.random.default_rng((int(run_id, 16), seed))
    rows = [row for compute in np.arange(0, fraction * BUDGET + 1, 50).tolist() for row in rows_at(compute, truth, rng)]
    folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_state(home, run_id, state, compute=fraction * BUDGET)


def rows_at(compute: float, truth: tuple[float, float, float], rng: np.random.Generator) -> list[dict]:
    """Two training steps (none at compute 0), then an evaluation."""
    steps = [train_row(compute - 25, rng), train_row(compute, rng)] if compute else []
    return [*steps, eval_row(compute, truth, rng)]


def eval_row(compute: float, truth: tuple[float, float, float], rng: np.random.Generator) -> dict:
    """A held-out evaluation with binomial noise around R_0 + (A - R_0) / (1 + (C_mid / C)^B)."""
    A, B, C_mid = truth
    rate = R_0 + (A - R_0) / (1 + (C_mid / compute) ** B) if compute else R_0
    return {
        "kind": "eval",
        "step": round(compute / 25),
        "weight_version": round(compute / 25),
        "compute_gpu_hours": float(compute),
        "task": "k_smallest",
        "pass_rate": rng.binomial(NUM_SAMPLES, rate) / NUM_SAMPLES,
        "num_prompts": 1000,
        "num_samples": NUM_SAMPLES,
        "wall_s": float(compute) / 10,
    }


def train_row(compute: float, rng: np.random.Generator) -> dict:
    """One optimiser step."""
    return {
        "kind": "train",
        "step": round(compute / 25),
        "compute_gpu_hours": float(compute),
        "loss": float(rng.normal(0, 0.01)),
        "entropy": float(0.2 + 0.6 * np.exp(-compute / 800) + rng.normal(0, 0.01)),
        "mismatch": 0.002,
        "staleness": {"0": 100, "2": 300},
        "generator_idle": 0.05,
        "trainer_idle": 0.31,
        "device_s": hours_at(compute),
        "tokens_per_s": 4000.0,
        "mfu": {"generator": 0.02, "trainer": 0.276},
        "skipped": False,
        "wall_s": float(compute) / 10,
    }


def hours_at(compute: float) -> dict[str, dict[str, float]]:
    """Device-seconds of four generators a trainer, which add up to so many GPU-hours."""
    generators, trainers = 0.8 * 3600 * compute, 0.2 * 3600 * compute
    return {
        "generator": {
            "decode": 0.95 * generators,
            "wait_prompts": 0.04 * generators,
            "wait_weights": 0.01 * generators,
        },
        "trainer": {"forward_backward": 0.69 * trainers, "wait_rollouts": 0.31 * trainers},
    }


def write_state(home: Home, run_id: str, state: str, *, compute: float = BUDGET, message: str = "") -> None:
    """status.json as the trainer writes it."""
    home.run(run_id).write_status(
        RunStatus(
            state=state,
            attempt=1,
            pid=1,
            host="elsewhere",
            heartbeat=HEARTBEAT,
            step=round(compute / 25),
            compute_gpu_hours=compute,
            budget_gpu_hours=BUDGET,
            pass_rate=0.6,
            message=message,
            warnings=(),
            code_versions=(CODE_VERSION,),
            threads=1,
            processor="AMD EPYC",
        )
    )


def changed(sweep: StartedSweep, /, **changes: Any) -> StartedSweep:
    """The sweep with another plan, which is not written down: `changed(sweep, fit_to_gpu_hours=1000.0)`."""
    return replace(sweep, plan=replace(sweep.plan, **changes))


def collapse(sweep: StartedSweep, run_id: str, *, after: float, to: float = 0.8) -> None:
    """Let the pass rate of a run fall to a share of itself in every evaluation after this compute."""
    log = sweep.run(run_id).metrics
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    for row in rows:
        if row["kind"] == "eval" and row["compute_gpu_hours"] > after:
            row["pass_rate"] = to * row["pass_rate"]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))


def set_scores(sweep: StartedSweep, run_id: str, scores: Sequence[float]) -> None:
    """Give the first evaluations of a run, from that before RL on, these pass rates."""
    log = sweep.run(run_id).metrics
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    evaluations = (row for row in rows if row["kind"] == "eval")
    for row, score in zip(evaluations, scores, strict=False):
        row["pass_rate"] = score
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))


def warn(sweep: StartedSweep, run_id: str, *warnings: str) -> None:
    """Give a run the warnings of its trainer."""
    folder = sweep.run(run_id)
    folder.write_status(replace(folder.read_status(), warnings=warnings))


def settled(sweep: StartedSweep) -> StartedSweep:
    """The sweep with logs of long ago: a reading of a log that has just been written is not kept."""
    for run in sweep.plan.runs:
        os.utime(sweep.run(run.id).metrics, (1e9, 1e9))
    return sweep
