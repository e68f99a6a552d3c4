"""Sharing out a total: worked-out rounds, simulated studies, and a sweep that goes on from its file."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures_home import TRUTH, planned_run, write_run, write_state
from fixtures_steering import RecordedPool, steered

from ablations.curve import Curve
from ablations.errors import AblationsError
from ablations.fit import Fit, fit_curve
from ablations.home import Home
from ablations.progress import all_ended, read_rows
from ablations.steering.allocation import (
    Allocation,
    Candidate,
    Extension,
    Grid,
    equal_share,
    first_round,
    least_share,
    next_round,
    read_allocation,
    write_allocation,
)
from ablations.steering.stopping import ceiling_below_probability

GRID = Grid(every=100.0, slice_evaluations=5)


def candidate(run: str, *, width: float | None = 0.1, above: float | None = 0.5, reached: float = 1000.0) -> Candidate:
    return Candidate(
        run=run,
        variant=run,
        reached=reached,
        most=5000.0,
        width=width,
        above=None if run == "reference" else above,
        is_reference=run == "reference",
    )


def given(extensions: list[Extension]) -> dict[str, float]:
    return {one.run: one.to - one.start for one in extensions}


def test_the_first_share_is_a_quarter_of_an_equal_split_but_enough_for_a_fit():
    # 40,000 over 10 runs is 4,000 each; a quarter of it 1,000, 10 evaluations of 100.
    assert equal_share(40_000.0, 10, every=100.0) == 10
    # Eight evaluations beyond the 3 that lie up to fit_from.
    assert least_share(every=100.0, fit_from=310.0) == 1100.0
    first = first_round({"a": 0.0, "b": 0.0}, 4000.0, most=5000.0, least=800.0, grid=GRID)
    assert given(first) == {"a": 800.0, "b": 800.0}


def test_what_other_sweeps_have_trained_is_free():
    reached = {"a": 350.0, "b": 2000.0, "c": 5020.0}
    first = first_round(reached, 4000.0, most=5000.0, least=800.0, grid=GRID)
    assert [(one.start, one.to) for one in first] == [(300.0, 800.0), (2000.0, 2000.0), (5000.0, 5000.0)]


def test_a_round_extends_the_reference_and_the_wider_half_of_the_open_runs():
    candidates = [
        candidate("reference", width=0.08),
        candidate("narrower", width=0.06),
        candidate("widest", width=0.30),
        candidate("wide", width=0.20),
        candidate("better", width=0.5, above=0.96),
        candidate("worse", width=0.5, above=0.04),
    ]
    extensions = next_round(candidates, 10_000.0, grid=GRID)
    assert given(extensions) == {"reference": 500.0, "widest": 500.0, "wide": 500.0}
    assert extensions[1].why == "rank open, P(above the reference) 0.50; A's interval 0.300 wide"


def test_a_run_without_a_fit_comes_first():
    runs = [candidate("fitted", width=0.9), candidate("unknown", width=None, above=None)]
    assert given(next_round(runs, 10_000.0, grid=GRID)) == {"unknown": 500.0}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"above": 0.02}, "rank decided, P(above the reference) 0.02"),
        ({"reached": 5000.0}, "at the budget of a run"),
        ({"width": 0.029}, "narrow enough"),
    ],
)
def test_a_run_that_is_decided_full_or_narrow_gets_no_more(changes, reason):
    full = candidate("reference", reached=5000.0)
    one = candidate("a", **changes)
    assert next_round([full, one], 10_000.0, grid=GRID) == []
    assert reason in one.standing()


def test_the_reference_gets_no_more_when_every_rank_is_decided():
    assert next_round([candidate("reference"), candidate("a", above=0.99)], 10_000.0, grid=GRID) == []


def test_the_last_round_spends_what_is_left_in_whole_evaluations():
    runs = [candidate("reference"), candidate("a", width=0.3), candidate("b", width=0.2)]
    assert given(next_round(runs, 790.0, grid=GRID)) == {"reference": 500.0, "a": 200.0}
    assert next_round(runs, 90.0, grid=GRID) == []


def test_no_run_is_given_more_than_its_budget():
    runs = [candidate("a", reached=4800.0)]
    assert given(next_round(runs, 10_000.0, grid=GRID)) == {"a": 200.0}


LAWS = {  # A, B, C_mid
    "reference": (0.61, 1.92, 2542.0),
    "much worse": (0.50, 1.90, 2542.0),
    "worse": (0.54, 1.80, 2542.0),
    "equal": (0.61, 1.92, 2800.0),
    "slightly better": (0.625, 1.90, 2542.0),
    "much better": (0.70, 1.90, 2542.0),
}
EVERY, MOST = 213.0, 15_975.0  # 75 evaluations


def simulated_fit(name: str, reached: float) -> Fit:
    """The fit of a run of 1,000 prompts x 16 samples that follows its law to `reached` GPU-hours."""
    A, B, C_mid = LAWS[name]
    compute = np.arange(0.0, reached + 1, EVERY)
    law = np.append(0.3, 0.3 + (A - 0.3) / (1 + (C_mid / compute[1:]) ** B))
    draws = np.random.default_rng(list(LAWS).index(name)).normal(0.0, 1.0, 76)[: compute.size]
    score = law + draws * np.sqrt(law * (1 - law) / 16_000)
    return fit_curve(Curve(name=name, compute=compute, score=score, samples=np.full(compute.size, 16_000)))


def share_out(total: float) -> Allocation:
    """Rounds on simulated runs until nothing more is given."""
    every_run = dict.fromkeys(LAWS, 0.0)
    grid = Grid(every=EVERY, slice_evaluations=equal_share(total, len(LAWS), every=EVERY))
    least = least_share(every=EVERY, fit_from=0.0)
    allocation = Allocation(total_gpu_hours=total)
    allocation = allocation.with_round(first_round(every_run, total, most=MOST, least=least, grid=grid))
    while True:
        fits = {name: simulated_fit(name, reached) for name, reached in allocation.allotted.items()}
        candidates = [
            Candidate(
                run=name,
                variant=name,
                reached=allocation.allotted[name],
                most=MOST,
                width=(1.0 if fit.A_hi is None else fit.A_hi) - fit.A_lo,
                above=None if name == "reference" else 1 - ceiling_below_probability([fit], [fits["reference"]]),
                is_reference=name == "reference",
            )
            for name, fit in fits.items()
        ]
        extensions = next_round(candidates, allocation.left(), grid=grid)
        if not extensions:
            return allocation.closed(candidates, allocation.left())
        allocation = allocation.with_round(extensions, candidates)


def test_a_simulated_study_spends_less_on_decided_variants_than_an_equal_split():
    total = 6 * 40 * EVERY  # 40 evaluations a run of 75
    allocation = share_out(total)
    bought, equal = allocation.bought, total / len(LAWS)
    assert sum(bought.values()) <= total
    assert bought["much worse"] < 0.75 * equal
    assert bought["much better"] < 0.75 * equal
    assert bought["much worse"] < bought["equal"] > bought["much better"]
    assert bought["reference"] == max(bought.values())
    assert "rank decided" in allocation.last_word("much worse")
    assert "rank decided" in allocation.last_word("much better")


def small_home(path: Path, reached: float) -> Home:
    """Three runs of the fixture's sweep, trained to a compute of the budget of 2000."""
    home = Home(path)
    for variant, truth in TRUTH.items():
        write_run(home, planned_run(variant, 0).id, truth, fraction=reached / 2000.0)
    return home


