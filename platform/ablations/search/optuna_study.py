"""Optuna behind four words: ask, put, tell, and importances. The only file that knows it.

Optuna holds nothing of its own: `optuna.db` is made from the search's record, is compared with it at every start, and
made again when it is lost, broken or of another search. Two things of Optuna's are kept out. A sampler draws the same
numbers again after a restart, so each question gets a sampler of its own seed. And Optuna's own sampler for grids asks
for a cell a second time while the first trial of it runs, and ends a study by raising (optuna/optuna#4121), so the
points of a grid are put here one by one.

CMA-ES alone has a memory, its distribution, in `optuna.db`: with the file it begins again from the middle of the space.
"""

import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import OptunaError
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, RandomSampler, TPESampler
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from ablations.files.database import sqlite_url
from ablations.study.search_points import Choice, Point, Range, SearchSpace
from ablations.study.search_space import Dimension, SamplerName, Search

STUDY_NAME = "search"
MAX_RANDOM_TRIALS = 10
BROKEN = (OptunaError, SQLAlchemyError, RuntimeError, ValueError, KeyError)
"""What a broken file raises, or one of another version of Optuna; some damage shows only when trials are read."""
optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A trial as Optuna numbers it: `Proposal(number=4, params={"batch.prompts": 16})`."""

    number: int
    params: Point


@dataclass(frozen=True, kw_only=True)
class Known:
    """What the record has of a trial; a finished one that failed has no values."""

    params: Point
    is_finished: bool
    values: tuple[float, ...] | None


class OptunaStudy:
    """The study of one search, in a SQLite file with this process as its only writer."""

    def __init__(self, path: Path, search: Search, space: SearchSpace, maximised: Sequence[bool]) -> None:
        self._path, self._search = path, search
        self._distributions = {one.name: _distribution(one) for one in space.dimensions}
        self._directions = [StudyDirection.MAXIMIZE if up else StudyDirection.MINIMIZE for up in maximised]
        self._study = self._open()

    def agree(self, known: Sequence[Known]) -> list[int]:
        """Make the study hold these trials in these states; gives their numbers.

        What the study lacks it is told; when it says otherwise, or its file breaks on the way, it is made again.
        """
        try:
            return self._agreed(known)
        except BROKEN:
            self._study = self._open_anew()
            return self._agreed(known)

    def _agreed(self, known: Sequence[Known]) -> list[int]:
        if not self._could_become(known):
            self._study = self._open_anew()
        trials, numbers = self._trials_by_point(), []
        for one in known:
            trial = trials.get(_key(one.params))
            numbers.append(self.put(one.params).number if trial is None else trial.number)
            if one.is_finished and (trial is None or not trial.state.is_finished()):
                self.tell(numbers[-1], one.values)
        return numbers

    def unanswered(self, known: Sequence[Point]) -> list[Proposal]:
        """Trials that were asked before this process and are in no record; what was cut off in the asking is failed."""
        left = []
        for trial in self._study.get_trials(states=(TrialState.RUNNING,)):
            if set(trial.params) != set(self._distributions):
                self.tell(trial.number, None)
            elif trial.params not in known:
                left.append(Proposal(number=trial.number, params=trial.params))
        return left

    def ask(self) -> Proposal:
        """The point that the sampler proposes; it counts as running until it is told."""
        self._study.sampler = self._sampler(len(self._trials()))
        trial = self._study.ask(self._distributions)
        return Proposal(number=trial.number, params=trial.params)

    def put(self, params: Point) -> Proposal:
        """A point that is tried without the sampler having asked."""
        self._study.add_trial(
            optuna.trial.create_trial(state=TrialState.RUNNING, params=dict(params), distributions=self._distributions)
        )
        return Proposal(number=len(self._trials()) - 1, params=params)

    def tell(self, number: int, values: tuple[float, ...] | None) -> None:
        """What came of a trial; None when it failed."""
        if values is None:
            self._study.tell(number, state=TrialState.FAIL)
        else:
            self._study.tell(number, list(values))

    def _trials(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _trials_by_point(self) -> dict[Hashable, FrozenTrial]:
        """The first trial at each point; later ones were asked twice."""
        return {_key(trial.params): trial for trial in reversed(self._trials())}

    def _could_become(self, known: Sequence[Known]) -> bool:
        """Whether telling more is enough: nothing that the study has been told contradicts the record."""
        if self._study.directions != self._directions:
            return False
        if any(trial.distributions.items() - self._distributions.items() for trial in self._trials()):
            return False
        trials = self._trials_by_point()
        return all(_agrees(trials[_key(one.params)], one) for one in known if _key(one.params) in trials)

    def _open(self) -> optuna.Study:
        try:
            return self._load()
        except BROKEN:
            return self._open_anew()

    def _open_anew(self) -> optuna.Study:
        for path in (self._path, self._path.with_name(f"{self._path.name}-journal")):
            path.unlink(missing_ok=True)
        return self._load()

    def _load(self) -> optuna.Study:
        storage = optuna.storages.RDBStorage(sqlite_url(self._path))
        return optuna.create_study(
            storage=storage, study_name=STUDY_NAME, directions=self._directions, load_if_exists=True
        )

    def _sampler(self, num_asked: int) -> BaseSampler:
        seed = random.Random(f"{self._search.seed} {num_asked}").getrandbits(32)
        # Of 12 trials Optuna would draw the first 10 blindly.
        num_random = max(1, min(MAX_RANDOM_TRIALS, self._search.trials // 3))
        return make_sampler(self._search.sampler, seed, num_random)


def make_sampler(name: SamplerName, seed: int, num_random: int) -> BaseSampler:
    """Optuna's sampler of this name, which proposes the first `num_random` points blindly."""
    match name:
        case "tpe":
            return TPESampler(seed=seed, n_startup_trials=num_random)
        case "gp":
            return GPSampler(seed=seed, n_startup_trials=num_random)
        case "cmaes":
            return CmaEsSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)
        case "random" | "grid":
            return RandomSampler(seed=seed)


LEAST_TRIALS = 4
"""Done trials that importances need; of fewer they say nothing."""
ENOUGH_TRIALS = 50
"""Done trials of which five are among the best tenth, which Optuna asks for; of fewer importances are rough."""


def importances(
    dimensions: Mapping[str, Dimension], points: Sequence[Point], values: Sequence[float], *, is_maximised: bool
) -> dict[str, float]:
    """How far each setting tells the best tenth of the trials from all, largest first; sums to 1.

    PED-ANOVA (arXiv 2304.10255), Optuna's default. Empty for fewer than LEAST_TRIALS points, equal values, or points
    that are all the same. A setting that was the same in every trial has 0: Optuna's estimate would be one of how many
    trials there are.
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
    """What may be tried; choices by the labels that were."""
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


def _key(params: Mapping[str, float | str]) -> Hashable:
    return frozenset(params.items())


def _agrees(trial: FrozenTrial, known: Known) -> bool:
    if not trial.state.is_finished():
        return True
    told = None if trial.values is None else tuple(trial.values)
    return known.is_finished and told == known.values
