"""Optuna behind four operations: ask, put, tell, and importances. No other file uses Optuna.

The study is in memory, and every start puts the trials of the search's record into it. Two properties of Optuna are
worked around. A sampler draws the same numbers again after a restart, so every question gets a sampler with its own
seed. Optuna's grid sampler proposes a cell a second time while its first trial runs, and ends a study by raising
(optuna/optuna#4121), so grid points are put here one by one.

Only CMA-ES has a memory, its distribution; a new start makes one of the best recorded trials (arXiv 2012.06932).
"""

import random
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from ablations.search.record import SearchRecord
from ablations.study.search_points import Choice, Point, Range, SearchSpace
from ablations.study.search_space import Dimension, Search

MAX_RANDOM_TRIALS = 10
LEAST_TO_WARM = 10
"""Recorded trials from which CMA-ES starts: it takes the best tenth of them."""
optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A trial with Optuna's number: `Proposal(number=4, params={"batch.prompts": 16})`."""

    number: int
    params: Point


class OptunaStudy:
    """The Optuna study of one search, in memory."""

    def __init__(self, search: Search, space: SearchSpace, maximised: Sequence[bool]) -> None:
        self._search = search
        self._distributions = {one.name: _distribution(one) for one in space.dimensions}
        directions = [StudyDirection.MAXIMIZE if up else StudyDirection.MINIMIZE for up in maximised]
        self._study = optuna.create_study(directions=directions)
        self._recorded: list[FrozenTrial] = []
        """The trials that were complete at the start."""

    def start_from(self, record: SearchRecord) -> list[int]:
        """Put the trials of the record into the study; returns their numbers."""
        numbers = []
        for one in record.trials:
            numbers.append(self.put(one.params).number)
            if one.state != "running":
                self.tell(numbers[-1], record.told(one) if one.state == "done" else None)
        self._recorded = self._study.get_trials(states=(TrialState.COMPLETE,))
        return numbers

    def ask(self) -> Proposal:
        """A point proposed by the sampler; its trial counts as running until `tell`."""
        self._study.sampler = self._sampler(len(self._study.trials))
        trial = self._study.ask(self._distributions)
        return Proposal(number=trial.number, params=trial.params)

    def put(self, params: Point) -> Proposal:
        """Add a point that the sampler has not proposed."""
        self._study.add_trial(
            optuna.trial.create_trial(state=TrialState.RUNNING, params=dict(params), distributions=self._distributions)
        )
        return Proposal(number=len(self._study.trials) - 1, params=params)

    def tell(self, number: int, values: tuple[float, ...] | None) -> None:
        """Tell the study the values of a trial; None if the trial failed."""
        if values is None:
            self._study.tell(number, state=TrialState.FAIL)
        else:
            self._study.tell(number, list(values))

    def _sampler(self, num_asked: int) -> BaseSampler:
        """Optuna's sampler for one question, with a seed of its own."""
        seed = random.Random(f"{self._search.seed} {num_asked}").getrandbits(32)
        # Of 12 trials Optuna would draw the first 10 at random.
        num_random = max(1, min(MAX_RANDOM_TRIALS, self._search.trials // 3))
        match self._search.sampler:
            case "tpe":
                return TPESampler(seed=seed, n_startup_trials=num_random)
            case "gp":
                return GPSampler(seed=seed, n_startup_trials=num_random)
            case "cmaes":
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ExperimentalWarning)  # of source_trials
                    return CmaEsSampler(
                        seed=seed,
                        n_startup_trials=1,
                        warn_independent_sampling=False,
                        source_trials=self._recorded if len(self._recorded) >= LEAST_TO_WARM else None,
                    )
            case "random" | "grid":
                return RandomSampler(seed=seed)


LEAST_TRIALS = 4
"""Minimum number of done trials for importances; fewer are meaningless."""
ENOUGH_TRIALS = 50
"""Number of finished trials whose best tenth has the five trials that Optuna recommends; with fewer, importances are
rough."""


def importances(
    dimensions: Mapping[str, Dimension], points: Sequence[Point], values: Sequence[float], *, is_maximised: bool
) -> dict[str, float]:
    """Importance of each setting in separating the best tenth of the trials from all, largest first; sums to 1.

    PED-ANOVA (arXiv 2304.10255), Optuna's default. Empty for fewer than LEAST_TRIALS points, for equal values, or for
    identical points. A setting that was the same in every trial gets 0, because Optuna's estimate would reflect only
    the number of trials.
    """
    varied = {name: one for name, one in dimensions.items() if len({point[name] for point in points}) > 1}
    if len(points) < LEAST_TRIALS or len(set(values)) == 1 or not varied:
        return {}
    spread = {name: _spread_of(one, [point[name] for point in points]) for name, one in varied.items()}
    study = optuna.create_study(direction=StudyDirection.MAXIMIZE if is_maximised else StudyDirection.MINIMIZE)
    for point, found in zip(points, values, strict=True):
        params = {
            name: point[name] if isinstance(own, FloatDistribution) else str(point[name])
            for name, own in spread.items()
        }
        study.add_trial(optuna.trial.create_trial(params=params, distributions=spread, value=found))
    found = optuna.importance.get_param_importances(study)
    return found | {name: 0.0 for name in dimensions if name not in varied}


def _spread_of(dimension: Dimension, tried: Sequence[int | float | str]) -> BaseDistribution:
    """The distribution of a setting; for choices, of the labels that were tried."""
    if dimension.low is None or dimension.high is None:
        return CategoricalDistribution(sorted({str(label) for label in tried}))
    return FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def _distribution(dimension: Range | Choice) -> BaseDistribution:
    if not isinstance(dimension, Range):
        return CategoricalDistribution(tuple(dimension.values()))
    if dimension.is_integer:
        step = 1 if dimension.log else int(dimension.step or 1)
        return IntDistribution(int(dimension.low), int(dimension.high), log=dimension.log, step=step)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.log, step=dimension.step)