def trained(home: Home, pool: RecordedPool) -> None:
    """What was added is trained: its log and status grow to what was asked."""
    for run_id, budget in pool.added:
        variant = list(TRUTH)[int(run_id[:6], 16)]
        log = home.run(run_id).metrics
        log.unlink(missing_ok=True)
        (log.parent / "recipe.json").unlink(missing_ok=True)
        (log.parent / "status.json").unlink(missing_ok=True)
        log.parent.rmdir()
        write_run(home, run_id, TRUTH[variant], fraction=budget / 2000.0)
    pool.added.clear()


def test_a_sweep_with_a_total_goes_in_rounds_and_on_from_its_file(tmp_path):
    home, total = Home(tmp_path), 3000.0
    steering, plan = steered(home, None, total_gpu_hours=total)
    first = steering.begin()
    # 3000 over three runs is 1000 each, a quarter of it 250; eight evaluations of 50 are 400.
    assert list(first.values()) == [400.0, 400.0, 400.0]
    assert not all_ended(home, plan, read_rows(home, plan))
    again, _ = steered(home, None, total_gpu_hours=total)
    assert again.begin() == first

    for run_id in first:
        write_run(home, run_id, TRUTH[list(TRUTH)[int(run_id[:6], 16)]], fraction=0.2)
    pool = RecordedPool()
    steering.steer(pool)
    decided = dict(pool.added)
    assert set(decided.values()) == {650.0}
    assert planned_run("scalerl", 0).id in decided
    resumed, _ = steered(home, None, total_gpu_hours=total)
    assert resumed.begin() == decided

    while pool.added:
        trained(home, pool)
        steering.steer(pool)
    allocation = read_allocation(home.sweep("loo"), total)
    assert sum(allocation.bought.values()) <= total
    assert allocation.finished
    rows = read_rows(home, plan)
    assert all_ended(home, plan, rows)
    assert all(row.state.message.startswith("given ") for row in rows)
    loss = next(row for row in rows if row.variant == "loo-loss")
    assert "rank decided, P(above the reference) 0.0" in loss.state.message

    steering, _ = steered(home, None, total_gpu_hours=total)
    assert steering.begin() == {}
    assert read_allocation(home.sweep("loo"), total) == allocation


