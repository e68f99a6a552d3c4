"""A search: proposes trials one after another, trains and fits each, and tells the sampler the result.

    until there are as many trials as requested:
        while fewer than `jobs` runs train: ask for a point, plan it as variant trial-000, trial-001, ..., train it
        when the runs of a trial have ended: fit them, compute the objective, tell the sampler

Trials and results are written to `search.json` before anything acts on them, and every start tells Optuna of it,
so a search killed at any moment resumes with its trials. If the recipe of a point is in the sweep already, there is no
new trial: the sampler is told that recipe's result and asked again.
"""

import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rich.console import Console

from ablations.errors import FileError
from ablations.home.plan import Plan, PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import read_state
from ablations.pools.pool import Pool
from ablations.search.objective import is_maximised, title, value, value_text
from ablations.search.record import SearchRecord, SearchTrial, empty_record
from ablations.status.live_table import LiveStatus, say
from ablations.status.notifier import Notifier
from ablations.status.progress import run_rows
from ablations.status.table import summary
from ablations.study.expand import TRIAL_PREFIX, Study, Variant, runs_of
from ablations.study.search_points import MAX_GRID_POINTS, Point, SearchSpace, point_text
from ablations.study.search_space import Search
from ablations.text import counted
from ablations.tracking.beside_a_sweep import Tracker

if TYPE_CHECKING:
    from ablations.search.optuna_study import OptunaStudy, Proposal

MAX_ASKS = 20
"""Number of known points that the sampler may propose in a row before a new one is drawn instead."""


@dataclass(frozen=True, kw_only=True)
class SearchState:
    """A search with its trials so far; each is a variant of the study and the plan, and an entry of the record."""

    study: Study
    sweep: StartedSweep
    record: SearchRecord
    last_number: int = -1
    """Highest number of any trial so far, including those outside the current space; names are not reused."""

    @property
    def plan(self) -> Plan:
        return self.sweep.plan

    @property
    def search(self) -> Search:
        """The `search:` block."""
        assert self.study.sweep.search is not None
        return self.study.sweep.search

    @property
    def space(self) -> SearchSpace:
        """The space of points that may be tried."""
        assert self.study.space is not None
        return self.study.space

    def with_new(self, trial: SearchTrial) -> "SearchState":
        """The state with one more trial; raises FileError if the recipe rejects its point."""
        recipe, settings = self.space.vary(trial.params)
        variant = Variant(name=trial.name, overrides=settings, recipe=recipe)
        runs = runs_of([variant], self.study.sweep.seeds)
        planned = PlannedVariant(
            name=trial.name,
            overrides=settings,
            runs=tuple(PlannedRun(seed=run.seed, id=run.id) for run in runs),
        )
        return replace(
            self,
            study=replace(self.study, variants=(*self.study.variants, variant), runs=(*self.study.runs, *runs)),
            sweep=replace(self.sweep, plan=replace(self.plan, variants=(*self.plan.variants, planned))),
            record=self.record.with_trial(trial),
            last_number=max(self.last_number, _number(trial)),
        )

    def twin(self, params: Point) -> str | None:
        """The variant with the recipe of this point; None if there is none."""
        wanted = self.space.vary(params)[0].canonical_json()
        return next((one.name for one in self.study.variants if one.recipe.canonical_json() == wanted), None)

    def planned(self, name: str) -> PlannedVariant:
        """The variant of this name in the plan."""
        return next(variant for variant in self.plan.variants if variant.name == name)

    def is_trained(self, name: str) -> bool:
        """True if every run of a variant has reached the budget."""
        states = (read_state(self.sweep.run(run.id), self.plan.budget_gpu_hours) for run in self.planned(name).runs)
        return all(one.state.is_finished for one in states)

    def next_name(self) -> str:
        """The name of the next trial: `trial-012` after `trial-011`."""
        return f"{TRIAL_PREFIX}{self.last_number + 1:03d}"


def _number(trial: SearchTrial) -> int:
    return int(trial.name.removeprefix(TRIAL_PREFIX))


