"""The variant with the highest level, and those that may be just as high.

>>> comparison.leader
Leader(variant="prompts-24", runner_up="lr-0.00012", ahead=Answer(...), not_ruled_out={"lr-0.00012": 0.4})
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablations.answers.answer import Answer, Question
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit


@dataclass(frozen=True, kw_only=True)
class Leader:
    """The variant with the highest level among those read at one compute, and its lead over the others."""

    variant: str
    runner_up: str
    ahead: Answer
    """The level of the leader minus that of the runner-up."""
    not_ruled_out: Mapping[str, float | None]
    """Variants whose difference from the leader has a 95 % interval that contains 0, the highest first, each with P:
    the probability that its level is the higher one of the two, from the t distribution of that interval. P is not
    corrected for the choice of the leader among several."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: {"variant": "prompts-24", "runner_up": "lr-0.00012", "ahead": 0.01, ...}."""
        return {
            "variant": self.variant,
            "runner_up": self.runner_up,
            "ahead": self.ahead.estimate,
            "ahead_lo": self.ahead.lo,
            "ahead_hi": self.ahead.hi,
            "not_ruled_out": list(self.not_ruled_out),
            "not_ruled_out_p": list(self.not_ruled_out.values()),
        }


def leader_among(
    fits: Mapping[str, Sequence[Fit]], answers: Mapping[str, Answer], question: Question, spread: RunToRun
) -> Leader | None:
    """The leader among variants with an answer to `question`, each against the same reference, whose answer is no
    difference; None of fewer than two, or while the run-to-run spread is unknown.

    `question` measures the variants at the compute of the comparison.
    """
    known = {name: one.estimate for name, one in answers.items() if one.estimate is not None}
    first, *others = sorted(known, key=lambda name: -known[name]) or [""]
    if not others or not spread.is_known:
        return None
    kind = next(iter(answers.values())).question
    found = {name: question.difference(fits[first], fits[name], spread, len(others)) for name in others}
    ahead = {name: Answer.of(kind, one) for name, one in found.items()}
    return Leader(
        variant=first,
        runner_up=others[0],
        ahead=ahead[others[0]],
        not_ruled_out={name: one and one.p_lower for name, one in found.items() if ahead[name].verdict != kind.better},
    )
