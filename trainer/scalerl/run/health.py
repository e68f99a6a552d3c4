"""Warnings about a run's health, from its last training steps; never decisions.

Each rule reads the first 60 and the last 20 train rows and returns a sentence or None. Rows of steps that trained on
nothing lack the learner's columns and are skipped. This module does not load torch.

    truncation   over 10 %, a level that precedes collapse (ScaleRL A.15), and above the run's starting level: a scale
                 may cut some answers by design
    mismatch     |log pi_train - log pi_gen| over 0.1 nats and over twice its level at steps 11 to 60; on our task such
                 levels precede collapse by some steps, while lag alone gives .04 to .06
    ess          effective sample size below a quarter: most tokens of the batch have almost no weight
    entropy      almost none while answers are still wrong; falling entropy alone predicts nothing (ScaleRL A.12)
    skipped      a quarter of the steps trained on nothing; all of them, as soon as the run is PATIENT steps old or ends

Three more are about episodes (`scalerl.run.episode_rules`): a failing environment, broken rules, long waits.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from scalerl.run.episode_rules import environment_fails, environment_slow, rules_broken
from scalerl.run.idle_steps import PATIENT, TrainRows, nothing_trained, skipped, why_nothing

RECENT = 20
"""Number of steps judged, at the end of the run."""
EARLY = 60
"""Number of steps they are compared with, at the start."""
SETTLED = 10
"""Steps skipped before taking the mismatch level: generators and trainer begin with the same weights."""
MAX_TRUNCATED, TRUNCATED_RISE = 0.10, 0.05
MAX_MISMATCH, MISMATCH_RISE = 0.1, 2.0
MIN_ESS = 0.25
MIN_ENTROPY, MASTERED = 0.02, 0.9


def column_mean(rows: TrainRows, name: str) -> float | None:
    """Mean of a column over the rows that have it; None if no row does."""
    values = [row[name] for row in rows if row.get(name) is not None]
    return sum(values) / len(values) if values else None


def truncation(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if over 10 % of answers are cut off at the token limit."""
    share, before = column_mean(recent, "truncated"), column_mean(early[:RECENT], "truncated")
    if share is None or before is None or share <= max(MAX_TRUNCATED, before + TRUNCATED_RISE):
        return None
    return (
        f"{share:.0%} of answers are cut off at the token limit, {before:.0%} at the start; in ScaleRL (A.15), runs "
        "above 10 % later collapsed"
    )


def mismatch(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if the log-probs of trainer and generator drift apart."""
    gap, before = column_mean(recent, "mismatch"), column_mean(early[SETTLED:EARLY], "mismatch")
    if gap is None or before is None or gap <= max(MAX_MISMATCH, MISMATCH_RISE * before):
        return None
    return (
        f"trainer and generator log-probs are {gap:.2f} nats apart, {before:.2f} at steps 11 to 60; collapse may follow"
    )


def ess(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if importance weights rest on few tokens."""
    share = column_mean(recent, "ess")
    if share is None or share >= MIN_ESS:
        return None
    return f"effective sample size is {share:.0%} of the tokens: the batch is too far off-policy"


def low_entropy(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if the policy has stopped exploring before mastering the task."""
    nats, rate = column_mean(recent, "entropy"), column_mean(recent, "pass_rate")
    if nats is None or rate is None or nats >= MIN_ENTROPY or rate >= MASTERED:
        return None
    return f"entropy is down to {nats:.3f} nats per token at a pass rate of {rate:.2f}: answers no longer differ"


RULES: dict[str, Callable[[TrainRows, TrainRows], str | None]] = {
    "truncation": truncation,
    "mismatch": mismatch,
    "ess": ess,
    "entropy": low_entropy,
    "skipped": skipped,
    "environment fails": environment_fails,
    "rules broken": rules_broken,
    "environment slow": environment_slow,
}


def health_warnings(early: TrainRows, recent: TrainRows) -> dict[str, str]:
    """Warnings by rule, from the first EARLY and the last RECENT train rows of a run.

    The result is empty until the two sets are more than RECENT steps apart.
    """
    if len(recent) < RECENT or not early or recent[0]["step"] <= early[0]["step"] + RECENT:
        return {}
    found = {name: rule(early, recent) for name, rule in RULES.items()}
    return {name: text for name, text in found.items() if text is not None}


class Health:
    """The rows that the rules read, for a run in progress."""

    def __init__(self) -> None:
        self._early: list[dict[str, Any]] = []
        self._recent: deque[dict[str, Any]] = deque(maxlen=RECENT)
        self._said: set[str] = set()
        self._steps = 0
        self._idle: Counter[str] = Counter()

    def add(self, row: dict[str, Any]) -> None:
        """Add the train row of one more step."""
        if len(self._early) < EARLY:
            self._early.append(row)
        self._recent.append(row)
        self._steps += 1
        if row["skipped"]:
            self._idle[why_nothing(row)] += 1

    def warnings(self, *, ended: bool = False) -> dict[str, str]:
        """Current warnings. Steps that trained on nothing count after PATIENT steps, or when the run ends."""
        recent = list(self._recent)
        found = health_warnings(self._early, recent)
        if self._steps and self._steps == self._idle.total() and (ended or self._steps >= PATIENT):
            found["skipped"] = nothing_trained(self._idle)
        elif ended and (text := skipped(self._early, recent)):
            found["skipped"] = text
        return found

    def unsaid(self, *, ended: bool = False) -> list[str]:
        """Warnings that have not been reported yet."""
        found = self.warnings(ended=ended)
        new = [text for name, text in found.items() if name not in self._said]
        self._said |= set(found)
        return new