def test_a_failed_run_is_tried_once_and_holds_no_round_up(tmp_path):
    home = small_home(tmp_path, 400.0)
    steering, plan = steered(home, None, total_gpu_hours=3000.0)
    failed = planned_run("loo-curriculum", 0).id
    write_state(home, failed, "failed", compute=100.0, message="ValueError: no")
    for variant in ("scalerl", "loo-loss"):
        write_state(home, planned_run(variant, 0).id, "cancelled", compute=0.0)
    assert set(steering.begin()) == {run.id for variant in plan.variants for run in variant.runs}
    for variant in ("scalerl", "loo-loss"):
        write_state(home, planned_run(variant, 0).id, "done", compute=400.0)
    pool = RecordedPool()
    steering.steer(pool)
    assert failed not in dict(pool.added)
    assert pool.added


def test_a_cancelled_sweep_decides_no_round(tmp_path):
    home = small_home(tmp_path, 400.0)
    for variant in TRUTH:
        write_state(home, planned_run(variant, 0).id, "cancelled", compute=0.0)
    steering, plan = steered(home, None, total_gpu_hours=3000.0)
    steering.begin()
    (home.sweep(plan.sweep) / "cancelled").touch()
    pool = RecordedPool()
    assert steering.steer(pool) == []
    assert pool.added == []


def test_a_raised_total_goes_on_and_a_finished_one_is_open_again(tmp_path):
    names = {"a": "a, seed 0", "b": "b, seed 0"}
    allocation = Allocation(total_gpu_hours=2000.0).with_round(
        [Extension(run="a", start=0.0, to=800.0, why="first"), Extension(run="b", start=200.0, to=800.0, why="first")]
    )
    allocation = allocation.with_round([Extension(run="a", start=800.0, to=1300.0, why="wide")], [candidate("a")])
    allocation = allocation.closed([candidate("a", above=0.99)], 100.0)
    write_allocation(tmp_path, allocation, names)
    assert read_allocation(tmp_path, 2000.0) == allocation
    assert allocation.allotted == {"a": 1300.0, "b": 800.0}
    assert allocation.bought == {"a": 1300.0, "b": 600.0}
    assert allocation.left() == 100.0
    assert allocation.finished == "every rank is decided; 100 GPU-hours are left"
    raised = read_allocation(tmp_path, 3000.0)
    assert (raised.finished, raised.left()) == ("", 1100.0)
    assert replace(raised, total_gpu_hours=2000.0).rounds == allocation.rounds


@pytest.mark.parametrize("content", ["{", "[]", '{"rounds": 3}', '{"rounds": [{"extensions": []}]}'])
def test_a_broken_file_of_rounds_says_what_to_do(tmp_path, content):
    (tmp_path / "allocation.json").write_text(content)
    with pytest.raises(AblationsError, match=r"allocation\.json: not a list of rounds .* delete it"):
        read_allocation(tmp_path, 2000.0)
