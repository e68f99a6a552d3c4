"""The search loop on generated curves: what is trained, told and kept, whatever kills it in between."""

import json
import math
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import optuna
import pytest
from fixtures_home import BUDGET, rows_at, write_state
from places import DATA
from rich.console import Console

from ablations.errors import AblationsError
from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.pools.pool import Ended
from ablations.running.ending import all_ended
from ablations.running.make_plan import make_plan
from ablations.running.run_sweep import prepare
from ablations.search.loop import SearchState, TrialLoop, prepare_search, resume
from ablations.search.objective import is_maximised
from ablations.search.optuna_study import OptunaStudy
from ablations.search.record import SearchRecord, read_search
from ablations.search.tables import objective_text
from ablations.status.progress import run_rows
from ablations.study.expand import Study, expand

TINY = DATA / "recipes/scales/tiny.yaml"
RATE = "    optimiser.learning_rate: {low: 1e-4, high: 1e-2, log: true}\n"
BEST_RATE = 2e-3


class Killed(BaseException):
    """As SIGKILL: nothing may catch it."""


@dataclass
class Pool:
    """Trains in no time: the ceiling is 0.6 at a learning rate of 2e-3 and 0.1 lower a decade from it.

    All runs of a seed have the same noise: which of them ends highest hangs on no run's id, which names the code.
    """

    home: Home
    cancelled: Cancellation
    failing_above: float = math.inf
    """Learning rates above this fail."""
    waiting: list[str] = field(default_factory=list)
    trained: list[str] = field(default_factory=list)

    def add(self, run_id: str, budget_gpu_hours: float) -> None:
        assert budget_gpu_hours == BUDGET
        self.waiting.append(run_id)

    def is_busy(self, run_id: str) -> bool:
        return run_id in self.waiting

    def stop(self, run_id: str) -> None:
        raise AssertionError("a search stops no run")

    def work(self) -> Generator[Ended | None, None, None]:
        yield from ()

    @property
    def where(self) -> str:
        return "nowhere"

    def train_next(self) -> None:
        run_id = self.waiting.pop(0)
        folder = self.home.run(run_id)
        recipe, seed = folder.read_recipe()
        rate = recipe.optimiser.learning_rate
        if rate > self.failing_above:
            write_state(self.home, run_id, "failed", compute=100.0, message="loss is not finite")
            return
        A = 0.6 - 0.1 * abs(math.log10(rate / BEST_RATE))
        rng = np.random.default_rng(seed)
        rows = [
            row for compute in np.arange(0, BUDGET + 1, 50).tolist() for row in rows_at(compute, (A, 1.9, 320.0), rng)
        ]
        folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
        write_state(self.home, run_id, "done")
        self.trained.append(run_id)


@dataclass
class Bench:
    """A search in a folder, run as often as wanted; every process has a pool and an Optuna of its own."""

    path: Path
    jobs: int = 1
    failing_above: float = math.inf
    sampling: OptunaStudy | None = None
    """That of the last process."""

    @property
    def home(self) -> Home:
        return Home(self.path / "home")

    @property
    def folder(self) -> Path:
        return self.home.sweep("test")

    def write(self, space: str, rest: str, seeds: str = "[0]") -> None:
        (self.path / "test.yaml").write_text(
            f"name: test\nreference: scalerl\nscale: {TINY}\nseeds: {seeds}\nsearch:\n  space:\n{space}{rest}"
        )

    def study(self) -> tuple[Study, StartedSweep]:
        study = expand(self.path / "test.yaml", sets=["compute_unit_gpu_hours=2000"])
        plan = make_plan(study, "test", budget=None, command="platform sweep test.yaml")
        return study, StartedSweep(home=self.home, plan=plan)

    def begin(self) -> TrialLoop:
        study, sweep = self.study()
        self.folder.mkdir(parents=True, exist_ok=True)
        state = resume(study, sweep)
        prepare_search(state)
        prepare(state.study, state.sweep, self.path / "test.yaml")
        maximised = [is_maximised(one) for one in state.search.objective]
        self.sampling = OptunaStudy(state.search, state.space, maximised)
        loop = TrialLoop(
            state=state,
            jobs=self.jobs,
            console=Console(quiet=True),
            pool=Pool(self.home, Cancellation(self.folder / "cancelled"), self.failing_above),
            optuna=self.sampling,
        )
        loop.start()
        return loop

    def run(self) -> tuple[SearchState, list[str]]:
        """To the end; gives the runs trained."""
        loop = self.begin()
        while loop.pool.waiting:
            loop.pool.train_next()
            loop.step()
        return loop.state, loop.pool.trained

    def record(self) -> SearchRecord:
        record = SearchRecord.read(self.folder)
        assert record is not None
        return record

    def optuna_trials(self) -> list[optuna.trial.FrozenTrial]:
        assert self.sampling is not None
        return self.sampling._study.trials


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def rates(record: SearchRecord) -> list[float | str]:
    return [trial.params["optimiser.learning_rate"] for trial in record.trials]


