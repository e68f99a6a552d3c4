"""The wall clock: real processes keep the promises of the schedules, and whatever dies, the run says so and goes on."""

import copy
import math
import multiprocessing
import os
import re
import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import torch
from trainer.attempts import attempt
from trainer.processes.agents import is_alive, unit_processes
from trainer.runs import PROCESSES
from trainer.tiny import SETTINGS, fixed_policy, maker_of, random_policy, tiny_recipe
from trainer.wall import (
    assert_no_group_is_lost_or_used_twice,
    killed_with_a_group,
    schedule_recipe,
    take_steps,
    versions_of,
    wall_cluster,
    wall_recipe,
)
from waiting import wait_until

from scalerl.errors import Interrupted
from scalerl.generator.request import Request
from scalerl.model.build import new_policy
from scalerl.processes import fleet
from scalerl.processes.generator_process import GeneratorProcess, GeneratorWork
from scalerl.processes.launch import local_units
from scalerl.processes.messages import NewRequests, NewWeights, Paused, Resume, from_bytes, to_bytes
from scalerl.processes.remote_learner import LOOK_S
from scalerl.processes.time_sheet import Pastime, ReportedAccount, TimeSheet
from scalerl.recipe import ResolvedRecipe
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.tasks import make_task
from scalerl.tokens import SymbolTokenizer
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID
from scalerl.weights.shared_memory import SharedMemoryStore


def running(recipe, policy=None, **settings):
    """A cluster of that recipe whose weights go through the memory of this machine."""
    policy = policy or random_policy(recipe)
    return wall_cluster(recipe, policy, SharedMemoryStore(policy.exported_weights()), **settings)


# --- schedules ------------------------------------------------------------------------------------------------------


def test_pipeline_takes_weights_mid_sequence_and_no_token_is_more_than_k_steps_old():
    k = 2
    recipe = schedule_recipe("pipeline", k, generators=2)
    with running(recipe) as cluster:
        steps = take_steps(cluster, 40)
        while not any(len(set(one.versions.tolist())) > 1 for one in rollouts_of(steps)):
            steps += take_steps(cluster, 1)
        assert [step.version for step in steps] == list(range(len(steps)))
        assert max(step.version - min(versions_of(step)) for step in steps) <= k
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
    assert all((np.diff(rollout.versions) >= 0).all() for rollout in rollouts_of(steps))


def rollouts_of(steps):
    return [rollout for step in steps for group in step.groups for rollout in group.rollouts]


