"""Sharing out a total: worked-out rounds, simulated studies, and a sweep that goes on from its file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures_home import TRUTH, eval_row, make_plan, planned_run, rows_at, train_row, write_run, write_state
from fixtures_steering import RecordedPool, steered

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.result import Fit
from ablations.home.allocation import Allocation, Extension, read_allocation, write_allocation
from ablations.home.home import Home
from ablations.home.plan import Plan, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.running.ending import all_ended
from ablations.status.progress import run_rows
from ablations.status.rows import left_to_train
from ablations.status.table import summary
from ablations.steering.allocation import (
    Candidate,
    EvaluationGrid,
    Newcomer,
    equal_share,
    first_round,
    least_of_first_round,
    least_share,
    next_round,
    standings,
    why_closed,
)
from ablations.steering.stopping import ceiling_below_probability
from ablations.study.sweep import Stop

GRID = EvaluationGrid(every=100.0, slice_evaluations=5)


def candidate(run: str, *, width: float | None = 0.1, above: float | None = 0.5, reached: float = 1000.0) -> Candidate:
    return Candidate(
        run=run,
        name=run,
        reached=reached,
        most=5000.0,
        width=width,
        above=None if run == "reference" else above,
        is_reference=run == "reference",
    )


def new(run: str, trained: float = 0.0) -> Newcomer:
    return Newcomer(run=run, name=run, trained=trained)


def given(extensions: list[Extension]) -> dict[str, float]:
    return {one.run: one.to - one.start for one in extensions}


def test_the_first_share_is_a_quarter_of_an_equal_split_but_enough_for_a_fit():
    # 40,000 over 10 runs is 4,000 each; a quarter of it 1,000, 10 evaluations of 100.
    assert equal_share(40_000.0, 10, every=100.0) == 10
    # Eight evaluations beyond the 3 that lie up to fit_from.
    assert least_share(every=100.0, fit_from=310.0) == 1100.0
    first = first_round([new("a"), new("b")], 4000.0, most=5000.0, least=800.0, grid=GRID)
    assert given(first) == {"a": 800.0, "b": 800.0}


def test_what_other_sweeps_have_trained_is_free():
    runs = [new("a", 350.0), new("b", 2000.0), new("c", 5020.0)]
    first = first_round(runs, 4000.0, most=5000.0, least=800.0, grid=GRID)
    assert [(one.start, one.to) for one in first] == [(300.0, 800.0), (2000.0, 2000.0), (5000.0, 5000.0)]


def test_runs_that_join_late_part_what_is_left_evenly_and_need_enough_for_a_fit():
    # A slice of 20 evaluations would leave the second run 100 of the 2100 that are left.
    grid = EvaluationGrid(every=100.0, slice_evaluations=20)
    runs = [new("a"), new("b")]
    assert given(first_round(runs, 2100.0, most=5000.0, least=800.0, grid=grid)) == {"a": 1000.0, "b": 1000.0}
    runs = [new("a", 350.0), new("b"), new("c", 900.0)]
    assert least_of_first_round(runs, most=5000.0, least=800.0, grid=grid) == 500.0 + 800.0


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
    grid = EvaluationGrid(every=EVERY, slice_evaluations=equal_share(total, len(LAWS), every=EVERY))
    least = least_share(every=EVERY, fit_from=0.0)
    allocation = Allocation(total_gpu_hours=total)
    allocation = allocation.with_round(
        first_round([new(name) for name in LAWS], total, most=MOST, least=least, grid=grid), standings={}
    )
    while True:
        fits = {name: simulated_fit(name, reached) for name, reached in allocation.allotted.items()}
        candidates = [
            Candidate(
                run=name,
                name=name,
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
            return allocation.closed(why_closed(candidates, ""), standings(candidates))
        allocation = allocation.with_round(extensions, standings(candidates))


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
    steering, sweep = steered(home, None, total_gpu_hours=total)
    first = steering.begin()
    # 3000 over three runs is 1000 each, a quarter of it 250; eight evaluations of 50 are 400.
    assert list(first.values()) == [400.0, 400.0, 400.0]
    assert not all_ended(sweep, run_rows(sweep))
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
    rows = run_rows(sweep)
    assert all_ended(sweep, rows)
    assert all(row.state.message.startswith("given ") for row in rows)
    loss = next(row for row in rows if row.variant == "loo-loss")
    assert "rank decided, P(above the reference) 0.0" in loss.state.message

    steering, _ = steered(home, None, total_gpu_hours=total)
    assert steering.begin() == {}
    assert read_allocation(home.sweep("loo"), total) == allocation


def test_a_failed_run_is_tried_once_and_holds_no_round_up(tmp_path):
    home = small_home(tmp_path, 400.0)
    steering, sweep = steered(home, None, total_gpu_hours=3000.0)
    plan = sweep.plan
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
    steering, sweep = steered(home, None, total_gpu_hours=3000.0)
    steering.begin()
    sweep.cancellation.add(None)
    pool = RecordedPool()
    assert steering.steer(pool) == []
    assert pool.added == []


def test_a_raised_total_goes_on_and_a_finished_one_is_open_again(tmp_path):
    first = [
        Extension(run="a", name="a, seed 0", start=0.0, to=800.0, why="first"),
        Extension(run="b", name="b, seed 0", start=200.0, to=800.0, why="first"),
    ]
    more = Extension(run="a", name="a, seed 0", start=800.0, to=1300.0, why="wide")
    allocation = (
        Allocation(total_gpu_hours=2000.0).with_round(first, {}).with_round([more], standings([candidate("a")]))
    )
    decided = [candidate("a", above=0.99)]
    allocation = allocation.closed(why_closed(decided, "100 GPU-hours"), standings(decided))
    write_allocation(tmp_path, allocation)
    assert read_allocation(tmp_path, 2000.0) == allocation
    assert allocation.allotted == {"a": 1300.0, "b": 800.0}
    assert allocation.bought == {"a": 1300.0, "b": 600.0}
    assert allocation.left() == 100.0
    assert allocation.finished == "every rank is decided; 100 GPU-hours are left"
    raised = read_allocation(tmp_path, 3000.0)
    assert (raised.finished, raised.left()) == ("", 1100.0)
    assert replace(raised, total_gpu_hours=2000.0).rounds == allocation.rounds


def test_a_closed_total_counts_the_runs_that_were_not_trained():
    runs = [candidate("reference"), candidate("a")]
    assert why_closed(runs, "0 GPU-hours") == "the total is spent; the rank of 1 run is open"
    untrained = why_closed([*runs, candidate("b")], "0 GPU-hours", num_untrained=1)
    assert untrained == "the total is spent; the rank of 2 runs is open; 1 run is not trained"


def variants(plan: Plan, names: list[str], seeds: list[int]) -> tuple[PlannedVariant, ...]:
    """Those of a plan that are named, with these seeds."""
    return tuple(
        replace(variant, runs=tuple(run for run in variant.runs if run.seed in seeds))
        for variant in plan.variants
        if variant.name in names
    )


def trained_to(sweep: StartedSweep, compute: float) -> None:
    home, plan = sweep.home, sweep.plan
    for variant in plan.variants:
        for run in variant.runs:
            write_run(home, run.id, TRUTH[variant.name], seed=run.seed, fraction=compute / 2000.0)


def test_a_variant_and_a_seed_may_leave_the_sweep_file(tmp_path):
    home, total, whole = Home(tmp_path), 5000.0, make_plan((0, 1))
    steering, sweep = steered(home, None, total_gpu_hours=total, variants=whole.variants)
    assert set(steering.begin().values()) == {400.0}
    trained_to(sweep, 400.0)
    fewer = variants(whole, ["scalerl", "loo-curriculum"], [0])
    steering, _ = steered(home, None, total_gpu_hours=total, variants=fewer)
    decided = steering.begin()
    assert set(decided) <= {run.id for variant in fewer for run in variant.runs}
    assert decided
    allocation = read_allocation(home.sweep("loo"), total)
    # What has left was paid for: 6 x 400 in the first round.
    assert sum(one.to - one.start for one in allocation.rounds[0].extensions) == 2400.0
    assert "loo-loss, seed 1" in {one.name for one in allocation.rounds[0].extensions}


def test_seeds_that_join_when_the_total_is_spent_are_refused_with_the_least_that_is_enough(tmp_path):
    home, whole = Home(tmp_path), make_plan((0, 1))
    steering, sweep = steered(home, None, total_gpu_hours=1200.0)
    steering.begin()
    trained_to(sweep, 400.0)
    steering, _ = steered(home, None, total_gpu_hours=1300.0, variants=whole.variants)
    # Three new runs of 400 need 1100 more than the 100 that are left; the unit is 2000 GPU-hours.
    with pytest.raises(AblationsError, match=r"found 0\.65, of which 0\.05 is left for 3 runs .* at least 1\.2$"):
        steering.begin()
    steering, _ = steered(home, None, total_gpu_hours=2400.0, variants=whole.variants)
    assert steering.begin() == {planned_run(name, 1).id: 400.0 for name in TRUTH}


def test_nothing_is_given_out_while_the_reference_is_not_trained(tmp_path):
    home = Home(tmp_path)
    steering, sweep = steered(home, None, total_gpu_hours=3000.0)
    steering.begin()
    trained_to(sweep, 400.0)
    reference, pool = planned_run("scalerl", 0).id, RecordedPool()
    write_state(home, reference, "failed", compute=100.0, message="ValueError: no")
    steering.steer(pool)
    assert pool.added == []
    allocation = read_allocation(home.sweep("loo"), 3000.0)
    assert (len(allocation.rounds), allocation.finished) == (1, "")
    again, _ = steered(home, None, total_gpu_hours=3000.0)
    assert again.begin() == {reference: 400.0}
    write_state(home, reference, "done", compute=400.0)
    again.steer(pool)
    assert reference in dict(pool.added)


def collapse(home: Home, run_id: str) -> None:
    """The readings rise to half of the way and fall to a third of it for good."""
    rng, log = np.random.default_rng(2), home.run(run_id).metrics
    rows = [row for compute in np.arange(0.0, 501.0, 50).tolist() for row in rows_at(compute, (0.61, 1.92, 320.0), rng)]
    rows += [eval_row(compute, (0.0, 1.0, 1e-9), rng) for compute in np.arange(550.0, 1001.0, 50).tolist()]
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_reference_that_collapsed_ends_the_rounds_and_is_the_reason(tmp_path):
    home = Home(tmp_path)
    steering, sweep = steered(home, None, total_gpu_hours=3000.0)
    trained_to(sweep, 1000.0)
    collapse(home, planned_run("scalerl", 0).id)
    assert steering.begin() == {}
    finished = read_allocation(home.sweep("loo"), 3000.0).finished
    assert finished == "scalerl, the reference, has collapsed, so no rank can be decided; 3000 GPU-hours are left"
    assert all_ended(sweep, run_rows(sweep))


def test_what_another_sweep_trains_meanwhile_is_neither_charged_nor_bought_again(tmp_path):
    home, total = Home(tmp_path), 3000.0
    steering, sweep = steered(home, None, total_gpu_hours=total)
    plan = sweep.plan
    steering.begin()
    for variant in TRUTH:
        compute = 1010.0 if variant == "scalerl" else 400.0
        write_run(home, planned_run(variant, 0).id, TRUTH[variant], fraction=compute / 2000.0)
    rows, allocation = run_rows(sweep), read_allocation(home.sweep("loo"), total)
    assert summary(plan, rows, allocation) == "3 done; 1200 of 3000 GPU-hours shared out"
    assert left_to_train(plan, rows, allocation) == 1800.0
    pool = RecordedPool()
    steering.steer(pool)
    # A slice is 250: the run goes on from the last evaluation of the other sweep, at 1000.
    assert dict(pool.added)[planned_run("scalerl", 0).id] == 1250.0
    bought = read_allocation(home.sweep("loo"), total).bought
    assert bought[planned_run("scalerl", 0).id] == 400.0 + 250.0


def test_what_is_given_and_not_trained_yet_is_left_to_train(tmp_path):
    home, total = Home(tmp_path), 3000.0
    steering, sweep = steered(home, None, total_gpu_hours=total)
    plan = sweep.plan
    steering.begin()
    rows, allocation = run_rows(sweep), read_allocation(home.sweep("loo"), total)
    assert left_to_train(plan, rows, allocation) == 3000.0


class LatePool(RecordedPool):
    """An evaluation of a run is written while steering asks whether the pool is busy, after it has judged."""

    def __init__(self, home: Home, run_id: str) -> None:
        super().__init__()
        self.home, self.run_id, self.is_written = home, run_id, False

    def is_busy(self, run_id: str) -> bool:
        if not self.is_written:
            self.is_written = True
            rng = np.random.default_rng(6)
            row = eval_row(450.0, (0.61, 1.92, 480.0), rng)
            steps = [train_row(25.0 * step, rng) | {"truncated": 0.17} for step in range(1, 25)]
            with self.home.run(self.run_id).metrics.open("a") as file:
                file.write("".join(json.dumps(one) + "\n" for one in [*steps, row]))
            write_state(self.home, self.run_id, "done", compute=450.0)
        return False


def test_an_evaluation_that_comes_between_judging_and_deciding_is_judged_the_next_time(tmp_path):
    home, run_id = Home(tmp_path), planned_run("loo-curriculum", 0).id
    steering, sweep = steered(home, Stop(), total_gpu_hours=3000.0)
    steering.begin()
    trained_to(sweep, 400.0)
    assert steering.steer(LatePool(home, run_id)) == []
    (said,) = steering.steer(RecordedPool())
    assert said.startswith("loo-curriculum, seed 0: flagged: 17% of its answers are truncated, after 9 readings")


WRONG = '{"total_gpu_hours": "many", "finished": "", "closing": {}, "rounds": []}'


@pytest.mark.parametrize("content", ["{", "[]", '{"rounds": 3}', '{"rounds": [{"extensions": []}]}', WRONG])
def test_a_broken_file_of_rounds_says_what_to_do(tmp_path, content):
    (tmp_path / "allocation.json").write_text(content)
    said = r"allocation\.json: not a list of rounds .* delete it, .* on top of what is trained"
    with pytest.raises(AblationsError, match=said):
        read_allocation(tmp_path, 2000.0)
