"""Rules about the steps of a run: each checks one window and returns a symptom or nothing.

Bounds are relative to the start of the run where a scale may begin with such values by design. The rules are in the
order of likely causes: an earlier problem tends to cause a later one.
"""

import statistics
from collections.abc import Callable, Sequence
from itertools import accumulate

from ablations.diagnosis.history import CLEAR_FALL, STAYS, LogRow, StepWindow, score_of
from ablations.diagnosis.reward_rules import (
    no_signal,
    reward_pays_something_else,
    unreadable_answers,
    verifier_fails,
)
from ablations.diagnosis.symptom import NO_CHANGE, NO_SIGNAL, TOO_EASY, Symptom, TrainingRule
from scalerl.run import episode_rules, health
from scalerl.run.idle_steps import MAX_SKIPPED, why_nothing

OLD = 10.0
"""Age of weights in steps above which a large gap is attributed to their age, not to the size of a step."""
GRADIENT_RISE = 4.0
"""Median gradient norm, relative to the start."""
MANY_CLIPPED, ONCE_CLIPPED = 0.3, 0.15
"""Share of tokens whose ratio the loss clips, recently, and over the RECENT steps with the largest share so far."""
AT_ONCE, LEFT_AT_ONCE = 15, 0.3
"""A score that drops to this share of itself within this many steps was lost at once."""
WEIGHTS_JUMPED = 0.5
"""Gap between trainer and generator, in nats per token, that only a jump of the weights causes."""
HARDLY_MOVED = 2e-3
"""Gap in nats between the trainer and weights some steps old, below which the weights hardly move."""
HARDLY_ANY = 1.5e-5
"""Sum of the learning rates of all steps below which hardly any run learns; it bounds how far AdamW moves a weight."""
ENTROPY_RISE, ENTROPY_RISE_NATS = 1.5, 0.2
"""Rise of the entropy, as a factor and in nats; either suffices if the score has not risen."""
ENTROPY_LEFT = 0.1
"""Share of the initial entropy below which it counts as gone, if the score has not risen."""
MUCH_LONGER = 1.3
"""Rise of the length of answers, as a factor."""
ALMOST_EMPTY, MUCH_SHORTER = 2.5, 0.4
"""Length in tokens of an almost empty answer, and share of the initial length that counts as much shorter."""
ALWAYS_IDLE = 0.9
"""Idle share of device time."""


def _learning_rate_too_high(window: StepWindow) -> Symptom | None:
    """Large gradients, many clipped ratios or few effective tokens, together with a falling score; or ratios that were
    clipped all along, while nothing was learned."""
    most = window.so_far(_most_clipped)
    if most > ONCE_CLIPPED and not window.has_risen:
        return Symptom(
            text=f"up to {most:.0%} of the ratios were clipped over {health.RECENT} steps, and the training reward has "
            f"not risen above {window.start or 0.0:.2f}: the steps are too large",
            change="lower optimiser.learning_rate, or take fewer steps on each batch",
        )
    if not window.has_fallen:
        return None
    signs = []
    norms, early = _values(window.recent, "grad_norm"), _values(window.early[health.SETTLED :], "grad_norm")
    if norms and early and statistics.median(norms) > GRADIENT_RISE * statistics.median(early):
        signs.append(f"the gradient's norm rose from {statistics.median(early):.2g} to {statistics.median(norms):.2g}")
    if (clipped := window.now("ratio_clipped")) is not None and clipped > MANY_CLIPPED:
        signs.append(f"{clipped:.0%} of the ratios are clipped")
    if (share := window.now("ess")) is not None and share < 0.5:
        signs.append(f"the effective sample size is {share:.0%} of the tokens")
    gap, lag = _largest_gap(window)
    if gap > WEIGHTS_JUMPED and lag <= OLD:
        signs.append(f"log-probs shifted by up to {gap:.1f} nats per token between generation and training")
    if not signs:
        return None
    return Symptom(
        text=f"{_fall(window)}, and {' and '.join(signs)}: the steps are too large",
        change="lower optimiser.learning_rate, clip more (optimiser.max_grad_norm), or lower off_policy.k",
    )


def _gone(window: StepWindow) -> Symptom | None:
    """A score that was lost within a few steps, usually because the steps are too large."""
    if not window.has_fallen or (at := window.so_far(_gone_at_once)) is None:
        return None
    return Symptom(
        text=f"{_fall(window)}, nearly all of it within {AT_ONCE} steps, at step {at}",
        change="lower optimiser.learning_rate first; if that changes nothing, look at the loss",
    )


def _learning_rate_too_low(window: StepWindow) -> Symptom | None:
    """A score that stays while the weights hardly move."""
    score, before, gap = window.score, window.score_before, window.now("mismatch")
    if score is None or before is None or score >= TOO_EASY or abs(score - before) > STAYS or window.has_risen:
        return None
    nats, lag = window.now("entropy"), _mean_lag(window.recent)
    if nats is not None and nats < health.MIN_ENTROPY:
        return None
    moved = window.so_far(_sum_of_rates)
    if gap is not None and lag >= 1:
        why = f"log-probs of weights {lag:.0f} steps old differ by {gap:.1g} nats" if gap < HARDLY_MOVED else ""
    else:
        why = f"AdamW has moved no weight by more than about {moved:.1g}" if 0 < moved < HARDLY_ANY else ""
    if not why:
        return None
    return Symptom(
        text=f"the training reward stays at {score:.2f}, and {why}: the steps are too small",
        change="raise optimiser.learning_rate, or shorten optimiser.warmup_steps",
    )


