"""What a pool makes of jobs that are lost with their machine, and of equal failures, at a site that a test plays."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field

import pytest
from fixtures_home import BUDGET, make_home, write_state

from ablations.home.cancellation import Cancellation
from ablations.home.state import State
from ablations.pools import command_pool
from ablations.pools.command_pool import CommandPool
from ablations.pools.equal_failures import RunsHeld, equal_failures
from ablations.pools.pool import Ended
from ablations.signals import handled


@dataclass
class Job:
    why: str = ""
    is_lost: bool = False

    def done(self):
        return True


@dataclass
class PlayedSite:
    """Each job is over at once, as `job` says; `began` has the runs of all jobs."""

    job: Job
    state: str = ""
    sweep: object = None
    began: list[str] = field(default_factory=list)
    name = ""

    def start(self, run_id, budget_gpu_hours):
        self.began.append(run_id)
        if self.state:
            write_state(self.sweep.home, run_id, self.state, compute=0.5 * BUDGET, message="no data at step 3")
        return self.job

    def ask_to_stop(self, run_id):
        pass


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(command_pool, "RUNS_POLL_S", 0.0)
    return make_home(tmp_path, seeds=(0, 1), fraction=0.5, state="stale")


def pool_at(site, sweep, **more):
    cancelled = Cancellation(sweep.folder / "cancelled")
    return CommandPool(home=sweep.home, site=site, jobs=1, cancelled=cancelled, **more)


@pytest.mark.parametrize("state", ["", "failed"])
def test_a_run_that_is_lost_again_and_again_without_a_step_is_given_up(sweep, state):
    """Also one that has failed because it lost a node, which is no failure of its own."""
    run_id = sweep.plan.variants[0].runs[0].id
    site = PlayedSite(Job(why="its node is gone", is_lost=True), state=state, sweep=sweep)
    pool = pool_at(site, sweep, holds=True)
    pool.add(run_id, BUDGET)
    said = [event.why for event in pool.work() if isinstance(event, Ended)]
    assert said == ["its node is gone; it resumes from its last checkpoint"] * 2 + [
        "its node is gone; lost 3 times in a row without completing a step; giving up"
    ]
    assert site.began == [run_id] * 3


def test_why_a_job_could_not_begin_is_said_once(sweep):
    site, run_id = PlayedSite(Job(why="node 2 does not see /home")), sweep.plan.variants[0].runs[0].id
    pool = pool_at(site, sweep)
    pool.add(run_id, BUDGET)
    assert [event.why for event in pool.work() if isinstance(event, Ended)] == ["node 2 does not see /home"]


@pytest.mark.parametrize(("holds", "num_begun"), [(True, 3), (False, 6)])
def test_equal_failures_hold_the_runs_that_wait_where_the_site_asks_for_it(sweep, holds, num_begun):
    site = PlayedSite(Job(), state="failed", sweep=sweep)
    pool = pool_at(site, sweep, holds=holds)
    runs = [run.id for variant in sweep.plan.variants for run in variant.runs]
    assert len(runs) == 6
    for run_id in runs:
        pool.add(run_id, BUDGET)
    if holds:
        with pytest.raises(RunsHeld, match=r"3 runs in a row failed: no data at step 3; 3 runs not started"):
            list(pool.work())
    else:
        list(pool.work())
    assert len(site.began) == num_begun


def test_equal_failures_hold_nothing_once_no_run_waits(sweep):
    site, runs = PlayedSite(Job(), state="failed", sweep=sweep), sweep.plan.variants[0].runs
    pool = pool_at(site, sweep, holds=True)
    for run in [*runs, *sweep.plan.variants[1].runs][:3]:
        pool.add(run.id, BUDGET)
    list(pool.work())
    assert len(site.began) == 3


@dataclass
class FailingSite(PlayedSite):
    """Each job fails as the next of `ends` says: its step, and its message."""

    ends: tuple[tuple[int, str], ...] = ()

    def start(self, run_id, budget_gpu_hours):
        step, message = self.ends[len(self.began)]
        self.began.append(run_id)
        write_state(self.sweep.home, run_id, "failed", compute=25.0 * step, message=message)
        return self.job


@pytest.mark.parametrize(
    ("ends", "more", "num_begun"),
    [
        ([(0, "no data")] * 6, {}, 2),
        ([(0, "no data at line 1"), (0, "no data at line 2")] * 3, {}, 2),  # equal but for numbers
        ([(0, "a"), (0, "b"), (0, "b"), (0, "b")], {}, 3),
        ([(0, "no data")] * 6, {"has_trained": True}, 6),  # an earlier command has trained runs of this sweep
        ([(5, "no data")] * 6, {}, 6),  # they train, and so would others
        ([(5, "no data"), *[(0, "no data")] * 5], {}, 6),
        ([(0, "no data")] * 6, {"has_trained": True, "holds": True}, 3),
        ([(0, "a"), (0, "b")] * 3, {}, 6),
    ],
)
def test_two_equal_failures_hold_the_runs_that_wait_until_a_run_has_trained(
    tmp_path, monkeypatch, ends, more, num_begun
):
    monkeypatch.setattr(command_pool, "RUNS_POLL_S", 0.0)
    sweep = make_home(tmp_path, seeds=(0, 1), state="pending")
    for run_id in (run.id for variant in sweep.plan.variants for run in variant.runs):
        write_state(sweep.home, run_id, "pending", compute=0.0)
    site = FailingSite(Job(), sweep=sweep, ends=tuple(ends))
    pool = pool_at(site, sweep, **more)
    for run_id in (run.id for variant in sweep.plan.variants for run in variant.runs):
        pool.add(run_id, BUDGET)
    if num_begun < 6:
        with pytest.raises(
            RunsHeld, match=rf"runs in a row failed: .*; {6 - num_begun} runs not started. Fix the cause"
        ):
            list(pool.work())
    else:
        list(pool.work())
    assert len(site.began) == num_begun


def test_failures_are_equal_but_for_their_numbers_and_nothing_between():
    failed = [(State.FAILED, f"no data at step {step}") for step in range(3)]
    assert equal_failures(failed) == "no data at step 2"
    assert equal_failures([*failed[:2], (State.DONE, ""), failed[2]]) is None
    assert equal_failures([*failed[:2], (State.FAILED, "no GPU")]) is None
    assert equal_failures(failed[:2]) is None


@dataclass
class InterruptedSite:
    """A signal comes while a run is started; the run ends when it is asked to stop."""

    number: signal.Signals
    asked: list[str] = field(default_factory=list)
    blocked: set[int] = field(default_factory=set)
    name = ""

    def start(self, run_id, budget_gpu_hours):
        os.kill(os.getpid(), self.number)
        text = "import signal; print(*map(int, signal.pthread_sigmask(signal.SIG_BLOCK, ())))"
        self.blocked |= set(map(int, subprocess.check_output([sys.executable, "-c", text]).split()))
        return self

    def done(self):
        return bool(self.asked)

    def ask_to_stop(self, run_id):
        self.asked.append(run_id)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_a_run_starts_reaches_the_pool_and_not_the_run(sweep, number):
    """Also in a process with other threads, to one of which the kernel gives the signal."""
    site, over = InterruptedSite(number), threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    pool, run_id = pool_at(site, sweep), sweep.plan.variants[0].runs[0].id
    pool.add(run_id, BUDGET)
    with handled(signal.default_int_handler, signal.SIGTERM), pytest.raises(KeyboardInterrupt):
        list(pool.work())
    over.set()
    thread.join()
    assert site.asked == [run_id]
    assert site.blocked == {signal.SIGINT}, "only `kill` may stop a run"
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
