"""The sweep of `fixtures_home` as one that stops runs, without training anything."""

from collections.abc import Generator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from fixtures_home import BUDGET, make_plan

from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.pools.pool import Ended, Pool
from ablations.steering.steering import Steering
from ablations.study.expand import Study, SweepRun
from ablations.study.sweep import Stop

# As much of a resolved recipe as steering reads: an evaluation every 50 GPU-hours.
RECIPE = cast(Any, SimpleNamespace(evaluation=SimpleNamespace(every=50 / BUDGET), compute_unit_gpu_hours=BUDGET))


class RecordedPool(Pool):
    """What steering asked of the pool, which trains nothing."""

    def __init__(self) -> None:
        self.added: list[tuple[str, float]] = []
        self.stopped: list[str] = []

    def add(self, run_id: str, budget_gpu_hours: float) -> None:
        self.added.append((run_id, budget_gpu_hours))

    def stop(self, run_id: str) -> None:
        self.stopped.append(run_id)

    def is_busy(self, run_id: str) -> bool:
        return False

    def work(self) -> Generator[Ended | None, None, None]:
        yield from ()

    @property
    def cancelled(self) -> Cancellation:
        raise NotImplementedError

    @property
    def where(self) -> str:
        return "nowhere"


def steered(home: Home, stop: Stop | None, **changes: Any) -> tuple[Steering, StartedSweep]:
    """The steering of the fixture's sweep under a stop block, and the sweep with other changes of its plan."""
    plan = replace(make_plan(), stop=stop and stop.model_dump(), **changes)
    sweep = StartedSweep(home=home, plan=plan)
    sweep.write_plan()
    runs = tuple(
        SweepRun(variant=variant.name, seed=run.seed, id=run.id, recipe=RECIPE)
        for variant in plan.variants
        for run in variant.runs
    )
    study = SimpleNamespace(sweep=SimpleNamespace(stop=stop), reference=SimpleNamespace(recipe=RECIPE), runs=runs)
    return Steering(cast(Study, study), sweep), sweep
