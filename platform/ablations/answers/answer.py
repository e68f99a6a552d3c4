"""What a comparison asks of every variant, and what it answers: an estimate, its intervals and a verdict.

>>> Answer.of(LEVEL, JointInterval(estimate=-0.049, lo=-0.071, hi=-0.027, joint_lo=-0.08, joint_hi=-0.018)).verdict
'level down'

A `Question` holds all that is particular to it: how it is measured, the rule that turns an interval into a verdict, the
value of no difference, its words, and its keys in JSON and CSV. `questions` lists the questions that are asked.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ablations.answers.interval import Interval, JointInterval
from ablations.answers.run_to_run import NO_OTHERS, OtherSweeps, Repeats, RunToRun, run_to_run
from ablations.fit.result import Fit

REFERENCE, NO_DIFFERENCE, CANNOT_TELL = "reference", "no difference seen", "cannot tell"
"""Verdicts that every question has."""
ROUNDING = 1e-12
"""An interval is as wide as the widest up to this share, which logarithms lose."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """One thing that is asked of a variant against the reference; see `questions.LEVEL` for an example."""

    name: str
    """Heads columns and names tags: "level"."""
    key: str
    """Of the estimate in JSON and CSV, "delta_level"; the ends are `delta_level_lo`, `delta_level_joint_lo`, ..."""
    verdict_key: str
    spread: str
    """What `measured` is told the spread of: "level"; two questions may share one."""
    higher: str
    """The verdict on an interval above no difference: "level up"."""
    lower: str
    lower_is_better: bool = False
    is_ratio: bool = False
    """True for the variant's value over the reference's, false for their difference."""
    widest: float
    """The largest half-width of an interval that says "no difference seen": in pass rate, or in ln of a ratio."""
    measured: Callable[[Sequence[Fit], Sequence[Fit], RunToRun, int], JointInterval | None]
    """Seeds of the variant, seeds of the reference, spread of runs, number of comparisons; None without an answer."""
    repeats: Callable[[Sequence[Fit], Sequence[Fit]], Repeats | None]
    """What the seeds of a variant say of the spread of runs, compared with these of the reference."""
    form: str
    """Format of its numbers in tables: "+.3f"."""
    heading: str
    """Heads the column of its numbers: "level less {reference}'s"."""
    axis: str
    """Title of the axis of its figure."""
    noun: str
    """In sentences: "the difference in level"."""
    spread_noun: str
    """In sentences, before a standard deviation: "of levels"."""
    too_wide: str
    """What "cannot tell" means."""
    said: dict[str, str]
    """Verdicts in a sentence, if they read otherwise than in a table."""
    sentence: str
    """Its numbers in a sentence: "{number} against {reference}"; may name {own}, {seeds} and {reference_seeds} too."""

    @property
    def no_difference(self) -> float:
        """1 of a ratio, 0 of a difference."""
        return 1.0 if self.is_ratio else 0.0

    @property
    def better(self) -> str:
        """The verdict on a variant that is better than the reference."""
        return self.lower if self.lower_is_better else self.higher

    @property
    def keys(self) -> tuple[str, ...]:
        """Of an answer in JSON and CSV, in the order of `Answer.to_json`."""
        numbers = (f"{self.key}{end}" for end in ("", "_lo", "_hi", "_joint_lo", "_joint_hi"))
        return (*numbers, self.verdict_key, f"{self.verdict_key}_joint")

    @property
    def meanings(self) -> dict[str, str]:
        """What each verdict means, the better one first."""
        null = f"{self.no_difference:g}"
        sides = {
            self.higher: f"the 95 % interval of {self.noun} lies above {null}",
            self.lower: f"the 95 % interval of {self.noun} lies below {null}",
        }
        return {self.better: sides[self.better]} | {
            **sides,
            NO_DIFFERENCE: f"the interval holds {null} and is narrow enough to rule out a large difference",
            CANNOT_TELL: self.too_wide,
            REFERENCE: "the variant that all others are compared with",
        }

    def spread_of_runs(
        self, variants: Iterable[Sequence[Fit]], baseline: Sequence[Fit], others: OtherSweeps = NO_OTHERS
    ) -> RunToRun:
        """The difference between runs of one recipe, from the seeds of every variant and from other sweeps."""
        repeated = (fits for fits in variants if len(fits) > 1)
        return run_to_run(
            [found for fits in repeated if (found := self.repeats(fits, baseline))], others.of(self.spread)
        )

    def scaled(self, value: float | None) -> float | None:
        """A value in the unit of `widest`: itself, or the ln of a ratio."""
        if value is None or not self.is_ratio:
            return value
        return math.log(value) if value > 0 else -math.inf

    def half_width(self, lo: float | None, hi: float | None) -> float:
        """Of an interval in the unit of `widest`; infinite if an end is missing."""
        low, high = self.scaled(lo), self.scaled(hi)
        return math.inf if low is None or high is None else (high - low) / 2

    def verdict(self, interval: Interval | None) -> str:
        """What an interval says: it leaves out no difference, or holds it and is narrow or too wide to tell."""
        if interval is None:
            return CANNOT_TELL
        if interval.lo is not None and interval.lo > self.no_difference:
            return self.higher
        if interval.hi is not None and interval.hi < self.no_difference:
            return self.lower
        half_width = self.half_width(interval.lo, interval.hi)
        return CANNOT_TELL if half_width > self.widest * (1 + ROUNDING) else NO_DIFFERENCE


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a comparison found of a variant; None stands for a number that the runs do not bound or do not give.

    Answer(question=LEVEL, estimate=-0.049, lo=-0.071, hi=-0.027, joint_lo=-0.080, joint_hi=-0.018,
           verdict="level down", joint_verdict="level down")
    """

    question: Question
    estimate: float | None
    """None if it means nothing by itself, though an end may be known."""
    lo: float | None
    hi: float | None
    joint_lo: float | None
    """The joint interval is corrected for all comparisons of the study (Bonferroni), so that all hold at once."""
    joint_hi: float | None
    verdict: str
    joint_verdict: str

    @classmethod
    def of(cls, question: Question, found: JointInterval | None) -> "Answer":
        """The answer that an interval gives."""
        return cls(
            question=question,
            estimate=found.estimate if found and found.is_shown else None,
            lo=found and found.lo,
            hi=found and found.hi,
            joint_lo=found and found.joint_lo,
            joint_hi=found and found.joint_hi,
            verdict=question.verdict(found),
            joint_verdict=question.verdict(found and found.joint),
        )

    @classmethod
    def of_reference(cls, question: Question) -> "Answer":
        """No difference from itself."""
        null = question.no_difference
        numbers = {"estimate": null, "lo": null, "hi": null, "joint_lo": null, "joint_hi": null}
        return cls(question=question, **numbers, verdict=REFERENCE, joint_verdict=REFERENCE)

    @classmethod
    def written(cls, question: Question, *, estimate: float | None, lo: float | None, hi: float | None) -> "Answer":
        """An answer as a card has it: its joint interval was not written."""
        verdict = question.verdict(Interval(estimate=math.nan, lo=lo, hi=hi))
        ends = {"joint_lo": None, "joint_hi": None}
        return cls(
            question=question, estimate=estimate, lo=lo, hi=hi, **ends, verdict=verdict, joint_verdict=CANNOT_TELL
        )

    @property
    def differs(self) -> bool:
        """True if the verdict says that the variant differs from the reference."""
        return self.verdict in (self.question.higher, self.question.lower)

    @property
    def is_held(self) -> bool:
        """True if it differs, and still does by the joint interval."""
        return self.differs and self.verdict == self.joint_verdict

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, under the keys of the question."""
        numbers = (self.estimate, self.lo, self.hi, self.joint_lo, self.joint_hi)
        return dict(zip(self.question.keys, (*numbers, self.verdict, self.joint_verdict), strict=True))