def test_ppo_takes_k_steps_on_what_one_frozen_policy_generated():
    recipe = schedule_recipe("ppo_off_policy", 3, generators=2)
    with running(recipe) as cluster:
        steps = take_steps(cluster, 8)
        assert [versions_of(step) for step in steps] == [{n // 3 * 3} for n in range(8)]
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
        consumed = [group.prompt.id for step in steps for group in step.groups]
        assert consumed == cluster.drawn[: len(consumed)]


def test_every_token_has_the_log_probability_that_the_weights_it_is_stamped_with_give_it():
    recipe = schedule_recipe("pipeline", 8, generators=2, length_control={"type": "none"}, batch={"prompts": 40})
    tokens = (5, END_THINK_ID, EOS_ID)

    def logits(version):
        return (math.sin(version), math.cos(version), math.sin(3 * version) - 1)

    policy = fixed_policy(recipe, dict(zip(tokens, logits(0), strict=True)))
    with running(recipe, policy) as cluster:
        for version in range(1, 400):
            if cluster.has_room:
                cluster.admit()
            newer = fixed_policy(recipe, dict(zip(tokens, logits(version), strict=True)))
            policy.load_state_dict(newer.state_dict())
            cluster.learner.version = version
            cluster.push_weights()
            cluster.catch_up()
        while cluster.is_generating:
            cluster.advance()
    seen = set()
    for _, group in cluster.ready:
        for rollout in group.rollouts:
            for token, logprob, version in zip(rollout.tokens, rollout.logprobs, rollout.versions, strict=True):
                of = dict(zip(tokens, logits(int(version)), strict=True))
                expected = of[int(token)] - math.log(sum(math.exp(value) for value in of.values()))
                assert logprob == pytest.approx(expected, abs=1e-5)
                seen.add(int(version))
    assert len(seen) > 50


def test_tokens_and_flops_are_counted_as_on_the_virtual_clock():
    recipe = schedule_recipe("ppo_off_policy", 2, length_control={"type": "none"}, batch={"prompts": 2})
    with running(recipe, fixed_policy(recipe, {5: 0.0})) as cluster:
        steps = take_steps(cluster, 2)
    # One layer of width 16, a feed-forward layer as wide, 48 tokens in the vocabulary. Every rollout runs to its limit
    # of nine tokens: four thoughts, the end of thinking never comes, so all nine count.
    n = 2 * 48 * 16 + 4 * 16 * 16 + 3 * 16 * 16 + 2 * 16 + 16
    flops = tokens = 0
    for step in steps:
        for group in step.groups:
            prompt, count, own = len(group.prompt.tokens), len(group.rollouts), 9
            assert {len(rollout.tokens) for rollout in group.rollouts} == {own}
            tokens += count * own
            flops += 2 * n * (count * own + prompt) + 64 * count * sum(range(prompt, prompt + own))
            length = prompt + own
            flops += 3 * count * (2 * n * length + 64 * sum(range(1, length + 1)))
    assert cluster.clock.tokens == tokens
    assert cluster.clock.flops == flops


def test_a_generator_says_which_groups_have_not_begun_and_under_which_weights_they_will():
    recipe = wall_recipe(slots=4, length_control={"type": "none"})
    policy = fixed_policy(recipe, {5: 0.0})  # every rollout runs to its limit, so a group's four end together
    task = make_task(recipe.tasks[0], SymbolTokenizer())
    store = SharedMemoryStore(policy.exported_weights())
    ours, theirs = multiprocessing.Pipe()
    orders = GeneratorWork(maker=maker_of(recipe, task, policy), store=store, threads=1)
    for group in range(3):
        requests = [
            Request(prompt=task.train[group], group=group, index=index, seed=4 * group + index) for index in range(4)
        ]
        ours.send_bytes(to_bytes(NewRequests(requests=requests)))
    store.publish(1, 7, policy.exported_weights())
    ours.send_bytes(to_bytes(NewWeights(publication=1, version=7)))
    ours.send_bytes(to_bytes(Resume()))

    def work():
        with suppress(EOFError):
            GeneratorProcess(orders, theirs).work()

    thread = threading.Thread(target=work)
    thread.start()
    answers = [from_bytes(ours.recv_bytes()) for _ in range(5)]
    ours.close()
    thread.join(10)
    assert answers[0] == Paused()
    reports = answers[1:]
    assert [len(report.finished) for report in reports] == [0, 4, 4, 4]
    assert [report.first_waiting for report in reports] == [0, 1, 2, None]
    assert {(report.version, report.publication) for report in reports} == {(7, 1)}
    # Nine tokens a rollout: four thoughts, the end of thinking never comes, and what the limit leaves.
    assert [report.work.sequences for report in reports] == [0, 36, 36, 36]


# --- the clock ------------------------------------------------------------------------------------------------------


def test_a_time_sheet_by_hand():
    now = [10.0]
    sheet = TimeSheet(clock=lambda: now[0])
    switches: list[tuple[Pastime, float]] = [
        ("decode", 11.0),
        ("wait_prompts", 13.0),
        ("decode", 13.5),
        ("off", 17.5),
        ("wait_prompts", 20.0),
    ]
    for activity, at in switches:
        now[0] = at
        sheet.switch(activity)
    now[0] = 20.25
    assert sheet.seconds() == {"decode": 2.0 + 4.0, "wait_prompts": 0.5 + 0.25}
    assert sheet.elapsed() == 20.25 - 10.0 - (1.0 + 2.5)
    now[0] = 21.0
    sheet.switch("sync", was="wait_weights")  # the last order was new weights
    assert sheet.seconds() == {"decode": 6.0, "wait_prompts": 0.75, "wait_weights": 0.75}


def test_between_two_reports_a_generator_does_what_it_last_said():
    account = ReportedAccount(earlier={"decode": 10.0})
    account.report({"decode": 2.0, "sync": 0.5}, "decode")
    assert account.at(15.0) == {"decode": 14.5, "sync": 0.5}
    account.switch("dead", 15.0)
    account.replaced(18.0)
    assert account.at(18.5) == {"decode": 14.5, "sync": 0.5, "dead": 3.0, "wait_prompts": 0.5}
    account.report({"decode": 1.0}, "wait_prompts")  # the successor's own time
    assert account.at(19.5) == {"decode": 15.5, "sync": 0.5, "dead": 3.0, "wait_prompts": 0.5}
    # What a message says may be ahead of the clock by the time that messages take.
    assert sum(account.at(18.9).values()) == 19.0


def test_busy_and_idle_time_of_all_devices_make_up_the_elapsed_time_and_pauses_are_not_in_it():
    generators = 2
    with running(schedule_recipe("pipeline", 2, generators)) as cluster:
        with cluster.paused():
            cluster.catch_up()
            before, left = read_clocks(cluster), time.monotonic()
        least_s = most_s = 0.0
        for pause_s in (0.3, 0.0):
            newest = cluster.generators.newest.publication
            while any(record.taken <= newest for record in cluster.records):  # until then a generator may be waking
                take_steps(cluster, 1)
            began = time.monotonic()
            take_steps(cluster, 30)
            least_s += time.monotonic() - began
            take_steps(cluster, 1)
            compute, free = cluster.compute_gpu_hours, cluster.clock.trainer_free
            spent, utilisation = cluster.device_seconds(), cluster.model_flops_utilisation()
            with cluster.paused():
                most_s += time.monotonic() - left
                cluster.catch_up()
                passed = [now - then for now, then in zip(read_clocks(cluster), before, strict=True)]
                # Of the whole run, and as each generator has measured by itself.
                assert [least_s <= one <= most_s for one in passed] == [True] * (1 + generators), (
                    passed,
                    least_s,
                    most_s,
                )
                time.sleep(pause_s)
                left = time.monotonic()
        with cluster.paused():
            cluster.catch_up()
            generator_idle, trainer_idle = cluster.idle_shares()
            clock = cluster.clock
            assert generator_idle == pytest.approx(1 - clock.generator_busy / generators / clock.now)
            assert trainer_idle == pytest.approx(1 - clock.trainer_busy / clock.now)
            assert 0 <= trainer_idle < 1
            assert all(account.at(0.0)["decode"] > 0 for account in cluster.accounts.generators)
            assert before[0] + least_s <= free <= clock.now
            worked = spent["trainer"]["forward_backward"] + spent["trainer"]["coordinate"]
            assert worked <= clock.trainer_busy <= worked + clock.now - free
        assert compute == pytest.approx((generators + 1) * free / 3600, rel=1e-12)
        assert sum(spent["trainer"].values()) == pytest.approx(free, rel=1e-9)
        assert sum(spent["generator"].values()) == pytest.approx(generators * free, rel=0.01)
        assert min(seconds for role in spent.values() for seconds in role.values()) >= 0
        assert spent["generator"].keys() >= {"decode", "sync"}
        assert spent["trainer"].keys() >= {"forward_backward", "coordinate"}
        assert utilisation is not None
        assert all(0 < share < 1 for share in utilisation.values())


def read_clocks(cluster):
    """Seconds on the clock of a paused cluster, and those that each generator has measured by itself."""
    return [cluster.clock.now, *(sum(account.at(0.0).values()) for account in cluster.accounts.generators)]


# --- shared weights -------------------------------------------------------------------------------------------------


def test_the_trainer_waits_before_it_writes_where_a_generator_may_still_read():
    recipe = schedule_recipe("pipeline", 8)
    with running(recipe) as cluster, cluster.paused():
        process = cluster.fleet.process_ids[0]
        os.kill(process, signal.SIGSTOP)  # it takes nothing any more
        cluster.push_weights()
        cluster.push_weights()
        waited = []

        def answers(*, wait_s):
            waited.append(wait_s)
            raise TimeoutError

        cluster.fleet.answers = answers
        with pytest.raises(TimeoutError):
            cluster.push_weights()
        assert waited == [LOOK_S]


# --- state ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cluster_that_takes_over_a_state_goes_on_with_every_rollout_in_flight(tmp_path):
    recipe = schedule_recipe("pipeline", 3, generators=2)
    with running(recipe) as cluster:
        steps = take_steps(cluster, 7)
        while True:
            with cluster.paused():
                torch.save(cluster.state_dict(), tmp_path / "state.pt")
            state = torch.load(tmp_path / "state.pt", weights_only=False)
            if any(generator["requests"] for generator in state["generators"]):
                break  # else nothing could be lost: both had decoded all that they may while this process waited
            steps += take_steps(cluster, 1)
        drawn, clock = cluster.drawn, cluster.clock
    with running(recipe, new_policy(recipe), state=copy.deepcopy(state)) as again:
        assert again.clock.flops >= clock.flops > 0
        with again.paused():
            kept = again.state_dict()["generators"]
        assert [one["version"] for one in kept] >= [one["version"] for one in state["generators"]]
        steps += take_steps(again, 7)
        assert [step.version for step in steps] == list(range(len(steps)))
        assert max(step.version - min(versions_of(step)) for step in steps) <= 3
        assert_no_group_is_lost_or_used_twice(again, steps, drawn + again.drawn)
        assert again.clock.trainer_free > clock.trainer_free


# --- death ----------------------------------------------------------------------------------------------------------


def test_the_groups_of_a_killed_generator_are_generated_again_and_it_is_started_again():
    generators = 2
    recipe = schedule_recipe("pipeline", 8, generators, batch={"prompts": 8})
    with running(recipe) as cluster:
        steps = take_steps(cluster, 8)
        killed = killed_with_a_group(cluster, 1, after=3)
        while not killed:
            steps += take_steps(cluster, 1)
        wait_until(lambda: cluster.catch_up() or cluster.news, "word of the death", limit_s=10, every_s=0.01)
        while cluster.records[-1].stage != "at work":
            steps += take_steps(cluster, 1)
        steps += take_steps(cluster, 8)
        (process,) = killed
        again = r"Restarting \(attempt 1 of 3\)\. Its [1-9]\d* unfinished groups will be generated again"
        (told,) = cluster.news
        assert re.fullmatch(rf"generator {generators - 1} died \(signal 9\)\. {again}", told)
        assert [step.version for step in steps] == list(range(len(steps)))
        assert max(step.version - min(versions_of(step)) for step in steps) <= 8
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
        for group in (group for step in steps for group in step.groups):
            assert len(group.rollouts) == recipe.batch.generations
        assert not is_alive(process)
        assert cluster.records[-1].version > 8
        spent = cluster.device_seconds()["generator"]
        assert spent["dead"] > 0.1  # a process takes longer than that to start
        assert sum(spent.values()) == pytest.approx(generators * cluster.clock.trainer_free, rel=0.01)
        processes = cluster.fleet.process_ids
    assert not any(is_alive(process) for process in processes)


def test_a_generator_that_dies_too_often_is_left_dead_and_the_last_one_ends_the_run(monkeypatch):
    monkeypatch.setattr(fleet, "MOST_RESTARTS", 0)
    recipe = schedule_recipe("pipeline", 8, generators=2)
    with running(recipe) as cluster:
        killed = killed_with_a_group(cluster, 1)
        steps = take_steps(cluster, 2)
        while not killed or not cluster.news:
            steps += take_steps(cluster, 1)
        steps += take_steps(cluster, 20)
        assert [record.stage for record in cluster.records] == ["at work", "gone"]
        assert cluster.news[0].startswith("generator 1 died (signal 9). Not restarting: all 0 restarts are used. Its ")
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
        os.kill(cluster.fleet.process_ids[0], signal.SIGKILL)
        with pytest.raises(Interrupted, match=r"^generator 0 died \(signal 9\), and no other generator is left$"):
            take_steps(cluster, 100_000)


def test_a_generator_that_hangs_is_ended_and_started_again(monkeypatch):
    recipe = schedule_recipe("pipeline", 8, generators=2)
    with running(recipe) as cluster:
        steps = take_steps(cluster, 2)
        stopped, kill_if_silent = cluster.fleet.process_ids[1], cluster.fleet.kill_if_silent

        def soon(number, owed, limit_s):  # the others may have to wait for a processor
            kill_if_silent(number, owed, 1.5 if cluster.fleet.process_ids[number] == stopped else limit_s)

        monkeypatch.setattr(cluster.fleet, "kill_if_silent", soon)
        os.kill(stopped, signal.SIGSTOP)
        while not cluster.news:
            steps += take_steps(cluster, 1)
        told = r"generator 1 was killed: silent for ([2-9]|\d\d+) s while (decoding|taking)"
        assert re.match(told, cluster.news[0])
        steps += take_steps(cluster, 3)
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)


def test_the_wait_for_a_stopped_generator_is_no_compute(monkeypatch):
    monkeypatch.setattr(fleet, "LIFELESS_LIMIT_S", fleet.MISSING_S + 1.0)
    with running(schedule_recipe("pipeline", 8)) as cluster:
        steps = take_steps(cluster, 2)
        before = cluster.compute_gpu_hours
        os.kill(cluster.fleet.process_ids[0], signal.SIGSTOP)
        while len(cluster.news) < 2:
            steps += take_steps(cluster, 1)
        assert cluster.news[0].startswith("generator 0 was killed: silent for ")
        assert cluster.news[1].endswith(" s for its generators, dead or silent, which is not counted as compute")
        assert 3600 / 2 * (cluster.compute_gpu_hours - before) < fleet.MISSING_S  # seconds of both devices
        spent = {role: sum(seconds.values()) for role, seconds in cluster.device_seconds().items()}
        assert sum(spent.values()) == pytest.approx(3600 * cluster.compute_gpu_hours, rel=0.01)
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)


