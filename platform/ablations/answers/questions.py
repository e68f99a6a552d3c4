"""The questions of every comparison: level at equal compute, ceiling, compute to a common target.

A new question is a new entry here: every table, figure, file and page reads `Comparison.questions`.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from ablations.answers.answer import Question
from ablations.answers.differences import ceiling_difference, ceilings_under, common_target, is_bounded, ln_computes
from ablations.answers.level import compared_at, levels_of, read_at_of
from ablations.answers.repeats import Repeats
from ablations.answers.rise import rise_together
from ablations.fit.engine.family import SIGMOID
from ablations.fit.result import Fit
from ablations.text import RATIO


def _levels(fits: Sequence[Fit], baseline: Sequence[Fit], law: str, compute: float | None = None) -> Repeats | None:
    """The levels of seeds at the compute of the comparison, by default that of these runs."""
    compute = compared_at([*fits, *baseline]) if compute is None else compute
    return levels_of(fits, read_at_of(fits, compute))


def _ceilings(fits: Sequence[Fit], baseline: Sequence[Fit], law: str) -> Repeats | None:
    """Seeds without an upper end count if all seeds together have one; their large errors give them little weight."""
    rising = fits if rise_together(fits) else [fit for fit in fits if fit.rises]
    saying = rising if rising and is_bounded(rising) else [fit for fit in rising if fit.ceiling.hi is not None]
    return ceilings_under(saying, law or SIGMOID.name) if len(saying) > 1 else None


def _ln_computes(fits: Sequence[Fit], baseline: Sequence[Fit], law: str) -> Repeats | None:
    target = common_target([fits, baseline])
    return None if target is None else ln_computes(fits, target)


def _every_level(variants: Sequence[Sequence[Fit]], law: str, compute: float | None = None) -> list[Repeats] | None:
    """The levels of several variants, at the compute at which the first to end is read."""
    at = compared_at([fit for fits in variants for fit in fits]) if compute is None else compute
    at = min(read_at_of(fits, at) for fits in variants)
    found = [levels for fits in variants if (levels := levels_of(fits, at))]
    return found if len(found) == len(variants) else None


def _every_ceiling(variants: Sequence[Sequence[Fit]], law: str) -> list[Repeats] | None:
    """None if a variant does not rise, or has no upper end."""
    if not all(map(rise_together, variants)) or not all(map(is_bounded, variants)):
        return None
    return [ceilings_under(fits, law or SIGMOID.name) for fits in variants]


def _every_ln_compute(variants: Sequence[Sequence[Fit]], law: str) -> list[Repeats] | None:
    target = common_target(variants)
    return None if target is None else [ln_computes(fits, target) for fits in variants]


LEVEL = Question(
    name="level",
    higher="level up",
    lower="level down",
    widest=0.025,
    is_up_to_a_compute=True,
    repeats=_levels,
    on_one_footing=_every_level,
    form="+z.3f",
    heading="level − {reference}",
    axis="pass rate over the last third",
    noun="the difference in level",
    spread_noun="of levels",
    too_wide="the interval contains 0 and is too wide to say more, or the evaluations begin late or lie far apart",
    said={
        "level up": "higher at equal compute",
        "level down": "lower at equal compute",
        "no difference seen": "no difference seen at equal compute",
        "cannot tell": "the levels at equal compute cannot be told apart",
    },
    sentence="level {own}, {number} against {reference}",
)
CEILING = Question(
    name="ceiling",
    higher="ceiling up",
    lower="ceiling down",
    widest=0.04,
    measured=lambda fits, baseline, spread, m: ceiling_difference(fits, baseline, spread, comparisons=m),
    repeats=_ceilings,
    on_one_footing=_every_ceiling,
    is_by_law=True,
    form="+z.3f",
    heading="A − {reference}",
    axis="A, pass rate",
    noun="the difference in A",
    spread_noun="of A",
    too_wide="the interval contains 0, or has no end, and is too wide to say more",
    said={
        "no difference seen": "no difference seen in the ceiling",
        "cannot tell": "the ceilings cannot be told apart",
    },
    sentence="{number} in A against {reference} ({reference_seeds})",
)
COMPUTE = Question(
    name="compute",
    higher="more compute",
    lower="less compute",
    lower_is_better=True,
    is_ratio=True,
    is_up_to_a_compute=True,
    widest=math.log(1.5) / 2,
    repeats=_ln_computes,
    on_one_footing=_every_ln_compute,
    form=RATIO,
    heading="compute ÷ {reference}",
    axis="under 1 needs less compute",
    noun="the compute ratio",
    spread_noun="of ln compute",
    too_wide="the interval contains 1, or has no end, and is too wide to say more",
    said={
        "less compute": "less compute to the common target",
        "more compute": "more compute to the common target",
        "no difference seen": "no difference seen in compute",
        "cannot tell": "cannot tell which needs less compute",
    },
    sentence="{number} times its compute to the common target",
)
QUESTIONS = (LEVEL, CEILING, COMPUTE)
BY_NAME = {question.name: question for question in QUESTIONS}


def asked_at(question: Question, compute: float | None) -> Question:
    """The question as measured by a comparison at this compute; by default that of the given runs."""
    if question is not LEVEL or compute is None:
        return question
    return replace(
        LEVEL, repeats=partial(_levels, compute=compute), on_one_footing=partial(_every_level, compute=compute)
    )
