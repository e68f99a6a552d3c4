"""Names that other trainers use for the step, held-out scores, the time of a step and the columns of training.

docs/logs.md says for each name in which version, file and line of the trainer it was found.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ablations.errors import AblationsError
from ablations.nearest_name import did_you_mean


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The names of one trainer: `Preset(name="verl", scores=("val-core/<data set>/acc",), seconds=("time/step",))`.

    A `<placeholder>` in the name of a score stands for one or more characters.
    """

    name: str
    scores: tuple[str, ...]
    seconds: tuple[str, ...]
    """Times of one step in seconds; all times in a log are added."""
    older_seconds: tuple[tuple[str, ...], ...] = ()
    """Names of the times in older versions: each tuple replaces `seconds` if the log has none of the preceding ones."""
    summands: tuple[str, ...] = ()
    """Scores that summarise the others if a log has several of them; any of these may then be meant."""
    not_scores: tuple[str, ...] = ()
    """Names that look like scores."""
    steps: tuple[str, ...] = ()
    """Columns with the step; each row uses the first that it has, or without any the file's own step."""
    is_mean: bool = False
    """True if each time is the mean over the steps since the previous row, not the time of one step."""

    of_batches: bool = False
    """True if a score is the mean of the means of batches, whose last may be smaller; prompts come in another order
    each time. The number of answers then does not give its error."""
    throughput: tuple[str, ...] = ()
    """The tokens of a step, and the tokens that one GPU takes in a second."""
    training: Mapping[str, str] = field(default_factory=dict)
    """The trainer's names for the columns of a train row, with ours; in W&B they may have the prefix `train/`."""

    def score_columns(self, columns: Iterable[str]) -> list[str]:
        """The columns that may be the held-out score, in order."""
        columns = sorted(columns)
        others = {column for name in self.not_scores for column in _named(name, columns)}
        found = [column for name in self.scores for column in _named(name, columns)]
        summands = self.summand_columns(columns)
        found += summands[1:] and summands
        return [column for column in dict.fromkeys(found) if column not in others]

    def summand_columns(self, columns: Iterable[str]) -> list[str]:
        """The columns whose sum is a score, in order."""
        columns = sorted(columns)
        return [column for name in self.summands for column in _named(name, columns)]

    def time_columns(self, columns: Collection[str]) -> list[str]:
        """The columns whose sum is the time of a step; empty if there is none."""
        known = ([name for name in names if name in columns] for names in (self.seconds, *self.older_seconds))
        return next(filter(None, known), [])

    def training_columns(self, columns: Iterable[str]) -> dict[str, str]:
        """Those of the columns that describe training steps, with our names for them."""
        ours = {f"{prefix}{name}": own for name, own in self.training.items() for prefix in ("", "train/")}
        return {column: ours[column] for column in columns if column in ours}


def _named(name: str, columns: Iterable[str]) -> list[str]:
    """The columns that match a name, also as MLflow gets it, which allows no `@`."""
    pattern = re.compile(".+".join(map(re.escape, re.split(r"<[^>]+>", name))).replace("@", "(?:@|_at_)"))
    return [column for column in columns if pattern.fullmatch(column)]


PRESETS = (
    Preset(
        name="verl",
        scores=(
            "val-core/<data set>/<reward or acc>/mean@<k>",
            # Before 0.4; then verl-agent, which began as a copy of verl.
            "val/test_score/<data set>",
            "val/<data set>/test_score",
            "val/<data set>/test_score/<part>",
        ),
        not_scores=("val/test_score/pass@k/<data set>",),
        throughput=("perf/total_num_tokens", "perf/throughput"),
        seconds=("perf/time_per_step",),
        # Before 0.3, and before 0.2, which times no whole step and validation apart.
        older_seconds=(
            ("timing_s/step",),
            tuple(f"timing/{phase}" for phase in ("gen", "ref", "values", "adv", "update_critic", "update_actor")),
        ),
        # verl/trainer/ppo/metric_utils.py and verl/workers/actor/dp_actor.py of volcengine/verl b178a3cd, and v0.2.
        training={
            "actor/pg_loss": "loss",
            "actor/grad_norm": "grad_norm",
            "actor/lr": "learning_rate",
            "critic/score/mean": "reward_mean",
            "actor/entropy": "entropy",
            "actor/entropy_loss": "entropy",
            "response_length/mean": "mean_tokens",
            "response_length/clip_ratio": "truncated",
            "actor/pg_clipfrac": "ratio_clipped",
        },
    ),
    Preset(
        name="prime-rl",
        steps=("step",),
        scores=("eval/<environment>/<all or effective>/<agent>/avg@<k>",),
        seconds=("time/step",),
    ),
    Preset(
        name="slime",
        steps=("rollout/step", "eval/step"),
        scores=("eval/<data set>",),
        not_scores=(
            "eval/step",
            "eval/<data set>-truncated_ratio",
            "eval/<data set>-pass@<k>",
            "eval/<data set>/<metric>",
        ),
        seconds=("perf/step_time",),
    ),
    Preset(
        name="skyrl",
        scores=("eval/<data set>/avg_score", "eval/<data set>/pass_at_<k>"),
        seconds=("timing/step",),
    ),
    Preset(name="nemo-rl", scores=("validation/accuracy",), seconds=("timing/train/total_step_time",)),
    Preset(
        name="openrlhf",
        steps=("train/global_step", "eval/global_step"),
        scores=("eval/eval_<data set>_pass<k>", "eval_<data set>_pass<k>"),
        seconds=("train/timing/step_total", "timing/step_total"),
    ),
    # The second name of each is that of W&B and TensorBoard.
    Preset(
        name="trl",
        steps=("step", "train/global_step"),
        scores=("eval_reward", "eval/reward"),
        summands=("eval_rewards/<function>/mean", "eval/rewards/<function>/mean"),
        seconds=("step_time", "train/step_time"),
        is_mean=True,
        of_batches=True,
        # trl/trainer/grpo_trainer.py of TRL 1.16.0; callbacks of transformers add loss, grad_norm and learning_rate.
        training={
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
    ),
    Preset(
        name="areal",
        scores=("eval-rollout/reward",),
        seconds=tuple(
            f"timeperf/{phase}"
            for phase in (
                "rollout", "critic_values", "ref_logp", "teacher_logp", "recompute_logp", "compute_advantage",
                "train_step", "critic_train_step", "update_weights",
            )
        ),
    ),
)  # fmt: skip


def find_preset(name: str) -> Preset:
    """The preset of this name; AblationsError lists them."""
    for preset in PRESETS:
        if preset.name == name:
            return preset
    raise AblationsError(f"--log: no trainer {name!r}; {did_you_mean(name, [one.name for one in PRESETS], 'trainers')}")