BUDGET = 0.0015
"""Device-hours: 2.7 seconds of two processes, hundreds of steps."""


def new_run(path):
    recipe = schedule_recipe("pipeline", 2, checkpoint_every_s=0, evaluation={"every": BUDGET / 3, "samples": 2})
    folder = RunFolder(path)
    folder.create(recipe, seed=0)
    return folder


def start(folder, warm_starts, budget=BUDGET):
    process = PROCESSES.Process(target=attempt, args=(folder.path, budget, warm_starts, None))
    process.start()
    return process


def finish(folder, warm_starts, budget=BUDGET):
    """Train to the budget, and check that the log is that of one run."""
    process = start(folder, warm_starts, budget)
    process.join(200)
    assert process.exitcode == 0
    rows = list(read_rows(folder.metrics))
    steps = [row for row in rows if row["kind"] == "train"]
    assert [row["step"] for row in steps] == list(range(1, len(steps) + 1))
    assert all(int(lag) <= 2 for row in steps for lag in row["staleness"])
    for column in ("compute_gpu_hours", "flops", "tokens"):
        values = [row[column] for row in rows]
        assert values == sorted(values)
    assert [0.0, *(row["compute_gpu_hours"] for row in steps)][-2] < budget <= steps[-1]["compute_gpu_hours"]
    assert folder.read_status().state == "done"
    return rows