def _mismatch(window: StepWindow) -> Symptom | None:
    largest, age = _largest_gap(window)
    if largest > WEIGHTS_JUMPED and age > OLD and window.has_fallen:
        return Symptom(
            text=f"{_fall(window)}, and log-probs under weights {age:.0f} steps old differed by up to {largest:.1f} "
            "nats per token",
            change="lower off_policy.k, or set correction",
        )
    if (text := health.mismatch(window.early, window.recent)) is None:
        return None
    at_once, gap = window.now("mismatch_lag_0"), window.now("mismatch") or 0.0
    if at_once is not None and at_once > gap / 2:
        why, change = "already at lag 0, so the engines differ", "use logits: fp32, or parameters: fp32"
    elif at_once is not None or _mean_lag(window.recent) >= 1:
        why, change = "with the age of the weights", "lower off_policy.k, or set correction"
    else:
        why, change = "with fresh weights", "use logits: fp32, or parameters: fp32"
    return Symptom(text=f"{text.partition(';')[0]}, {why}", change=change)


def _entropy_explodes(window: StepWindow) -> Symptom | None:
    if (nats := window.change("entropy")) is None:
        return None
    before, now = nats
    rises = (now > ENTROPY_RISE * before, now > before + ENTROPY_RISE_NATS)
    if not (all(rises) or (any(rises) and not window.has_risen)):
        return None
    return Symptom(
        text=f"entropy rose from {before:.2f} to {now:.2f} nats per token: the policy becomes random",
        change="lower entropy_bonus or optimiser.learning_rate, or raise kl.coefficient",
    )


def _entropy_gone(window: StepWindow) -> Symptom | None:
    """A policy that no longer explores."""
    text = health.low_entropy(window.early, window.recent)
    if text is None and (nats := window.change("entropy")) is not None and not window.has_risen:
        before, now = nats
        if now < ENTROPY_LEFT * before and (window.score or 0.0) < TOO_EASY:
            text = f"entropy fell from {before:.2f} to {now:.2f} nats per token, and the training reward has not risen"
    if text is None:
        return None
    return Symptom(text=text, change="raise entropy_bonus or loss.clip_high, or lower optimiser.learning_rate")


def _empty_answers(window: StepWindow) -> Symptom | None:
    if (tokens := window.change("mean_tokens")) is None:
        return None
    before, now = tokens
    if now > max(ALMOST_EMPTY, MUCH_SHORTER * before) or (window.score or 0.0) >= TOO_EASY:
        return None
    paid = "look at the kept rollouts; the reward pays for short or empty answers"
    broken = "lower optimiser.learning_rate, or look at the loss: the reward does not pay for this"
    return Symptom(
        text=f"answers shrank from {before:.1f} to {now:.1f} tokens", change=broken if window.has_fallen else paid
    )


def _longer_not_better(window: StepWindow) -> Symptom | None:
    tokens, held_out = window.change("mean_tokens"), window.held_out_change
    scores, name = (held_out, "held-out score") if held_out else (window.change("pass_rate"), "training reward")
    if tokens is None or scores is None:
        return None
    (before, now), (score_before, score) = tokens, scores
    if now <= MUCH_LONGER * before or score > score_before + NO_CHANGE:
        return None
    return Symptom(
        text=f"answers grew from {before:.0f} to {now:.0f} tokens, and the {name} went from {score_before:.2f} to "
        f"{score:.2f}",
        change="set length_control: {type: penalty}, or look at what the reward pays for",
    )


def _fallen(window: StepWindow) -> Symptom | None:
    change = "lower optimiser.learning_rate or off_policy.k, or set correction"
    return Symptom(text=_fall(window), change=change) if window.has_fallen else None


def _starved(window: StepWindow) -> Symptom | None:
    for role, other in (("trainer", "generators"), ("generator", "trainers")):
        share, signal = window.now(f"{role}_idle"), 1 - (window.now("zero_variance") or 0.0)
        if share is not None and share > ALWAYS_IDLE and signal > 1 - NO_SIGNAL:
            return Symptom(
                text=f"{role}s spend {share:.0%} of their time waiting",
                change=f"use more cluster.{other} or fewer cluster.{role}s; under ppo_off_policy waiting is by design",
            )
    return None


def _skipped(window: StepWindow) -> Symptom | None:
    """Steps that trained on nothing because of a fault."""
    rows = window.recent
    idle = [why_nothing(row) for row in rows if row.get("skipped")]
    faults = [why for why in idle if "not finite" in why or "overflowed" in why or "masked" in why]
    if len(faults) < MAX_SKIPPED * len(rows):
        return None
    why = statistics.mode(faults)
    return Symptom(
        text=f"{len(faults)} of the last {len(rows)} steps trained on nothing: {why}",
        change="set truncated: keep" if "masked" in why else "lower optimiser.learning_rate, or use parameters: fp32",
    )


