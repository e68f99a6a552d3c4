"""The history of a run of another trainer, from its log."""

from pathlib import Path
from typing import Any

import numpy as np

from ablations.diagnosis.history import History, LogRow
from ablations.errors import AblationsError
from ablations.logs.log import Log, first_present
from ablations.logs.presets import Preset, find_preset
from ablations.logs.sources import find_log
from ablations.logs.steps import by_step, check_begins_once

TRAINING_COLUMNS: dict[str, dict[str, str]] = {
    # trl/trainer/grpo_trainer.py of TRL 1.16.0; the callbacks of transformers add loss, grad_norm and learning_rate.
    "trl": {
        "loss": "loss",
        "grad_norm": "grad_norm",
        "learning_rate": "learning_rate",
        "reward": "reward_mean",
        "frac_reward_zero_std": "zero_variance",
        "entropy": "entropy",
        "completions/mean_length": "mean_tokens",
        "completions/clipped_ratio": "truncated",
        "clip_ratio/region_mean": "ratio_clipped",
        "sampling/sampling_logp_difference/mean": "mismatch",
    },
    # verl/trainer/ppo/metric_utils.py and verl/workers/actor/dp_actor.py of volcengine/verl b178a3cd.
    "verl": {
        "actor/pg_loss": "loss",
        "actor/grad_norm": "grad_norm",
        "actor/lr": "learning_rate",
        "critic/score/mean": "reward_mean",
        "actor/entropy": "entropy",
        "response_length/mean": "mean_tokens",
        "response_length/clip_ratio": "truncated",
        "actor/pg_clipfrac": "ratio_clipped",
    },
}
"""A trainer's names for the columns of a train row."""
OF_ROLLOUTS = ("reward_mean", "zero_variance", "mean_tokens", "truncated")
"""Columns that a trainer logs when it has generated. Several steps may train on the same rollouts: TRL generates once
in `num_iterations * steps_per_generation` steps."""


def history_of_log(path: Path, trainer: str) -> History:
    """The history in a log, as far as the rules can read it; AblationsError if the trainer's columns are unknown."""
    preset = find_preset(trainer)
    if trainer not in TRAINING_COLUMNS:
        known = ", ".join(sorted(TRAINING_COLUMNS))
        raise AblationsError(f"--log {trainer}: its training columns are not known to doctor; known are: {known}")
    logs = find_log(path).read()
    if len(logs) != 1:
        raise AblationsError(f"{path}: {len(logs)} runs in one log; name the log of one run")
    steps, evaluations = _train_rows(logs[0], preset), _evaluations(logs[0], preset)
    return History(name=logs[0].name, steps=_with_pass_rate(steps, evaluations), evaluations=evaluations)


def _with_pass_rate(steps: list[LogRow], evaluations: list[LogRow]) -> list[LogRow]:
    """The rows with the mean reward as pass rate, if rewards lie between 0 and 1 and no pass rate is logged."""
    rewards = [row["reward_mean"] for row in steps if "reward_mean" in row]
    scores = [row["pass_rate"] for row in evaluations]
    if any("pass_rate" in row for row in steps) or not all(0 <= one <= 1 for one in (*rewards, *scores)):
        return steps
    return [{**row, "pass_rate": row["reward_mean"]} if "reward_mean" in row else row for row in steps]


def _train_rows(log: Log, preset: Preset) -> list[LogRow]:
    """The rows of training steps under this platform's names."""
    ours = {f"{prefix}{name}": one for name, one in TRAINING_COLUMNS[preset.name].items() for prefix in ("", "train/")}
    names = {name: ours[name] for name in log.columns if name in ours}
    if not names:
        raise AblationsError(f"{log.place}: none of the training columns of {preset.name} is in it")
    steps = _steps(log, preset)
    for name in names:
        check_begins_once(log, steps, name)
    values = by_step(steps, {name: log.columns[name] for name in names})
    rows: list[LogRow] = []
    rollouts: LogRow = {}
    for place, step in enumerate(values.step.tolist()):
        row = {own: float(values.columns[name][place]) for name, own in names.items()}
        if present := {name: value for name, value in row.items() if value == value}:  # NaN: not logged at this step
            rollouts |= {name: value for name, value in present.items() if name in OF_ROLLOUTS}
            rows.append({"step": int(step), **rollouts, **present})
    return rows


def _evaluations(log: Log, preset: Preset) -> list[LogRow]:
    """The held-out scores; of several data sets, their mean at the steps that have all of them."""
    if not (names := preset.score_columns(log.columns)):
        return []
    values = by_step(_steps(log, preset), {name: log.columns[name] for name in names})
    scores = np.mean([*values.columns.values()], axis=0)
    pairs = zip(values.step.tolist(), scores.tolist(), strict=True)
    return [{"step": int(step), "pass_rate": score} for step, score in pairs if score == score]


def _steps(log: Log, preset: Preset) -> Any:
    own = [name for name in preset.steps if name in log.columns]
    return first_present(log, own or log.steps)
