"""Rules about rewards: unjudged or unreadable answers, rewards for something else, groups without a gradient.

Each checks one window of the steps and returns a symptom or nothing.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from ablations.diagnosis.history import LogRow, StepWindow
from ablations.diagnosis.symptom import NO_CHANGE, NO_SIGNAL, TOO_EASY, TOO_HARD, Symptom
from scalerl.run import health

MANY_NOT_JUDGED = 0.02
"""Share of answers that the verifier could not judge."""
MANY_UNREADABLE, UNREADABLE_ROSE = 0.3, 0.15
"""Share of answers without a final answer, and its rise since the start, above which they are a problem."""
MOST_OF_RUN = 0.5
"""Share of the steps on mastered prompts above which the prompts are too easy for the run."""
REWARD_ROSE = 0.1
"""Smallest rise of the mean reward that counts as a rise."""


def verifier_fails(window: StepWindow) -> Symptom | None:
    """Answers that were not judged: the verifier ran out of time or died."""
    counts = _outcomes(window.recent)
    total, lost = sum(counts.values()), counts.get("timed_out", 0) + counts.get("crashed", 0)
    if not total or lost <= MANY_NOT_JUDGED * total or _has_episodes(window.recent):
        return None
    ways = [f"{counts[way]} {way.replace('_', ' ')}" for way in ("timed_out", "crashed") if way in counts]
    return Symptom(
        text=f"the verifier could not judge {lost / total:.0%} of the answers ({', '.join(ways)})",
        change="raise the time limit of the task, or correct its tests",
    )


def unreadable_answers(window: StepWindow) -> Symptom | None:
    """Answers in which the verifier finds no final answer although they were not cut off."""
    counts = _outcomes(window.recent)
    total = sum(counts.values())
    before = _outcomes(window.early[: health.RECENT])
    if not total or not before or _has_episodes(window.recent):
        return None
    share, share_before = (each.get("unparsable", 0) / sum(each.values()) for each in (counts, before))
    whole, whole_before = share - (window.now("truncated") or 0.0), share_before - (window.before("truncated") or 0.0)
    if whole <= max(MANY_UNREADABLE, whole_before + UNREADABLE_ROSE):
        return None
    return Symptom(
        text=f"{share:.0%} of the answers have no readable final answer, {share_before:.0%} at the start, and "
        f"{whole:.0%} although they were not cut off",
        change="look at the kept rollouts; state the form of the answer in the prompt, or raise generation.answer",
    )


def reward_pays_something_else(window: StepWindow) -> Symptom | None:
    """A mean reward that rises while fewer answers are right."""
    match window.change("reward_mean"), window.change("pass_rate"):
        case (before, now), (rate_before, rate) if now >= before + REWARD_ROSE and rate <= rate_before - NO_CHANGE:
            return Symptom(
                text=f"the mean reward rose from {before:.2f} to {now:.2f}, and the training pass rate fell from "
                f"{rate_before:.2f} to {rate:.2f}: the reward pays for something other than right answers",
                change="correct the reward; the kept rollouts show what it pays for",
            )
    return None


def no_signal(window: StepWindow) -> Symptom | None:
    """Groups whose answers all got the same reward, so that they give no gradient."""
    share, rate = window.now("zero_variance"), window.now("pass_rate")
    start = window.before("pass_rate")
    if share is None or rate is None or start is None or share < NO_SIGNAL:
        return None
    hard = max(rate, start, window.best or 0.0) <= TOO_HARD
    if not hard and window.so_far(_mastered) < MOST_OF_RUN * window.end:
        return None  # learned or forgotten, and neither too hard nor too easy
    return Symptom(
        text=f"{share:.0%} of the groups give no gradient, at a training pass rate of {rate:.2f}: the prompts are too "
        f"{'hard' if hard else 'easy'}",
        change="use easier prompts, a longer warm start or more batch.generations" if hard else "use harder prompts",
    )


def _outcomes(rows: Sequence[LogRow]) -> Counter[str]:
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row.get("outcomes", {}))
    return total


def _has_episodes(rows: Sequence[LogRow]) -> bool:
    """True if environments judge, which have rules of their own (`scalerl.run.episode_rules`)."""
    return any(row.get("ends") for row in rows)


def _mastered(steps: Sequence[LogRow]) -> list[int]:
    """Number of steps so far on mastered prompts, at every step."""
    return [*accumulate(map(_is_mastered, steps))]


def _is_mastered(row: LogRow) -> bool:
    return row.get("zero_variance", 0.0) >= NO_SIGNAL and row.get("pass_rate", 0.0) >= TOO_EASY