def _warned(rule: Callable[[Sequence[LogRow], Sequence[LogRow]], str | None], change: str) -> TrainingRule:
    """A rule of `scalerl.run.health`, without what its warning says after a semicolon."""

    def found(window: StepWindow) -> Symptom | None:
        text = rule(window.early, window.recent)
        return None if text is None else Symptom(text=text.partition(";")[0], change=change)

    return found


def _values(rows: Sequence[LogRow], column: str) -> list[float]:
    return [row[column] for row in rows if row.get(column) is not None]


def _mean_lag(rows: Sequence[LogRow]) -> float:
    counts: dict[float, float] = {}
    for row in rows:
        for lag, count in row.get("staleness", {}).items():
            counts[float(lag)] = counts.get(float(lag), 0) + count
    return sum(lag * count for lag, count in counts.items()) / sum(counts.values()) if counts else 0.0


def _fall(window: StepWindow) -> str:
    return f"the training reward fell from {window.best or 0.0:.2f} to {window.score or 0.0:.2f}"


def _gone_at_once(steps: Sequence[LogRow]) -> list[int | None]:
    """The first step so far at which the score fell to LEFT_AT_ONCE of itself within AT_ONCE steps, at every step."""
    width = AT_ONCE // 3
    scores = [score_of(steps[at : at + width]) for at in range(len(steps) - width + 1)]
    for at, (before, after) in enumerate(zip(scores, scores[AT_ONCE - width :], strict=False)):
        if before is not None and after is not None and before > CLEAR_FALL and after <= LEFT_AT_ONCE * before:
            known = at + AT_ONCE - 1
            return [None] * known + [int(steps[at + width]["step"])] * (len(steps) - known)
    return [None] * len(steps)


def _most_clipped(steps: Sequence[LogRow]) -> list[float]:
    """The largest share of clipped ratios so far, each a mean over RECENT steps, or fewer at the end."""
    found, most, so_far = [], 0.0, 0.0
    for at in range(0, len(steps), health.RECENT):
        clipped: list[float] = []
        for row in steps[at : at + health.RECENT]:
            clipped += _values([row], "ratio_clipped")
            so_far = max(most, sum(clipped) / len(clipped) if clipped else 0.0)
            found.append(so_far)
        most = so_far
    return found


def _sum_of_rates(steps: Sequence[LogRow]) -> list[float]:
    """Sum of the learning rates so far."""
    return [*accumulate(row["learning_rate"] if row.get("learning_rate") is not None else 0 for row in steps)]


def _worst_mismatch(steps: Sequence[LogRow]) -> list[LogRow | None]:
    """The step so far with the largest gap between trainer and generator; None without any."""

    def worse(worst: LogRow | None, row: LogRow | None) -> LogRow | None:
        return row if worst is None or (row is not None and row["mismatch"] > worst["mismatch"]) else worst

    return [*accumulate((row if row.get("mismatch") is not None else None for row in steps), worse)]


def _largest_gap(window: StepWindow) -> tuple[float, float]:
    """The largest gap between trainer and generator so far, and the mean age of the weights at that step."""
    worst = window.so_far(_worst_mismatch)
    return (0.0, 0.0) if worst is None else (worst["mismatch"], _mean_lag([worst]))


TRAINING_RULES: dict[str, TrainingRule] = {
    "verifier fails": verifier_fails,
    "environment fails": _warned(
        episode_rules.environment_fails,
        "fix the environment, whose errors are in the log of the run, or raise time_limit_s of the task",
    ),
    "steps skipped": _skipped,
    "reward pays something else": reward_pays_something_else,
    "rules broken": _warned(
        episode_rules.rules_broken,
        "look at the kept rollouts; say in the environment's first text what an answer looks like, use a longer "
        "warm_start, or reward keeping the rules",
    ),
    "reward without wins": _warned(
        episode_rules.wins_do_not_follow,
        "reward anything but winning less, or use easier episodes; the kept rollouts show what is rewarded",
    ),
    "learning rate too high": _learning_rate_too_high,
    "score gone at once": _gone,
    "learning rate too low": _learning_rate_too_low,
    "no signal": no_signal,
    "entropy explodes": _entropy_explodes,
    "entropy gone": _entropy_gone,
    "mismatch grows": _mismatch,
    "few effective tokens": _warned(health.ess, "lower off_policy.k, epochs or optimiser.learning_rate"),
    "empty answers": _empty_answers,
    "truncation grows": _warned(health.truncation, "raise generation.answer, or set length_control"),
    "unreadable answers": unreadable_answers,
    "longer, not better": _longer_not_better,
    "score falls": _fallen,
    "episodes cut": _warned(
        episode_rules.episodes_cut, "raise turns or context_tokens of the task, or use a smaller discount"
    ),
    "environment slow": _warned(
        episode_rules.environment_slow,
        "raise cluster.slots, so that others decode meanwhile, or use a faster environment",
    ),
    "starved": _starved,
}
"""Rules in the order of likely causes."""