@pytest.fixture(scope="module")
def warm_starts(tmp_path_factory):
    return tmp_path_factory.mktemp("warm_starts")


def in_the_middle(folder, process, step):
    """Wait until the run has taken this step; the process id of its generator."""
    wait_until(lambda: folder.read_status().step >= step and folder.checkpoint.exists(), "the step and a checkpoint")
    (generator,) = unit_processes(process.pid)
    return generator


@pytest.mark.slow
def test_a_run_leaves_a_curve(tmp_path, warm_starts):
    folder, budget, rows, evaluations = new_run(tmp_path / "run"), 0.0, [], []
    while len(evaluations) < 3:  # on a busy machine the first step may take more than one budget
        budget += BUDGET
        rows = finish(folder, warm_starts, budget)
        evaluations = [row for row in rows if row["kind"] == "eval"]
    assert [row["weight_version"] for row in evaluations] == [row["step"] for row in evaluations]
    assert_adds_up(rows)
    last = [row for row in rows if row["kind"] == "train"][-1]
    # What was on the clock and what was not make up the seconds of work; one process decodes and one trains.
    elapsed = last["compute_gpu_hours"] * 3600 / 2
    assert elapsed + sum(last["off_clock_s"].values()) == pytest.approx(last["wall_s"], rel=0.01, abs=0.1)


