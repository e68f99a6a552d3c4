"""A total of compute shared out in rounds: successive halving on what the posteriors of A leave open.

    round 0    every run gets an equal share, a quarter of total / runs, and at least enough for a first fit
    round n    the reference and the wider half of the runs whose rank is open get one more slice

A variant's rank is open while P(its ceiling lies above the reference's) is between 0.05 and 0.95. A run whose ceiling
is known better than two runs of one recipe agree gets nothing more, and none gets more than the budget of a run.
Slices end on the grid of evaluations, so that each buys readings.

A round is decided when the last one has been trained. `ablations.home.allocation` has what was decided, on disk.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ablations.home.allocation import Extension
from ablations.text import counted
from scalerl.recipe import ResolvedRecipe

FIRST_SHARE = 0.25
"""Part of an equal split that every run gets before anything is decided."""
FIRST_EVALUATIONS = 8
"""Fewest evaluations of the first share; a fit needs six."""
DECIDED_PROBABILITY = 0.95
"""A rank is decided when it is this probable, either way."""
NARROW = 0.03
"""An interval of A as narrow as that of the run-to-run spread itself, 2 x 1.96 x 0.0075 (`verdict.run_to_run`)."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A run that may get more, and what its readings leave open.

    Candidate(run="81d2f0a95c3b", name="loo-loss, seed 0", reached=4260.0, most=16000.0, width=0.11, above=0.62)
    """

    run: str
    name: str
    reached: float
    """GPU-hours it has been given and has trained, or more that another sweep has trained since."""
    most: float
    """The budget of a run."""
    width: float | None
    """Of the 95 % interval of A; up to 1 where the interval has no upper end; None without a fit."""
    above: float | None
    """P(the variant's ceiling lies above the reference's); None where either has no fit, and for the reference."""
    is_reference: bool = False

    @property
    def openness(self) -> float:
        """How much is open: the width, and more than any width where there is no fit."""
        return math.inf if self.width is None else self.width

    @property
    def is_narrow(self) -> bool:
        """Whether its ceiling is known as well as runs of one recipe agree."""
        return self.openness <= NARROW

    @property
    def may_grow(self) -> bool:
        """Whether more compute is allowed and would tell something."""
        return self.reached < self.most and not self.is_narrow

    @property
    def is_open(self) -> bool:
        """Whether its rank against the reference is not clear."""
        return not (self.is_reference or self.is_decided)

    @property
    def is_decided(self) -> bool:
        """Whether its variant's rank is clear."""
        return self.above is not None and max(self.above, 1 - self.above) >= DECIDED_PROBABILITY

    def standing(self) -> str:
        """What is known of the run and why it may get more: `rank open, P(above the reference) 0.62; ...`."""
        width = "no fit yet" if self.width is None else f"A's interval {self.width:.3f} wide"
        if self.is_reference:
            rank = "reference, every rank depends on it"
        elif self.above is None:
            rank = "rank unknown"
        else:
            rank = f"rank {'decided' if self.is_decided else 'open'}, P(above the reference) {self.above:.2f}"
        limit = "; at the budget of a run" if self.reached >= self.most else "; narrow enough" if self.is_narrow else ""
        return f"{rank}; {width}{limit}"


@dataclass(frozen=True, kw_only=True)
class EvaluationGrid:
    """Where runs may stop: GPU-hours between two evaluations and, in multiples of that, the slice of a round."""

    every: float
    slice_evaluations: int

    def floor(self, compute: float) -> float:
        """The last evaluation point up to `compute`; rounding errors of a multiple are forgiven."""
        return math.floor(compute / self.every + 1e-9) * self.every

    def reached(self, compute: float, most: float) -> float:
        """The last evaluation point up to `compute`, or the budget of a run where that is trained."""
        return most if compute >= most else self.floor(compute)


def evaluation_gpu_hours(recipe: ResolvedRecipe) -> float:
    """GPU-hours between two evaluations."""
    return recipe.evaluation.every * recipe.compute_unit_gpu_hours


def least_share(*, every: float, fit_from: float) -> float:
    """GPU-hours that every run must get for a first fit: 8 evaluations beyond those left out of it."""
    return (math.floor(fit_from / every + 1e-9) + FIRST_EVALUATIONS) * every


def equal_share(total: float, num_runs: int, *, every: float) -> int:
    """Evaluations in a quarter of an equal split, at least one."""
    return max(1, math.floor(FIRST_SHARE * total / num_runs / every + 1e-9))


@dataclass(frozen=True, kw_only=True)
class Newcomer:
    """A run that has been given nothing yet: `Newcomer(run="81d2f0a95c3b", name="loo-loss, seed 0", trained=0.0)`."""

    run: str
    name: str
    trained: float
    """GPU-hours it was trained to before, for other sweeps: those are free."""


def least_of_first_round(new: Sequence[Newcomer], *, most: float, least: float, grid: EvaluationGrid) -> float:
    """GPU-hours without which one of the runs would have too few readings to be judged by."""
    return sum(max(0.0, min(most, least) - grid.reached(one.trained, most)) for one in new)


def first_round(
    new: Sequence[Newcomer], left: float, *, most: float, least: float, grid: EvaluationGrid
) -> list[Extension]:
    """An equal share of the `left` GPU-hours for every run."""
    equal = min(grid.slice_evaluations * grid.every, grid.floor(left / len(new)))
    share, first = min(most, max(least, equal)), []
    for one in new:
        start = grid.reached(one.trained, most)
        to = max(start, min(share, start + grid.floor(left)))
        left -= to - start
        why = "first share, the same for every run"
        first.append(Extension(run=one.run, name=one.name, start=start, to=to, why=why))
    return first


def next_round(candidates: Sequence[Candidate], left: float, *, grid: EvaluationGrid) -> list[Extension]:
    """Who gets one more slice of the `left` GPU-hours: the reference, then the wider half of the runs still open.

    Empty when no rank is open, when nobody open may get more, or when not even one evaluation is left.
    """
    is_any_open = any(one.is_open for one in candidates)
    references = [one for one in candidates if one.is_reference and one.may_grow and is_any_open]
    widest_first = sorted((one for one in candidates if one.is_open and one.may_grow), key=lambda one: -one.openness)
    chosen = [*references, *widest_first[: math.ceil(len(widest_first) / 2)]]
    extensions = []
    for one in chosen:
        to = min(one.most, one.reached + min(grid.slice_evaluations * grid.every, grid.floor(left)))
        if to > one.reached:
            left -= to - one.reached
            extensions.append(Extension(run=one.run, name=one.name, start=one.reached, to=to, why=one.standing()))
    return extensions


def standings(candidates: Sequence[Candidate]) -> dict[str, str]:
    """What is known of every candidate, by run."""
    return {one.run: one.standing() for one in candidates}


def why_closed(candidates: Sequence[Candidate], left: str, *, num_untrained: int = 0) -> str:
    """Why no round follows, with the compute that is `left` in words. Untrained runs failed or were killed."""
    num_open = sum(one.is_open for one in candidates)
    rank = f"the rank of {counted(num_open, 'run')} is open"
    if num_open == 0:
        why = f"every rank is decided; {left} are left"
    elif any(one.may_grow for one in candidates if one.is_open):
        why = f"the total is spent; {rank}"
    else:
        why = f"{rank}, but none may get more; {left} are left"
    if num_untrained:
        why += f"; {counted(num_untrained, 'run')} {'is' if num_untrained == 1 else 'are'} not trained"
    return why
