"""Names that other trainers use for the step, held-out scores and the time of a step, each with its source."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ablations.errors import AblationsError, did_you_mean

METRIC_PART = re.compile(r"<[^>]+>")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A name with <placeholders>, and the file and line that logs it: `Metric(name="time/step", source="a.py:7")`."""

    name: str
    source: str

    def names_in(self, columns: Iterable[str]) -> list[str]:
        """The columns that match this name; a placeholder stands for one or more characters."""
        parts = METRIC_PART.split(self.name)
        pattern = re.compile(".+".join(map(re.escape, parts)))
        return [column for column in columns if pattern.fullmatch(column)]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The names of one trainer: `Preset(name="verl", version="...", scores=(Metric(...),), seconds=(Metric(...),))`."""

    name: str
    version: str
    """The repository and the version in which the names were found."""
    scores: tuple[Metric, ...]
    seconds: tuple[Metric, ...]
    """Names of times of one step in seconds; all times in a log are added."""
    not_scores: tuple[str, ...] = ()
    """Names that look like scores."""
    steps: tuple[str, ...] = ()
    """Columns with the step; each row uses the first that it has, or without any the file's own step."""
    is_mean: bool = False
    """True if each time is the mean over the steps since the row before, not the time of one step."""

    def score_columns(self, columns: Iterable[str]) -> list[str]:
        """The columns that may be the held-out score, in order."""
        columns = sorted(columns)
        others = {column for name in self.not_scores for column in Metric(name=name, source="").names_in(columns)}
        found = (column for metric in self.scores for column in metric.names_in(columns))
        return [column for column in dict.fromkeys(found) if column not in others]

    def second_columns(self, columns: Iterable[str]) -> list[str]:
        """The columns whose sum is the time of a step."""
        columns = set(columns)
        return [metric.name for metric in self.seconds if metric.name in columns]


PRESETS = (
    Preset(
        name="verl",
        version="volcengine/verl b178a3cd (v0.7.0 + 125)",
        scores=(
            Metric(
                name="val-core/<data set>/<reward or acc>/mean@<k>",
                source="verl/trainer/ppo/ray_trainer.py:_val_metrics_update",
            ),
        ),
        seconds=(Metric(name="perf/time_per_step", source="verl/trainer/ppo/metric_utils.py:301"),),
    ),
    Preset(
        name="prime-rl",
        version="PrimeIntellect-ai/prime-rl v0.8.1.dev67 (559b4477)",
        steps=("step",),
        scores=(
            Metric(
                name="eval/<environment>/<all or effective>/<agent>/avg@<k>",
                source="src/prime_rl/orchestrator/metrics.py:385",
            ),
        ),
        seconds=(Metric(name="time/step", source="src/prime_rl/trainer/rl/train.py:680"),),
    ),
    Preset(
        name="slime",
        version="THUDM/slime 624b824a (v0.3.1 + 38)",
        steps=("rollout/step", "eval/step"),
        scores=(Metric(name="eval/<data set>", source="slime/observability/rollout_metrics.py:232"),),
        not_scores=(
            "eval/step",
            "eval/<data set>-truncated_ratio",
            "eval/<data set>-pass@<k>",
            "eval/<data set>/<metric>",
        ),
        seconds=(Metric(name="perf/step_time", source="slime/observability/train_metric_utils.py:398"),),
    ),
    Preset(
        name="skyrl",
        version="NovaSky-AI/SkyRL a9564572 (skyrl_train-v0.4.0 + 516)",
        scores=(
            Metric(name="eval/<data set>/avg_score", source="skyrl/train/utils/trainer_utils.py:260"),
            Metric(name="eval/<data set>/pass_at_<k>", source="skyrl/train/utils/trainer_utils.py:261"),
        ),
        seconds=(Metric(name="timing/step", source="skyrl/train/trainer.py:342 and 527"),),
    ),
    Preset(
        name="nemo-rl",
        version="NVIDIA-NeMo/RL 7ea279ab (2026-08-22)",
        scores=(Metric(name="validation/accuracy", source="nemo_rl/algorithms/grpo.py:3978 and 3402"),),
        seconds=(Metric(name="timing/train/total_step_time", source="nemo_rl/algorithms/grpo.py:2832 and 3770"),),
    ),
    Preset(
        name="openrlhf",
        version="OpenRLHF/OpenRLHF v0.11.0 (3c3be623)",
        steps=("train/global_step", "eval/global_step"),
        scores=(Metric(name="eval/eval_<data set>_pass<k>", source="openrlhf/trainer/ppo_trainer.py:130"),),
        seconds=(Metric(name="train/timing/step_total", source="openrlhf/trainer/ppo_trainer.py:541"),),
    ),
    Preset(
        name="trl",
        version="trl 1.16.0",
        steps=("step", "train/global_step"),
        scores=(
            Metric(name="eval_reward", source="trl/trainer/grpo_trainer.py:log"),
            Metric(name="eval/reward", source="trl/trainer/grpo_trainer.py:log, as W&B and TensorBoard get it"),
        ),
        seconds=(
            Metric(name="step_time", source="trl/trainer/grpo_trainer.py:1517"),
            Metric(name="train/step_time", source="trl/trainer/grpo_trainer.py:1517, as W&B and TensorBoard get it"),
        ),
        is_mean=True,
    ),
    Preset(
        name="areal",
        version="inclusionAI/AReaL 4aef98d8 (v1.0.4 + 17)",
        scores=(
            Metric(
                name="eval-rollout/reward", source="areal/workflow/rlvr.py:135 and areal/infra/workflow_context.py:59"
            ),
        ),
        seconds=tuple(
            Metric(name=f"timeperf/{phase}", source=f"areal/trainer/rl_trainer.py:{line}")
            for phase, line in (
                ("rollout", 563),
                ("critic_values", 588),
                ("ref_logp", 605),
                ("teacher_logp", 623),
                ("recompute_logp", 645),
                ("compute_advantage", 658),
                ("train_step", 678),
                ("critic_train_step", 703),
                ("update_weights", 723),
            )
        ),
    ),
)


def find_preset(name: str) -> Preset:
    """The preset of this name; AblationsError lists them."""
    for preset in PRESETS:
        if preset.name == name:
            return preset
    raise AblationsError(f"--log: no trainer {name!r}; {did_you_mean(name, [one.name for one in PRESETS], 'trainers')}")
