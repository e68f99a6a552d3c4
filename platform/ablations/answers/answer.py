"""The questions a comparison asks of every variant, and the answers: an estimate, its intervals and a verdict.

>>> Answer.of(LEVEL, JointInterval(estimate=-0.049, lo=-0.071, hi=-0.027, joint_lo=-0.08, joint_hi=-0.018)).verdict
'level down'

A `Question` holds its measurement, the rule that turns an interval into a verdict, the value of no difference, its
words. `questions` lists the questions of every comparison.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ablations.answers.differences import all_by_eq1, middle
from ablations.answers.interval import Interval, JointInterval, only_estimate, ratio_of_logs
from ablations.answers.one_law import law_weights
from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import RunToRun, run_to_run
from ablations.answers.student import interval_of
from ablations.fit.result import Fit
from ablations.text import compute_text, interval_text

REFERENCE, NO_DIFFERENCE, CANNOT_TELL = "reference", "no difference seen", "cannot tell"
PROVISIONAL = "one seed: provisional"
"""Verdicts common to all questions."""
ROUNDING = 1e-12
"""Relative tolerance for comparing a half-width with `widest`, since logarithms round."""
Side = tuple[float, Sequence[Fit]]
"""A variant of a contrast: its weight c_v and the fits of its seeds."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """A question about a variant against the reference; see `questions.LEVEL` for an example."""

    name: str
    """Name in headings, keys and tags, and of its run-to-run spread: "level"."""
    higher: str
    """The verdict if the interval lies above no difference: "level up"."""
    lower: str
    lower_is_better: bool = False
    is_ratio: bool = False
    """True if the number is the variant's value divided by the reference's; False if it is their difference."""
    widest: float
    """Largest half-width for the verdict "no difference seen", in pass rate or in ln of a ratio."""
    measured: Callable[[Sequence[Fit], Sequence[Fit], RunToRun, int], JointInterval | None] | None = None
    """A measurement in place of the contrast in `difference`, as a function of the same arguments."""
    repeats: Callable[[Sequence[Fit], Sequence[Fit], str], Repeats | None]
    """One number per seed of a variant, when compared with the reference's, under a law (a family's name; empty for the
    question's own law); None if there are none."""
    on_one_footing: Callable[[Sequence[Sequence[Fit]], str], list[Repeats] | None]
    """Numbers of the seeds of several variants under a law, with one compute or target for all of them; None if any
    seed has no number."""
    is_up_to_a_compute: bool = False
    """True if the number itself, not only its error, depends on how far the runs have trained."""
    is_by_law: bool = False
    """True if the number depends on the law beyond the readings, so that the spread is estimated under each law."""
    form: str
    """Format of the numbers in tables: "+z.3f", where z drops the sign of -0.000, or `RATIO`."""
    heading: str
    """Heading of the column of numbers: "level − {reference}"."""
    axis: str
    """Title of the figure's axis."""
    noun: str
    """Noun for sentences: "the difference in level"."""
    spread_noun: str
    """Noun for sentences after "standard deviation": "of levels"."""
    too_wide: str
    """Text for "cannot tell"."""
    said: dict[str, str]
    """Verdicts as written in sentences, if tables write them differently."""
    sentence: str
    """The numbers in a sentence: "{number} against {reference}"; may also use {own}, {seeds} and {reference_seeds}."""

    def __repr__(self) -> str:
        return f"<Question {self.name!r}>"

    @property
    def no_difference(self) -> float:
        """The value of no difference: 1 for a ratio, 0 for a difference."""
        return 1.0 if self.is_ratio else 0.0

    @property
    def better(self) -> str:
        """The verdict on a variant that beats the reference."""
        return self.lower if self.lower_is_better else self.higher

    @property
    def keys(self) -> tuple[str, ...]:
        """Keys of an answer in JSON and CSV, in the order of `Answer.to_json`: `level_difference`,
        `level_difference_lo`, ..., `level_difference_joint_hi`, `level_verdict`, `level_verdict_joint`."""
        number, verdict = f"{self.name}_{'ratio' if self.is_ratio else 'difference'}", f"{self.name}_verdict"
        ends = (f"{number}{end}" for end in ("", "_lo", "_hi", "_joint_lo", "_joint_hi"))
        return (*ends, verdict, f"{verdict}_joint")

    @property
    def meanings(self) -> dict[str, str]:
        """The meaning of each verdict, the better one first."""
        null = f"{self.no_difference:g}"
        sides = {
            self.higher: f"the 95 % interval of {self.noun} lies above {null}",
            self.lower: f"the 95 % interval of {self.noun} lies below {null}",
        }
        return {self.better: sides[self.better]} | {
            **sides,
            NO_DIFFERENCE: f"the interval contains {null} and is at most {self.narrow}",
            CANNOT_TELL: self.too_wide,
            PROVISIONAL: "one seed does not show how much runs of one recipe differ; a second seed does",
        }

    @property
    def narrow(self) -> str:
        """The widest interval that says "no difference": `±0.025`, or `×÷1.22` for a ratio."""
        return f"×÷{math.exp(self.widest):.2f}" if self.is_ratio else f"±{self.widest:g}"

    def spread_of(
        self, variants: Iterable[Sequence[Fit]], baseline: Sequence[Fit], others: Sequence[Repeats] = ()
    ) -> RunToRun:
        """The run-to-run spread, from the seeds of every variant and from repeated runs of other sweeps. Collapsed runs
        are left out.
        """
        saying = [some for fits in variants if (some := [fit for fit in fits if fit.verdict != "collapsed"])]

        def under(law: str) -> RunToRun:
            return run_to_run([found for fits in saying if (found := self.repeats(fits, baseline, law))], others)

        laws = law_weights([fit for fits in saying for fit in fits]) if self.is_by_law and saying else {}
        return replace(under(""), under={law: under(law) for law in laws})

    def difference(
        self, fits: Sequence[Fit], baseline: Sequence[Fit], spread: RunToRun, comparisons: int
    ) -> JointInterval | None:
        """The variant against the reference, given the seeds of both, their run-to-run spread and the number of
        comparisons; None if there is no answer.
        """
        if self.measured is not None:
            return self.measured(fits, baseline, spread, comparisons)
        return self.contrast([(1.0, fits), (-1.0, baseline)], spread, comparisons)

    def contrast(self, sides: Sequence[Side], spread: RunToRun, comparisons: int) -> JointInterval | None:
        """sum_v c_v mu_v, in the number of the question (a ratio for compute); None if a variant has no number."""
        weights, variants = [weight for weight, _ in sides], [fits for _, fits in sides]
        laws = law_weights([fit for fits in variants for fit in fits]) if self.is_by_law else {"": 1.0}
        numbers = {law: found for law in laws if (found := self.on_one_footing(variants, law)) is not None}
        if not numbers:
            return None
        contrasts = {law: list(zip(weights, found, strict=True)) for law, found in numbers.items()}
        if not spread.is_known:
            estimate = sum(weight * float(np.mean(one.values)) for weight, one in next(iter(contrasts.values())))
            return self.in_unit(only_estimate(estimate, num_seeds=min(map(len, variants))))
        parts = [
            replace(spread.under.get(law, spread).of_contrast(sides), weight=laws[law])
            for law, sides in contrasts.items()
        ]
        by_eq1 = not self.is_by_law or all(map(all_by_eq1, variants))
        return self.in_unit(interval_of(parts, middle(parts, by_eq1=by_eq1), comparisons=comparisons))

    def scaled(self, value: float | None) -> float | None:
        """The value in the unit of `widest`: unchanged for a difference, its ln for a ratio."""
        if value is None or not self.is_ratio:
            return value
        return math.log(value) if value > 0 else -math.inf

    def in_unit(self, found: JointInterval) -> JointInterval:
        """An interval in the unit of `widest`, converted to numbers of the question: a ratio from its ln."""
        return ratio_of_logs(found) if self.is_ratio else found

    def half_width(self, lo: float | None, hi: float | None) -> float:
        """Half-width of an interval in the unit of `widest`; infinite if an end is missing."""
        low, high = self.scaled(lo), self.scaled(hi)
        return math.inf if low is None or high is None else (high - low) / 2

    def verdict(self, interval: Interval | None) -> str:
        """The verdict on an interval: a difference if it excludes "no difference", else by its half-width."""
        if interval is None:
            return CANNOT_TELL
        if isinstance(interval, JointInterval) and interval.is_provisional:
            return PROVISIONAL if interval.is_shown else CANNOT_TELL
        if interval.lo is not None and interval.lo > self.no_difference:
            return self.higher
        if interval.hi is not None and interval.hi < self.no_difference:
            return self.lower
        half_width = self.half_width(interval.lo, interval.hi)
        return CANNOT_TELL if half_width > self.widest * (1 + ROUNDING) else NO_DIFFERENCE


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer of a comparison for one variant; None marks a number that the runs leave unbounded or undefined.

    Answer(question=LEVEL, estimate=-0.049, lo=-0.071, hi=-0.027, joint_lo=-0.080, joint_hi=-0.018,
           verdict="level down", joint_verdict="level down")
    """

    question: Question
    estimate: float | None
    """None if the estimate is meaningless by itself, though an end may be known."""
    lo: float | None
    hi: float | None
    joint_lo: float | None
    """The joint interval has a Bonferroni correction for all comparisons of the study, so that all hold at once."""
    joint_hi: float | None
    verdict: str
    joint_verdict: str
    read_at: float | None = None
    """Compute at which the variant and the reference are read, if that is less than the comparison's; the answer is
    then not ranked with the others."""

    @classmethod
    def of(cls, question: Question, found: JointInterval | None, *, read_at: float | None = None) -> "Answer":
        """Build the answer from an interval; `read_at` counts for a question whose number depends on it."""
        return cls(
            read_at=read_at if question.is_up_to_a_compute else None,
            question=question,
            estimate=found.estimate if found and found.is_shown else None,
            lo=found and found.lo,
            hi=found and found.hi,
            joint_lo=found and found.joint_lo,
            joint_hi=found and found.joint_hi,
            verdict=question.verdict(found),
            joint_verdict=question.verdict(found and (found if found.is_provisional else found.joint)),
        )

    @classmethod
    def of_reference(cls, question: Question) -> "Answer":
        """The reference's answer for itself: no difference."""
        null = question.no_difference
        numbers = {"estimate": null, "lo": null, "hi": null, "joint_lo": null, "joint_hi": null}
        return cls(question=question, **numbers, verdict=REFERENCE, joint_verdict=REFERENCE)

    @classmethod
    def written(cls, question: Question, *, estimate: float | None, lo: float | None, hi: float | None) -> "Answer":
        """An answer read from a card, which holds no joint interval."""
        verdict = question.verdict(Interval(estimate=math.nan, lo=lo, hi=hi))
        numbers = {"estimate": estimate, "lo": lo, "hi": hi, "joint_lo": None, "joint_hi": None}
        return cls(question=question, **numbers, verdict=verdict, joint_verdict=CANNOT_TELL)

    @property
    def cell(self) -> str:
        """The estimate with its interval, `-0.049 [-0.071, -0.027]`, followed by its compute if that differs from the
        comparison's, `... at 422`; empty without a number."""
        number = interval_text(self.estimate, self.lo, self.hi, self.question.form)
        return f"{number}{self.at_said}" if number else ""

    @property
    def at_said(self) -> str:
        """` at 422` if the answer is read at a different compute from the comparison's."""
        return "" if self.read_at is None else f" at {compute_text(self.read_at)}"

    @property
    def unsigned(self) -> str:
        """The estimate with its interval, without a plus: `0.049 [0.027, 0.071]`."""
        return interval_text(self.estimate, self.lo, self.hi, ".3f")

    @property
    def verdict_said(self) -> str:
        """The verdict, with the compute if that differs from the comparison's: `level up at 422`."""
        return f"{self.verdict}{self.at_said}"

    @property
    def verdict_named(self) -> str:
        """The verdict with its question, unless it names that itself: `level up`, `ceiling: cannot tell`."""
        is_bare = self.verdict in (CANNOT_TELL, NO_DIFFERENCE)
        return f"{self.question.name}: {self.verdict_said}" if is_bare else self.verdict_said

    def __repr__(self) -> str:
        return f"<{self.question.name.capitalize()}: {f'{self.verdict} {self.cell}'.strip()}>"

    @property
    def differs(self) -> bool:
        """True if the verdict says that the variant differs from the reference."""
        return self.verdict in (self.question.higher, self.question.lower)

    @property
    def is_held(self) -> bool:
        """True if the variant also differs by the joint interval, at the same compute as all others."""
        return self.differs and self.verdict == self.joint_verdict and self.read_at is None

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, under the keys of the question."""
        numbers = (self.estimate, self.lo, self.hi, self.joint_lo, self.joint_hi)
        return dict(zip(self.question.keys, (*numbers, self.verdict, self.joint_verdict), strict=True))


def answers_json(answers: Mapping[str, Answer]) -> dict[str, Any]:
    """Several answers as plain data for JSON, under the keys of their questions."""
    return {key: value for answer in answers.values() for key, value in answer.to_json().items()}