def assert_nothing_was_evaluated_twice(bench: Bench, num_trials: int) -> None:
    record, plan = bench.record(), read_sweep(bench.home, "test").plan
    assert [trial.state for trial in record.trials] == ["done"] * num_trials
    assert [variant.name for variant in plan.variants[1:]] == [trial.name for trial in record.trials]
    runs = [run.id for variant in plan.variants for run in variant.runs]
    assert len(set(runs)) == len(runs) == len(list((bench.home.path / "runs").iterdir()))
    finished = [trial for trial in bench.optuna_trials() if trial.state == optuna.trial.TrialState.COMPLETE]
    told = [trial.value for trial in finished if trial.value is not None]
    assert sorted(told) == sorted(trial.values[0] for trial in record.trials if trial.values[0] is not None)
    assert len(told) == num_trials
    assert not [trial for trial in bench.optuna_trials() if not trial.state.is_finished()]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "gp"])
def test_a_search_trains_the_reference_and_as_many_trials_as_asked_for(bench, sampler):
    bench.write(RATE, f"  trials: 6\n  sampler: {sampler}\n")
    state, trained = bench.run()
    assert len(trained) == 7
    assert trained[0] == state.study.runs[0].id
    assert_nothing_was_evaluated_twice(bench, 6)
    (best,) = state.record.best
    nearest = min(rates(state.record), key=lambda rate: abs(math.log(rate / BEST_RATE)))
    assert best.params["optimiser.learning_rate"] == nearest
    assert read_sweep(bench.home, "test").plan.variants[1].overrides == {
        "optimiser.learning_rate": rates(state.record)[0]
    }


def test_seeds_are_trained_each_and_count_by_their_mean(bench):
    bench.write(RATE, "  trials: 2\n", seeds="[3, 4]")
    state, trained = bench.run()
    assert len(trained) == 6
    lower = [float(value) for trial in state.record.trials for value in trial.values]
    for trial, found in zip(state.record.trials, lower, strict=True):
        rate = trial.params["optimiser.learning_rate"]
        assert found == pytest.approx(0.6 - 0.1 * abs(math.log10(rate / BEST_RATE)), abs=0.02)


KILLS = {
    "before a point is asked for": ("ablations.search.optuna_study.OptunaStudy.ask", False),
    "after a point was asked for": ("ablations.search.optuna_study.OptunaStudy.ask", True),
    "after a trial was written down": ("ablations.search.record.SearchRecord.write", True),
    "after the plan was written": ("ablations.home.plan.Plan.write", True),
    "after the run folder was made": ("scalerl.run.run_folder.RunFolder.create", True),
    "before the sampler is told": ("ablations.search.optuna_study.OptunaStudy.tell", False),
    "after the sampler was told": ("ablations.search.optuna_study.OptunaStudy.tell", True),
}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> SearchRecord:
    bench = Bench(tmp_path_factory.mktemp("undisturbed"))
    bench.write(RATE, "  trials: 3\n")
    return bench.run()[0].record


@pytest.mark.slow
@pytest.mark.parametrize("moment", KILLS)
def test_a_search_killed_at_any_moment_ends_as_if_it_had_not_been(moment, bench, undisturbed, monkeypatch):
    bench.write(RATE, "  trials: 3\n")
    target, after = KILLS[moment]
    owner, _, method = target.rpartition(".")
    module, _, of_class = owner.rpartition(".")
    original = getattr(getattr(__import__(module, fromlist=[of_class]), of_class), method)
    calls = Counter()

    def deadly(*arguments):
        calls[method] += 1
        # The second trial: the calls before it make the reference, start the search and end the first.
        due = calls[method] == {"ask": 2, "tell": 2, "write": 4 if "Record" in owner else 3, "create": 3}[method]
        if due and not after:
            raise Killed
        result = original(*arguments)
        if due:
            raise Killed
        return result

    with monkeypatch.context() as patched:
        patched.setattr(target, deadly)
        with pytest.raises(Killed):
            bench.run()
    assert len(list((bench.home.path / "runs").iterdir())) < 4
    bench.run()
    assert_nothing_was_evaluated_twice(bench, 3)
    assert bench.record() == undisturbed


@pytest.mark.parametrize("sampler", ["tpe", "cmaes"])
def test_a_longer_search_begins_with_what_is_recorded(bench, sampler):
    """CMA-ES too, whose proposals then lie near the best of them, and not around the middle of the space."""
    space = f"{RATE}    optimiser.weight_decay: {{low: 0.0, high: 0.1}}\n"
    bench.write(space, "  trials: 10\n  sampler: random\n")
    before = bench.run()[0].record
    bench.write(space, f"  trials: 14\n  sampler: {sampler}\n")
    state, trained = bench.run()
    assert state.record.trials[:10] == before.trials
    assert len(trained) == 4
    assert_nothing_was_evaluated_twice(bench, 14)
    if sampler == "cmaes":
        found = np.log(np.array(rates(state.record)[10:], dtype=float))
        (best,) = before.best
        assert abs(np.mean(found) - math.log(float(best.params["optimiser.learning_rate"]))) < 0.3


