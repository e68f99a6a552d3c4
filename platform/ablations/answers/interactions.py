"""Interactions: the effect of two changes made together, minus the sum of their separate effects.

    interaction = (mu_ab - mu_0) - (mu_a - mu_0) - (mu_b - mu_0) = mu_ab - mu_a - mu_b + mu_0

with mu as in `main_effects`: 0 is the reference, a and b have one change each, ab has both. For compute the
interaction is the ratio of both together divided by the product of the two ratios. Its variance is that of four cells,
so an interaction must be about 1.4 times as large as a difference to be seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ablations.answers.answer import CANNOT_TELL, NO_DIFFERENCE, Answer, answers_json
from ablations.answers.main_effects import contrast_answers
from ablations.answers.questions import QUESTIONS
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit
from ablations.text import parts_of

LEFT_OUT = "loo-"
"""Prefix in the names of variants that remove a choice of the reference."""
SAME_WORK, NEED_EACH_OTHER, ADD_UP = "do the same work", "need each other", "add up"


@dataclass(frozen=True, kw_only=True)
class Interaction:
    """Two changes together: `Interaction(first="dapo", second="small", both="dapo+small", answers={"level": ...},
    sizes={"level": -0.02})`.
    """

    first: str
    second: str
    both: str
    answers: Mapping[str, Answer]
    """Answers by the name of the question: a difference of differences, or for compute a ratio of ratios."""
    sizes: Mapping[str, float]
    """Sum of the effects together and apart, by question, in the unit of its intervals; the sign shows the direction of
    the changes."""

    @property
    def is_removal(self) -> bool:
        """True if both variants remove a choice, so that the interaction is one of the choices removed."""
        return self.first.startswith(LEFT_OUT) and self.second.startswith(LEFT_OUT)

    def word(self, question: str) -> str:
        """The interaction in words.

        Changes that do less together than apart do the same work; changes that do more need each other. The opposite
        holds for removed choices: if removing both costs more than the sum, either one does the work.
        """
        answer = self.answers[question]
        if answer.verdict not in (answer.question.higher, answer.question.lower):
            return {NO_DIFFERENCE: ADD_UP}.get(answer.verdict, CANNOT_TELL)
        does_more = (answer.verdict == answer.question.higher) == (self.sizes[question] > 0)
        return NEED_EACH_OTHER if does_more != self.is_removal else SAME_WORK

    @property
    def said(self) -> str:
        """The words for the decided questions, or for the first question if none is decided."""
        words = {name: self.word(name) for name in self.answers}
        decided: dict[str, list[str]] = {}
        for name, word in words.items():
            if word in (SAME_WORK, NEED_EACH_OTHER):
                decided.setdefault(word, []).append(name)
        return "; ".join(f"{', '.join(names)}: {word}" for word, names in decided.items()) or next(iter(words.values()))

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, with the keys of the questions."""
        words = {name: self.word(name) for name in self.answers}
        return {"first": self.first, "second": self.second, "both": self.both, "words": words} | answers_json(
            self.answers
        )


def interactions(
    fits: Mapping[str, Sequence[Fit]],
    reference: str,
    alone: Mapping[str, Mapping[str, Answer]],
    spreads: Mapping[str, RunToRun],
    compute: float | None = None,
) -> list[Interaction]:
    """Interactions of every pair of changes trained together, each alone, and neither; `alone` has the answers of each
    variant.

    Joint intervals hold for all pairs at once. `compute` is that of the comparison, which all runs of `fits` have
    reached; by default it is found from them.
    """
    found = [(both, *parts) for both in fits if (parts := parts_of(both, fits)) is not None and reference in fits]
    return [
        Interaction(
            first=first,
            second=second,
            both=both,
            answers=contrast_answers(
                [(1.0, fits[both]), (-1.0, fits[first]), (-1.0, fits[second]), (1.0, fits[reference])],
                spreads,
                comparisons=len(found),
                compute=compute,
            ),
            sizes={
                one.name: sum(one.scaled(alone[name][one.name].estimate) or 0.0 for name in (both, first, second))
                for one in QUESTIONS
            },
        )
        for both, first, second in found
    ]