def assert_adds_up(rows):
    """The device-seconds of every step add up to its compute."""
    for row in rows:
        if row["kind"] == "train":
            spent = sum(seconds for role in row["device_s"].values() for seconds in role.values())
            assert spent == pytest.approx(3600 * row["compute_gpu_hours"], rel=0.01)


@pytest.mark.slow
def test_a_run_that_is_killed_and_then_asked_to_stop_leaves_no_process_and_resumes(tmp_path, warm_starts):
    folder = new_run(tmp_path / "run")
    process = start(folder, warm_starts, budget=1.0)
    generator = in_the_middle(folder, process, 3)
    process.kill()
    wait_until(lambda: not is_alive(generator), "the generator's end")
    process.join(10)
    killed_at = folder.read_status().step
    process = start(folder, warm_starts, budget=1.0)
    generator = in_the_middle(folder, process, killed_at + 3)
    os.kill(generator, signal.SIGTERM)  # as a batch system does; Ctrl-C is sent by tests/integration/test_wall.py
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)
    process.join(100)
    assert process.exitcode == 7
    assert not is_alive(generator)
    status = folder.read_status()
    assert (status.state, status.message) == ("cancelled", "asked to stop")
    rows = finish(folder, warm_starts, budget=status.compute_gpu_hours + BUDGET)
    assert rows[-1]["step"] > status.step