@pytest.mark.parametrize("sampler", ["tpe", "grid"])
def test_each_recipe_of_a_small_space_is_trained_once(bench, sampler):
    # Four losses; the reference has the first of them already.
    bench.jobs = 2
    bench.write("    loss.type: {choices: [cispo, dapo, grpo, gspo]}\n", f"  trials: 3\n  sampler: {sampler}\n")
    state, trained = bench.run()
    assert {trial.params["loss.type"] for trial in state.record.trials} == {"dapo", "grpo", "gspo"}
    assert len(trained) == len(set(trained)) == 4


def test_a_failed_trial_is_told_as_failed_and_tried_again_by_the_next_start(bench):
    bench.failing_above = 1e-3
    bench.write(RATE, "  trials: 5\n  sampler: random\n")
    state, _ = bench.run()
    failed = [trial for trial in state.record.trials if trial.params["optimiser.learning_rate"] > 1e-3]
    assert 0 < len(failed) < 5
    assert len(state.record.trials) == 5
    assert {(trial.state, trial.reason) for trial in failed} == {("failed", "seed 0: loss is not finite")}
    states = Counter(trial.state.name for trial in bench.optuna_trials())
    assert states == {"FAIL": len(failed), "COMPLETE": 5 - len(failed)}

    bench.failing_above = math.inf
    again, trained = bench.run()
    assert [trial.params for trial in again.record.trials] == [trial.params for trial in state.record.trials]
    assert len(trained) >= len(failed)
    assert_nothing_was_evaluated_twice(bench, 5)


def test_a_cancelled_search_asks_for_nothing_more_and_leaves_its_trials_open(bench):
    bench.write(RATE, "  trials: 3\n")
    loop = bench.begin()
    loop.pool.train_next()
    loop.step()
    loop.pool.cancelled.add(None)
    loop.pool.waiting.clear()
    loop.step()
    assert [trial.state for trial in bench.record().trials] == ["running"]
    bench.run()
    assert_nothing_was_evaluated_twice(bench, 3)


def test_trials_outside_a_narrower_space_are_left_out_and_their_runs_kept(bench):
    bench.write(RATE, "  trials: 4\n  sampler: random\n")
    wide = bench.run()[0].record
    inside = [rate for rate in rates(wide) if rate <= 1e-3]
    assert 0 < len(inside) < 4
    bench.write("    optimiser.learning_rate: {low: 1e-4, high: 1e-3, log: true}\n", "  trials: 4\n")
    narrow = bench.run()[0].record
    assert rates(narrow)[: len(inside)] == inside
    assert len(narrow.trials) == 4
    assert max(rates(narrow)) <= 1e-3


def ended(bench: Bench) -> bool:
    sweep = read_sweep(bench.home, "test")
    return all_ended(sweep, run_rows(sweep))


def test_a_search_has_not_ended_before_its_trials_have_whenever_it_was_killed(bench, monkeypatch):
    bench.write(RATE, "  trials: 1\n")
    study, sweep = bench.study()
    bench.folder.mkdir(parents=True)
    prepare(study, sweep, bench.path / "test.yaml")
    (reference,) = study.runs
    write_state(bench.home, reference.id, "done")
    assert read_search(sweep) is None
    assert not ended(bench)  # no record yet

    (bench.home.run(reference.id).path / "status.json").unlink()
    bench.run()
    assert ended(bench)

    bench.write(RATE, "  trials: 2\n")
    with monkeypatch.context() as patched:
        patched.setattr("ablations.home.plan.Plan.write", lambda *_: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            bench.begin()
    assert not ended(bench)  # killed between record and plan
    bench.begin()
    assert len(bench.record().trials) == 2
    assert not ended(bench)


def test_several_objectives_keep_the_pareto_front(bench):
    objectives = "  objective: [{type: asymptote}, {type: compute_to_reach, score: 0.45}]\n"
    bench.write(RATE, f"  trials: 6\n{objectives}")
    record = bench.run()[0].record
    values = [trial.values for trial in record.best]
    assert len(record.best) >= 1
    for trial in record.trials:
        if trial not in record.best and None not in trial.values:
            assert any(best[0] >= trial.values[0] and best[1] <= trial.values[1] for best in values)
    assert objective_text(record) == "Pareto front: maximise A, lower end; minimise compute to 0.45"


@pytest.mark.parametrize("wrong", [{"params": []}, {"state": "lost"}])
def test_a_record_that_is_none_is_said_to_be_one(bench, wrong):
    bench.write(RATE, "  trials: 1\n")
    content = bench.run()[0].record.to_json()
    for written in ({}, content | {"trials": [content["trials"][0] | wrong]}):
        (bench.folder / "search.json").write_text(json.dumps(written))
        with pytest.raises(AblationsError, match="not the record of a search"):
            SearchRecord.read(bench.folder)
