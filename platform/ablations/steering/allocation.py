"""A total of compute shared out in rounds: successive halving on what the posteriors of A leave open.

    round 0    every run gets an equal share, a quarter of total / runs, and at least enough for a first fit
    round n    the reference and the wider half of the runs whose rank is open get one more slice

A variant's rank is open while P(its ceiling lies above the reference's) is between 0.05 and 0.95. A run whose ceiling
is known better than two runs of one recipe agree gets nothing more, and none gets more than the budget of a run.
Slices end on the grid of evaluations, so that each buys readings.

`allocation.json` in the sweep's folder holds every round with its reasons. It is written before a round is trained, and
a round is decided when the last one has been trained, so a sweep killed at any moment goes on with the same decisions.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter

from ablations.counted import counted
from ablations.errors import AblationsError
from ablations.written import checked
from scalerl.recipe import ResolvedRecipe
from scalerl.run_folder import write_atomically

FILE_NAME = "allocation.json"
FIRST_SHARE = 0.25
"""Part of an equal split that every run gets before anything is decided."""
FIRST_EVALUATIONS = 8
"""Fewest evaluations of the first share; a fit needs six."""
DECIDED = 0.95
"""A rank is decided when it is this probable, either way."""
NARROW = 0.03
"""An interval of A as narrow as that of the run-to-run spread itself, 2 x 1.96 TAU (see `ablations.compare`)."""


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
        return self.above is not None and max(self.above, 1 - self.above) >= DECIDED

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
class Extension:
    """One run's part of a round.

    Extension(run="81d2f0a95c3b", name="loo-loss, seed 0", start=4260.0, to=8520.0, why="rank open, ...")
    """

    run: str
    name: str
    """Kept, since the run may have left the sweep file."""
    start: float
    """GPU-hours it had."""
    to: float
    """GPU-hours it trains to."""
    why: str


@dataclass(frozen=True, kw_only=True)
class Grid:
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


def least_of_first_round(new: Sequence[Newcomer], *, most: float, least: float, grid: Grid) -> float:
    """GPU-hours without which one of the runs would have too few readings to be judged by."""
    return sum(max(0.0, min(most, least) - grid.reached(one.trained, most)) for one in new)


def first_round(new: Sequence[Newcomer], left: float, *, most: float, least: float, grid: Grid) -> list[Extension]:
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


def next_round(candidates: Sequence[Candidate], left: float, *, grid: Grid) -> list[Extension]:
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


@dataclass(frozen=True, kw_only=True)
class Round:
    """What was decided at once: who trains on, and how every candidate stood, by run."""

    extensions: tuple[Extension, ...]
    standings: dict[str, str]


def _standings(candidates: Sequence[Candidate]) -> dict[str, str]:
    return {one.run: one.standing() for one in candidates}


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """All rounds so far: `Allocation(total_gpu_hours=80000.0, rounds=(Round(...),), finished="")`."""

    total_gpu_hours: float
    rounds: tuple[Round, ...] = ()
    finished: str = ""
    """Why no further round follows; empty while one may."""
    closing: dict[str, str] = field(default_factory=dict)
    """How every candidate stood when the last round was over."""

    @property
    def allotted(self) -> dict[str, float]:
        """GPU-hours that each run is trained to."""
        return {one.run: one.to for round_ in self.rounds for one in round_.extensions}

    @property
    def bought(self) -> dict[str, float]:
        """GPU-hours that each run got from the total."""
        spent: dict[str, float] = {}
        for round_ in self.rounds:
            for one in round_.extensions:
                spent[one.run] = spent.get(one.run, 0.0) + one.to - one.start
        return spent

    def left(self, unused: float = 0.0) -> float:
        """GPU-hours of the total not given out, `unused` being those that stopped runs gave back."""
        # Sums of slices are off by rounding errors, which must not read as compute.
        return max(0.0, round(self.total_gpu_hours - sum(self.bought.values()) + unused, 9))

    def with_round(self, extensions: Sequence[Extension], candidates: Sequence[Candidate] = ()) -> "Allocation":
        """One round more, with how the candidates stood when it was decided."""
        round_ = Round(extensions=tuple(extensions), standings=_standings(candidates))
        return replace(self, rounds=(*self.rounds, round_), finished="", closing={})

    def closed(self, candidates: Sequence[Candidate], left: float, *, num_untrained: int = 0) -> "Allocation":
        """No round more: how the candidates stand, and why that is all. Untrained runs failed or were killed."""
        num_open = sum(one.is_open for one in candidates)
        rank = f"the rank of {counted(num_open, 'run')} is open"
        if num_open == 0:
            why = f"every rank is decided; {left:.4g} GPU-hours are left"
        elif any(one.may_grow for one in candidates if one.is_open):
            why = f"the total is spent; {rank}"
        else:
            why = f"{rank}, but none may get more; {left:.4g} GPU-hours are left"
        if num_untrained:
            why += f"; {counted(num_untrained, 'run')} {'is' if num_untrained == 1 else 'are'} not trained"
        return self.closed_because(why, candidates)

    def closed_because(self, why: str, candidates: Sequence[Candidate]) -> "Allocation":
        """No round more, for a reason that the candidates do not show."""
        return replace(self, finished=why, closing=_standings(candidates))

    def last_word(self, run: str) -> str:
        """The last reason written down for a run."""
        written = (*(one.standings for one in self.rounds), self.closing)
        return next((standings[run] for standings in reversed(written) if run in standings), "first share")


_WRITTEN = TypeAdapter(Allocation)


def read_allocation(sweep: Path, total_gpu_hours: float) -> Allocation:
    """The rounds of a sweep with the total as it now is; none before the first."""
    path = sweep / FILE_NAME
    try:
        content = json.loads(path.read_bytes())
        rounds = tuple(
            Round(
                extensions=tuple(
                    Extension(run=one["run"], name=one["name"], start=one["from"], to=one["to"], why=one["why"])
                    for one in round_["extensions"]
                ),
                standings=dict(round_["standings"]),
            )
            for round_ in content["rounds"]
        )
        written = Allocation(
            total_gpu_hours=content["total_gpu_hours"],
            rounds=rounds,
            finished=content["finished"],
            closing=content["closing"],
        )
        checked(asdict(written), _WRITTEN)
    except FileNotFoundError:
        return Allocation(total_gpu_hours=total_gpu_hours)
    except (ValueError, KeyError, TypeError) as error:
        raise AblationsError(
            f"{path}: not a list of rounds ({error}); delete it, and `platform sweep` shares a whole total out anew, "
            "on top of what is trained"
        ) from error
    if written.total_gpu_hours == total_gpu_hours:
        return written
    return replace(written, total_gpu_hours=total_gpu_hours, finished="", closing={})


def write_allocation(sweep: Path, allocation: Allocation) -> None:
    """Replace the file in one step."""
    rounds = [
        {
            "round": number,
            "extensions": [
                {"run": one.run, "name": one.name, "from": one.start, "to": one.to, "why": one.why}
                for one in round_.extensions
            ],
            "standings": round_.standings,
        }
        for number, round_ in enumerate(allocation.rounds)
    ]
    content = {
        "total_gpu_hours": allocation.total_gpu_hours,
        "finished": allocation.finished,
        "closing": allocation.closing,
        "rounds": rounds,
    }
    write_atomically(sweep / FILE_NAME, json.dumps(content, indent=1).encode())