def resume(study: Study, sweep: StartedSweep) -> SearchState:
    """The search with the recorded trials that the space still holds.

    A trial is reopened if the objective, the budget or the window has changed, or if one of its runs is not done; a
    failed trial is tried again, like every failed run of a sweep.
    """
    assert study.sweep.search is not None
    assert study.space is not None
    before = SearchRecord.read(sweep.folder)
    trials = before.trials if before else ()
    state = SearchState(
        study=study,
        sweep=sweep,
        record=empty_record(study.sweep.search, study.sweep.seeds, study.space, sweep.plan),
        last_number=max(map(_number, trials), default=-1),
    )
    for trial in trials:
        if not state.space.contains(trial.params):
            continue
        try:
            known = state.twin(trial.params)
        except FileError:  # the scale or the reference has changed since
            continue
        if known is not None:
            continue
        state = state.with_new(replace(trial, state="running", values=(), reason=""))
        if before and before.rests_on_the_same_as(state.record) and state.is_trained(trial.name):
            state = replace(state, record=state.record.with_trial(trial))
    return state


def prepare_search(state: SearchState) -> None:
    """Write the record before the plan with its trials: the search is not complete until its record is."""
    state.sweep.folder.mkdir(parents=True, exist_ok=True)
    state.record.write(state.sweep.folder)


def train_trials(state: SearchState, pool: Pool, jobs: int, tracker: Tracker, console: Console) -> None:
    """Train the reference and the trials, `jobs` runs at a time, and keep MLflow up to date."""
    from ablations.search.optuna_study import OptunaStudy  # loads Optuna

    maximised = [is_maximised(objective) for objective in state.search.objective]
    optuna = OptunaStudy(state.search, state.space, maximised)
    loop = TrialLoop(state=state, jobs=jobs, console=console, pool=pool, optuna=optuna)
    loop.start()
    notifier = Notifier(console)
    with LiveStatus(console) as progress, closing(pool.work()) as events:
        for event in events:
            if event:
                name = next(run.variant for run in loop.state.study.runs if run.id == event.run)
                say(console, f"{name}: {event.why}")
            loop.step()
            rows = progress.update(loop.state.sweep)
            notifier.look(loop.state.sweep, rows, now=event is not None)
            tracker.look(row.state for row in rows)
    rows = run_rows(loop.state.sweep)
    notifier.look(loop.state.sweep, rows, now=True)
    say(console, f"{state.plan.sweep}: {summary(loop.state.plan, rows)}")
    tracker.begin_last()