# --- settings -------------------------------------------------------------------------------------------------------


def test_a_cluster_without_a_type_is_modelled_and_compute_says_which_it_is():
    virtual = ResolvedRecipe.model_validate(SETTINGS)
    assert (virtual.cluster.type, virtual.cluster.compute_name) == ("virtual", "modelled GPU-hours")
    wall = wall_recipe()
    assert (wall.cluster.type, wall.cluster.compute_name) == ("wall", "measured device-hours")
    assert wall.identity(0) != virtual.identity(0)


def test_threads_of_all_processes_are_counted():
    wall = wall_recipe().model_dump()
    wall["cluster"] |= {"generators": 3, "generator_threads": 2}
    assert ResolvedRecipe.model_validate(wall | {"threads": 4}).total_threads == 4 + 3 * 2
    assert tiny_recipe(threads=4).total_threads == 4
    wall["cluster"] |= {"evaluator": True}
    assert ResolvedRecipe.model_validate(wall | {"threads": 4}).total_threads == 4 + (3 + 1) * 2


def test_an_evaluator_is_a_unit_and_another_run_and_none_leaves_runs_their_ids():
    plain, wall = wall_recipe(generators=3), wall_recipe(generators=3).model_dump()
    wall["cluster"] |= {"evaluator": True}
    evaluated = ResolvedRecipe.model_validate(wall)
    names = ["trainer 0", "evaluator", "generator 0", "generator 1", "generator 2"]
    assert [unit.name for unit in local_units(evaluated)] == names
    assert [unit.name for unit in local_units(plain)] == [name for name in names if name != "evaluator"]
    assert "evaluator" not in plain.canonical()["cluster"]
    assert evaluated.identity(0) != plain.identity(0)
