"""`search.json`: the trials of a search, what was planned and what was found, kept outside of Optuna.

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
    """Of its variant."""
    params: Point
    state: TrialState = "running"
    """Running from the moment it is planned."""
    values: tuple[float | None, ...] = ()
    """One for each objective once done; None for a score that is never reached."""
    reason: str = ""
    """Why it failed."""


@dataclass(frozen=True, kw_only=True)
class SearchRecord:
    """A search as it stands, the content of its `search.json`."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    sampler: str
    seed: int
    num_trials: int
    """How many there are to be."""
    seeds: tuple[int, ...]
    """Each trial is trained with, which its values are the mean of."""
    space: dict[str, str]
    """In words."""
    objectives: tuple[Objective, ...]
    budget_gpu_hours: float
    fit_from_gpu_hours: float
    fit_to_gpu_hours: float
    fit: dict[str, Any]
    """What the values rest on, as in the plan."""
    trials: tuple[SearchTrial, ...] = ()
    is_exhausted: bool = False
    """Whether the space holds no further recipe, however many trials were asked for."""

    @classmethod
    def read(cls, folder: Path) -> "SearchRecord | None":
        """The record in a sweep's folder, None without one; AblationsError when it cannot be used."""
        path = folder / SEARCH_FILE
        try:
            content = json.loads(path.read_bytes())
            del content["best"]
            return checked(content, _WRITTEN)
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AblationsError(
                f"{path}: not the record of a search ({error}); delete it to begin the search again, runs are kept"
            ) from error

    def write(self, folder: Path) -> None:
        """Replace the file in one step."""
        write_atomically(folder / SEARCH_FILE, json.dumps(self.to_json(), indent=1, allow_nan=False).encode())

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON."""
        objectives = [objective.model_dump() for objective in self.objectives]
        return asdict(self) | {"objectives": objectives, "best": [trial.name for trial in self.best]}

    def rests_on_the_same_as(self, other: "SearchRecord") -> bool:
        """Whether values of both mean the same: objectives, seeds, budget, window and fit agree."""
        basis = ("objectives", "seeds", "budget_gpu_hours", "fit_from_gpu_hours", "fit_to_gpu_hours", "fit")
        return all(getattr(self, name) == getattr(other, name) for name in basis)

    def with_trial(self, trial: SearchTrial) -> "SearchRecord":
        """This record with a trial added, or in place of the one of its name."""
        names = [known.name for known in self.trials]
        at = names.index(trial.name) if trial.name in names else len(names)
        return replace(self, trials=(*self.trials[:at], trial, *self.trials[at + 1 :]))

    def told(self, trial: SearchTrial) -> tuple[float, ...]:
        """The values of a trial that is done, as a sampler gets them."""
        pairs = zip(self.objectives, trial.values, strict=True)
        return tuple(told(objective, found, self.budget_gpu_hours) for objective, found in pairs)

    @property
    def is_complete(self) -> bool:
        """Whether there are as many trials as there are to be, and each has ended."""
        is_full = len(self.trials) >= self.num_trials or self.is_exhausted
        return is_full and all(trial.state != "running" for trial in self.trials)

    @property
    def num_to_come(self) -> int:
        """Trials that are not proposed yet."""
        return 0 if self.is_exhausted else max(0, self.num_trials - len(self.trials))

    @property
    def ranked(self) -> list[SearchTrial]:
        """The trials that are done, best first in the first objective, earlier ones first among equals."""
        sign = -1 if is_maximised(self.objectives[0]) else 1
        return sorted((one for one in self.trials if one.state == "done"), key=lambda one: sign * self.told(one)[0])

    @property
    def best(self) -> list[SearchTrial]:
        """The best trial, or the Pareto front of several objectives; one that never reaches a score is not best."""
        able = [trial for trial in self.ranked if None not in trial.values]
        if len(self.objectives) == 1:
            return able[:1]
        maximised = [is_maximised(objective) for objective in self.objectives]
        return [able[position] for position in pareto_front([self.told(trial) for trial in able], maximised)]


_WRITTEN = TypeAdapter(SearchRecord)


def read_search(sweep: StartedSweep) -> SearchRecord | None:
    """The record of a sweep that is a search; one left from an earlier form of the sweep file counts as none."""
    return SearchRecord.read(sweep.folder) if sweep.plan.search else None


def empty_record(search: Search, seeds: tuple[int, ...], space: SearchSpace, plan: Plan) -> SearchRecord:
    """The record of a search without a trial; `seeds` are those of its runs."""
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
