"""Optuna behind four operations: ask, put, tell, and importances. No other file uses Optuna.

Optuna holds nothing of its own: `optuna.db` is built from the search's record, compared with it at every start, and
rebuilt if lost, broken or of another search. Two properties of Optuna are worked around. A sampler draws the same
numbers again after a restart, so every question gets a sampler with its own seed. Optuna's grid sampler proposes a cell
a second time while its first trial runs, and ends a study by raising (optuna/optuna#4121), so grid points are put here
one by one.

Only CMA-ES has a memory, its distribution, in `optuna.db`; without the file it restarts from the middle of the space.
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
from ablations.search.record import SearchRecord, SearchTrial
from ablations.study.search_points import Choice, Point, Range, SearchSpace
from ablations.study.search_space import Dimension, Search

STUDY_NAME = "search"
MAX_RANDOM_TRIALS = 10
BROKEN = (OptunaError, SQLAlchemyError, RuntimeError, ValueError, KeyError)
"""Exceptions from a broken file or one of another Optuna version; some damage shows only when trials are read."""
optuna.logging.set_verbosity(optuna.logging.WARNING)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A trial with Optuna's number: `Proposal(number=4, params={"batch.prompts": 16})`."""

    number: int
    params: Point


class OptunaStudy:
    """The Optuna study of one search, in an SQLite file with this process as its only writer."""

    def __init__(self, path: Path, search: Search, space: SearchSpace, maximised: Sequence[bool]) -> None:
        self._path, self._search = path, search
        self._distributions = {one.name: _distribution(one) for one in space.dimensions}
        self._directions = [StudyDirection.MAXIMIZE if up else StudyDirection.MINIMIZE for up in maximised]
        self._study: optuna.Study
        """Opened by `agree`, which comes first."""

    def agree(self, record: SearchRecord) -> list[int]:
        """Make the study hold the trials of the record in their states; returns their numbers.

        Trials that the study lacks are added. If the study contradicts them, or its file breaks, it is rebuilt.
        """
        try:
            self._study = self._open()
            return self._agreed(record)
        except BROKEN:
            self._study = self._open_anew()
            return self._agreed(record)

    def _agreed(self, record: SearchRecord) -> list[int]:
        if not self._could_become(record):
            self._study = self._open_anew()
        trials, numbers = self._trials_by_point(), []
        for one in record.trials:
            trial = trials.get(_key(one.params))
            numbers.append(self.put(one.params).number if trial is None else trial.number)
            if one.state != "running" and (trial is None or not trial.state.is_finished()):
                self.tell(numbers[-1], _values(record, one))
        return numbers

    def unanswered(self, record: SearchRecord) -> list[Proposal]:
        """Trials proposed before this process started that are in no record; incomplete ones are failed."""
        left, known = [], [one.params for one in record.trials]
        for trial in self._study.get_trials(states=(TrialState.RUNNING,)):
            if set(trial.params) != set(self._distributions):
                self.tell(trial.number, None)
            elif trial.params not in known:
                left.append(Proposal(number=trial.number, params=trial.params))
        return left

    def ask(self) -> Proposal:
        """A point proposed by the sampler; its trial counts as running until `tell`."""
        self._study.sampler = self._sampler(len(self._trials()))
        trial = self._study.ask(self._distributions)
        return Proposal(number=trial.number, params=trial.params)

    def put(self, params: Point) -> Proposal:
        """Add a point that the sampler has not proposed."""
        self._study.add_trial(
            optuna.trial.create_trial(state=TrialState.RUNNING, params=dict(params), distributions=self._distributions)
        )
        return Proposal(number=len(self._trials()) - 1, params=params)

    def tell(self, number: int, values: tuple[float, ...] | None) -> None:
        """Tell the study the values of a trial; None if the trial failed."""
        if values is None:
            self._study.tell(number, state=TrialState.FAIL)
        else:
            self._study.tell(number, list(values))

    def _trials(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _trials_by_point(self) -> dict[Hashable, FrozenTrial]:
        """The first trial at each point; any later one is a duplicate."""
        return {_key(trial.params): trial for trial in reversed(self._trials())}

    def _could_become(self, record: SearchRecord) -> bool:
        """True if the study contradicts nothing in the record, so that adding the missing trials is enough."""
        if self._study.directions != self._directions:
            return False
        if any(trial.distributions.items() - self._distributions.items() for trial in self._trials()):
            return False
        trials = self._trials_by_point()
        return all(
            one.state != "running" and (trial.values and tuple(trial.values)) == _values(record, one)
            for one in record.trials
            if (trial := trials.get(_key(one.params))) is not None and trial.state.is_finished()
        )

    def _open_anew(self) -> optuna.Study:
        for path in (self._path, self._path.with_name(f"{self._path.name}-journal")):
            path.unlink(missing_ok=True)
        return self._open()

    def _open(self) -> optuna.Study:
        storage = optuna.storages.RDBStorage(sqlite_url(self._path))
        return optuna.create_study(
            storage=storage, study_name=STUDY_NAME, directions=self._directions, load_if_exists=True
        )

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
                return CmaEsSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)
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


def _key(params: Mapping[str, float | str]) -> Hashable:
    return frozenset(params.items())


def _values(record: SearchRecord, trial: SearchTrial) -> tuple[float, ...] | None:
    return record.told(trial) if trial.state == "done" else None
