"""The pool's bookkeeping; that it trains, stops and extends runs for real is tests/integration/test_sweep.py."""

from pathlib import Path

from fixtures_home import BUDGET, make_home

from ablations.dispatch import LocalPool
from ablations.home import Home


def pool_of(home: Home, folder: Path) -> LocalPool:
    return LocalPool(home=home, submissions=folder / "submitit", threads=1, jobs=2, cancel_marker=folder / "cancelled")


def test_a_run_that_only_waits_is_forgotten_when_it_is_stopped(tmp_path):
    home, plan = make_home(tmp_path, fraction=0.5, state="cancelled")
    pool, run_id = pool_of(home, tmp_path), plan.variants[0].runs[0].id
    pool.add(run_id, BUDGET)
    assert pool.is_busy(run_id)
    pool.stop(run_id)
    assert not pool.is_busy(run_id)
    assert list(pool.work()) == []


def test_runs_are_done_by_the_budget_each_was_added_with(tmp_path):
    home, plan = make_home(tmp_path, fraction=0.5, state="done")
    pool = pool_of(home, tmp_path)
    for variant, budget in zip(plan.variants, (0.5 * BUDGET, 0.4 * BUDGET, 0.5 * BUDGET), strict=True):
        pool.add(variant.runs[0].id, budget)
    assert list(pool.work()) == [None]
    assert not (tmp_path / "submitit").exists()


def test_a_run_that_another_sweep_trains_is_waited_for_until_it_is_stopped(tmp_path):
    home, plan = make_home(tmp_path, fraction=0.5, state="running")
    pool, run_id = pool_of(home, tmp_path), plan.variants[0].runs[0].id
    pool.add(run_id, BUDGET)
    events = pool.work()
    assert [next(events), next(events)] == [None, None]
    assert pool.is_busy(run_id)
    pool.stop(run_id)
    assert list(events) == []
    assert not (tmp_path / "submitit").exists()


def test_a_cancelled_sweep_starts_nothing_that_is_added(tmp_path):
    home, plan = make_home(tmp_path, fraction=0.5, state="cancelled")
    (tmp_path / "cancelled").touch()
    pool = pool_of(home, tmp_path)
    pool.add(plan.variants[0].runs[0].id, BUDGET)
    assert list(pool.work()) == [None]
    assert not (tmp_path / "submitit").exists()