@dataclass(kw_only=True)
class TrialLoop:
    """The search while it runs."""

    state: SearchState
    jobs: int
    console: Console
    pool: Pool
    optuna: "OptunaStudy"
    _numbers: dict[str, int] = field(default_factory=dict)
    """Optuna's number of each trial."""

    def start(self) -> None:
        """Tell Optuna what is recorded, and hand every missing run to the pool."""
        record, budget_gpu_hours = self.state.record, self.state.plan.budget_gpu_hours
        numbers = self.optuna.start_from(record)
        self._numbers = {trial.name: number for trial, number in zip(record.trials, numbers, strict=True)}
        for run in self.state.study.runs:
            if not read_state(self.state.sweep.run(run.id), budget_gpu_hours).state.is_finished:
                self.pool.add(run.id, budget_gpu_hours)
        self.step()

    def step(self) -> None:
        """Finish the trials whose runs have ended, and plan new trials if there is room."""
        for trial in self.state.record.trials:
            runs = self.state.planned(trial.name).runs
            if trial.state == "running" and not any(self.pool.is_busy(run.id) for run in runs):
                self._end(trial)
        while self._has_room() and (asked := self._next()):
            self._plan(asked)

    def _has_room(self) -> bool:
        if self.state.record.is_exhausted or self.pool.cancelled.is_whole:
            return False
        num_busy = sum(self.pool.is_busy(run.id) for run in self.state.study.runs)
        return num_busy < self.jobs and len(self.state.record.trials) < self.state.search.trials

    def _plan(self, asked: "Proposal") -> None:
        """Record a trial, then train it."""
        name, plan = self.state.next_name(), self.state.plan
        self.state = self.state.with_new(SearchTrial(name=name, params=asked.params))
        self._numbers[name] = asked.number
        self.state.record.write(self.state.sweep.folder)
        self.state.sweep.write_plan()
        for run in self.state.study.runs:
            if run.variant == name:
                self.state.sweep.run(run.id).create(run.recipe, run.seed)
                self.pool.add(run.id, plan.budget_gpu_hours)
        self._say(f"{name}: {point_text(asked.params)}")

    def _end(self, trial: SearchTrial) -> None:
        """Record the result of a trial, then tell the sampler."""
        if self.state.is_trained(trial.name):
            values, reason = self._evaluate(trial.name)
        elif self.pool.cancelled.is_whole:
            return
        else:
            values, reason = None, self._why_not_done(trial.name)
        done = replace(trial, state="failed" if values is None else "done", values=values or (), reason=reason)
        self.state = replace(self.state, record=self.state.record.with_trial(done))
        self.state.record.write(self.state.sweep.folder)
        self.optuna.tell(self._numbers[trial.name], None if values is None else self.state.record.told(done))
        self._say(f"{trial.name} failed: {reason}" if values is None else f"{trial.name}: {self._values_text(values)}")

    def _evaluate(self, name: str) -> tuple[tuple[float | None, ...] | None, str]:
        """The objectives of a variant whose runs are done; or None with the reason."""
        from ablations.findings.results import read_results

        plan = replace(self.state.plan, variants=(self.state.planned(name),))
        (variant,) = read_results(replace(self.state.sweep, plan=plan)).variants
        if variant.reasons:
            return None, "; ".join(variant.reasons)
        unit = plan.compute_unit_gpu_hours
        return tuple(value(objective, variant.fits, unit) for objective in self.state.search.objective), ""

    def _why_not_done(self, name: str) -> str:
        reasons = []
        for run in self.state.planned(name).runs:
            state = read_state(self.state.sweep.run(run.id), self.state.plan.budget_gpu_hours)
            if not state.state.is_finished:
                command = f"platform logs {run.id}{self.state.sweep.home.end_of_command}"
                because = state.message or f"the process was killed; to see its output, run `{command}`"
                reasons.append(f"seed {run.seed}: {because}")
        return "; ".join(reasons)

    def _next(self) -> "Proposal | None":
        """The next point whose recipe is new; None if no point is left."""
        for asked in self._proposals():
            try:
                twin = self.state.twin(asked.params)
            except FileError:  # between two valid ends, a range may hold an invalid value
                self.optuna.tell(asked.number, None)
                continue
            if twin is None:
                return asked
            self.optuna.tell(asked.number, self._told(twin))
        record = replace(self.state.record, is_exhausted=True)
        self.state = replace(self.state, record=record)
        record.write(self.state.sweep.folder)
        self._say(f"the space has no more recipes; the search ends after {counted(len(record.trials), 'trial')}")
        return None

    def _proposals(self) -> Iterator["Proposal"]:
        if self.state.search.sampler != "grid":
            for _ in range(MAX_ASKS):
                yield self.optuna.ask()
        num_points = self.state.space.num_points
        if num_points is not None and num_points <= MAX_GRID_POINTS:
            for point in self._unknown_points():
                yield self.optuna.put(point)

    def _unknown_points(self) -> Iterator[Point]:
        """The untried points of a small space, in an order given by the search's seed."""
        points = list(self.state.space.points())
        random.Random(self.state.search.seed).shuffle(points)
        return (point for point in points if self.state.twin(point) is None)

    def _told(self, name: str) -> tuple[float, ...] | None:
        """The values to report to the sampler for a point that a variant has tried; None if unknown."""
        trial = next((one for one in self.state.record.trials if one.name == name), None)
        if trial is not None:
            return self.state.record.told(trial) if trial.state == "done" else None
        if not self.state.is_trained(name):
            return None
        values, _ = self._evaluate(name)
        return None if values is None else self.state.record.told(SearchTrial(name=name, params={}, values=values))

    def _values_text(self, values: tuple[float | None, ...]) -> str:
        pairs = zip(self.state.search.objective, values, strict=True)
        return ", ".join(f"{title(objective)} {value_text(objective, found)}" for objective, found in pairs)

    def _say(self, text: str) -> None:
        say(self.console, f"{self.state.plan.sweep}: {text}")
