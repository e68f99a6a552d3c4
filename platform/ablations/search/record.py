"""`search.json`: the planned and finished trials of a search, kept outside Optuna.

{"sampler": "tpe", "seed": 0, "num_trials": 12, "seeds": [0], "space": {"batch.prompts": "8 to 32, step 8"},
 "objectives": [{"type": "asymptote", "of": "lower"}],
 "budget_gpu_hours": 2000.0, "fit_from_gpu_hours": 0.0, "fit_to_gpu_hours": 2000.0,
 "fit": {"r0": "anchored", "loss": "squares", "cutoff": "given"},
 "trials": [{"name": "trial-000", "params": {"batch.prompts": 16}, "state": "done", "values": [0.61], "reason": ""}],
 "is_exhausted": false, "best": ["trial-000"]}
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter

from ablations.errors import AblationsError
from ablations.files.checked_json import checked
from ablations.home.plan import Plan
from ablations.home.started_sweep import StartedSweep
from ablations.search.objective import is_maximised, pareto_front, told
from ablations.study.search_points import Point, SearchSpace
from ablations.study.search_space import Objective, Search
from scalerl.plain_json import parsed_json
from scalerl.run.run_folder import write_atomically

SEARCH_FILE = "search.json"
TrialState = Literal["running", "done", "failed"]


@dataclass(frozen=True, kw_only=True)
class SearchTrial:
    """One point of the space.

    SearchTrial(name="trial-004", params={"optimiser.learning_rate": 0.0012}, state="done", values=(0.61,))
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    """The name of the trial's variant."""
    params: Point
    state: TrialState = "running"
    """State of the trial; "running" from the moment it is planned."""
    values: tuple[float | None, ...] = ()
    """One value per objective, once done; None for a score that is never reached."""
    reason: str = ""
    """The reason for a failure."""


@dataclass(frozen=True, kw_only=True)
class SearchRecord:
    """A search so far: the content of its `search.json`."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    sampler: str
    seed: int
    num_trials: int
    """Number of trials requested."""
    seeds: tuple[int, ...]
    """Seeds that each trial is trained with; its values are means over them."""
    space: dict[str, str]
    """Each dimension as text."""
    objectives: tuple[Objective, ...]
    budget_gpu_hours: float
    fit_from_gpu_hours: float
    fit_to_gpu_hours: float
    fit: dict[str, Any]
    """Fit settings on which the values depend, as in the plan."""
    trials: tuple[SearchTrial, ...] = ()
    is_exhausted: bool = False
    """True if the space holds no more recipes, however many trials were requested."""

    @classmethod
    def read(cls, folder: Path) -> "SearchRecord | None":
        """The record in a sweep's folder, None if there is none; AblationsError if it is unusable."""
        path = folder / SEARCH_FILE
        try:
            content = parsed_json(path.read_bytes())
            del content["best"]
            return checked(content, _WRITTEN)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AblationsError(
                f"{path}: not the record of a search ({error}); delete the file to restart the search, which keeps "
                "its runs"
            ) from error

    def write(self, folder: Path) -> None:
        """Write `search.json` atomically."""
        write_atomically(folder / SEARCH_FILE, json.dumps(self.to_json(), indent=1, allow_nan=False).encode())

    def to_json(self) -> dict[str, Any]:
        objectives = [objective.model_dump() for objective in self.objectives]
        return asdict(self) | {"objectives": objectives, "best": [trial.name for trial in self.best]}

    def rests_on_the_same_as(self, other: "SearchRecord") -> bool:
        """True if values of both records are comparable: objectives, seeds, budget, window and fit agree."""
        basis = ("objectives", "seeds", "budget_gpu_hours", "fit_from_gpu_hours", "fit_to_gpu_hours", "fit")
        return all(getattr(self, name) == getattr(other, name) for name in basis)

    def with_trial(self, trial: SearchTrial) -> "SearchRecord":
        """This record with a trial added, or replaced if one has the same name."""
        names = [known.name for known in self.trials]
        at = names.index(trial.name) if trial.name in names else len(names)
        return replace(self, trials=(*self.trials[:at], trial, *self.trials[at + 1 :]))

    def told(self, trial: SearchTrial) -> tuple[float, ...]:
        """The values of a finished trial in the form that a sampler gets."""
        pairs = zip(self.objectives, trial.values, strict=True)
        return tuple(told(objective, found, self.budget_gpu_hours) for objective, found in pairs)

    @property
    def is_complete(self) -> bool:
        """True if there are as many trials as requested, and all have ended."""
        is_full = len(self.trials) >= self.num_trials or self.is_exhausted
        return is_full and all(trial.state != "running" for trial in self.trials)

    @property
    def num_to_come(self) -> int:
        """Number of trials not proposed yet."""
        return 0 if self.is_exhausted else max(0, self.num_trials - len(self.trials))

    @property
    def ranked(self) -> list[SearchTrial]:
        """The finished trials, best first by the first objective, earlier ones first among equals."""
        sign = -1 if is_maximised(self.objectives[0]) else 1
        return sorted((one for one in self.trials if one.state == "done"), key=lambda one: sign * self.told(one)[0])

    @property
    def best(self) -> list[SearchTrial]:
        """The best trial, or the Pareto front of several objectives; excludes trials that never reach a score."""
        able = [trial for trial in self.ranked if None not in trial.values]
        if len(self.objectives) == 1:
            return able[:1]
        maximised = [is_maximised(objective) for objective in self.objectives]
        return [able[position] for position in pareto_front([self.told(trial) for trial in able], maximised)]


_WRITTEN = TypeAdapter(SearchRecord)


def read_search(sweep: StartedSweep) -> SearchRecord | None:
    """The record of a sweep that is a search; a record left from an earlier version of the sweep file is ignored."""
    return SearchRecord.read(sweep.folder) if sweep.plan.search else None


def empty_record(search: Search, seeds: tuple[int, ...], space: SearchSpace, plan: Plan) -> SearchRecord:
    """The record of a search without a trial; `seeds` are the seeds of its runs."""
    return SearchRecord(
        sampler=search.sampler,
        seed=search.seed,
        num_trials=search.trials,
        seeds=seeds,
        space={dimension.name: str(dimension) for dimension in space.dimensions},
        objectives=search.objective,
        budget_gpu_hours=plan.budget_gpu_hours,
        fit_from_gpu_hours=plan.fit_from_gpu_hours,
        fit_to_gpu_hours=plan.fit_to_gpu_hours,
        fit=plan.fit,
    )
