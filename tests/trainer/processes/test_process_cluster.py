"""The wall clock: real processes keep the promises of the schedules, and whatever dies, the run says so and goes on."""

import copy
import math
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from trainer.attempts import attempt
from trainer.tiny import SETTINGS, fixed_policy, generator_of, random_policy, tiny_recipe
from waiting import wait_until

from scalerl.generator.request import Request
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.processes import GeneratorDied, WallCluster
from scalerl.processes.generator_process import GeneratorProcess, Outfit
from scalerl.processes.messages import NewRequests, NewWeights, Paused, Resume, from_bytes, to_bytes
from scalerl.processes.time_sheet import Activity, TimeSheet
from scalerl.prompts.pool import PromptPool
from scalerl.recipe import ResolvedRecipe
from scalerl.run.checkpoint import checkpoint_exists
from scalerl.run.metrics import read_rows
from scalerl.run.run_folder import RunFolder
from scalerl.schedules import SCHEDULES
from scalerl.tasks import make_task
from scalerl.tokens import SymbolTokenizer
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID
from scalerl.weights.shared_memory import SharedMemoryChannel

pytestmark = pytest.mark.timeout(120)

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["scalerl.run.train"])


def wall_recipe(generators=1, slots=12, **changes):
    recipe = tiny_recipe(**changes).model_dump()
    cluster = {"type": "wall", "generators": generators, "slots": slots}
    return ResolvedRecipe.model_validate(recipe | {"cluster": cluster})


def schedule_recipe(schedule, k, generators=1, **changes):
    settings = {"off_policy": {"type": schedule, "k": k}, "zero_variance": "keep", "curriculum": {"type": "uniform"}}
    return wall_recipe(generators=generators, **settings | changes)


@contextmanager
def running(recipe, policy, *, state=None):
    """A cluster of that recipe whose processes end with the block; started unless it first takes over a state."""
    task = make_task(recipe.tasks[0], SymbolTokenizer())
    cluster = WallCluster(
        recipe=recipe,
        generators=[
            generator_of(recipe, task, policy, slots=recipe.cluster.slots) for _ in range(recipe.cluster.generators)
        ],
        channel=SharedMemoryChannel(policy.exported_weights()),
        off_clock=generator_of(recipe, task, policy, slots=512),
        learner=TorchLearner(policy, recipe),
        pool=PromptPool(task.train, recipe.curriculum, np.random.default_rng(0)),
        task=task,
        rng=np.random.default_rng(1),
    )
    cluster.drawn = []
    draw = cluster.pool.draw

    def watched_draw():
        prompt = draw()
        cluster.drawn.append(prompt.id)
        return prompt

    cluster.pool.draw = watched_draw
    try:
        if state is not None:
            cluster.load_state_dict(state)
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def take_steps(cluster, count):
    return [SCHEDULES[cluster.recipe.off_policy.type](cluster) for _ in range(count)]


def versions_of(step):
    return np.concatenate([rollout.versions for group in step.groups for rollout in group.rollouts])


def assert_no_group_is_lost_or_used_twice(cluster, steps, drawn):
    consumed = [group.prompt.id for step in steps for group in step.groups]
    inside = [group.prompt.id for _, group in cluster.ready] + [a.prompt.id for a in cluster.assembling.values()]
    inside += [group.prompt.id for batch in cluster.pending for group in batch]
    assert Counter(consumed + inside) == Counter(drawn)


# --- schedules ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "generators"), [(1, 1), (2, 2), (8, 1)])
def test_pipeline_takes_weights_mid_sequence_and_no_token_is_more_than_k_steps_old(k, generators):
    recipe = schedule_recipe("pipeline", k, generators)
    with running(recipe, random_policy(recipe)) as cluster:
        steps = take_steps(cluster, 40)
        assert [step.version for step in steps] == list(range(40))
        assert max(step.version - versions_of(step).min() for step in steps) <= k
        assert_no_group_is_lost_or_used_twice(cluster, steps, cluster.drawn)
    rollouts = [rollout for step in steps for group in step.groups for rollout in group.rollouts]
    assert all((np.diff(rollout.versions) >= 0).all() for rollout in rollouts)
    assert any(len(set(rollout.versions.tolist())) > 1 for rollout in rollouts)


@pytest.mark.parametrize("generators", [1, 2])
def test_ppo_takes_k_steps_on_what_one_frozen_policy_generated(generators):
    recipe = schedule_recipe("ppo_off_policy", 3, generators)
    with running(recipe, random_policy(recipe)) as cluster:
        steps = take_steps(cluster, 8)
        assert [set(versions_of(step).tolist()) for step in steps] == [{n // 3 * 3} for n in range(8)]
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
    channel = SharedMemoryChannel(policy.exported_weights())
    ours, theirs = multiprocessing.Pipe()
    outfit = Outfit(
        connection=theirs,
        generator=pickle.dumps(generator_of(recipe, task, policy, slots=4)),
        channel=channel,
        seconds=torch.zeros(2, dtype=torch.float64),
        threads=1,
    )
    for group in range(3):
        requests = [
            Request(prompt=task.train[group], group=group, index=index, seed=4 * group + index) for index in range(4)
        ]
        ours.send_bytes(to_bytes(NewRequests(requests=requests)))
    channel.publish(1, 7, policy.exported_weights())
    ours.send_bytes(to_bytes(NewWeights(publication=1)))
    ours.send_bytes(to_bytes(Resume()))

    def work():
        with suppress(EOFError):
            GeneratorProcess(outfit).work()

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
    switches: list[tuple[Activity, float]] = [
        ("busy", 11.0),
        ("idle", 13.0),
        ("busy", 13.5),
        ("off", 17.5),
        ("idle", 20.0),
    ]
    for activity, at in switches:
        now[0] = at
        sheet.switch(activity)
    now[0] = 20.25
    assert sheet.seconds("busy") == 2.0 + 4.0
    assert sheet.seconds("idle") == 0.5 + 0.25
    assert sheet.seconds("off") == 1.0 + 2.5
    assert sheet.seconds("busy", "idle", "off") == 10.25


@pytest.mark.parametrize(("schedule", "generators"), [("pipeline", 1), ("ppo_off_policy", 2)])
def test_busy_and_idle_time_of_all_devices_make_up_the_elapsed_time_and_pauses_are_not_in_it(schedule, generators):
    recipe = schedule_recipe(schedule, 2, generators)
    with running(recipe, random_policy(recipe)) as cluster:
        started = time.monotonic()
        take_steps(cluster, 30)
        with cluster.paused():
            elapsed = time.monotonic() - started
            time.sleep(0.3)
        started = time.monotonic()
        take_steps(cluster, 30)
        compute, free = cluster.compute_gpu_hours, cluster.clock.trainer_free
        with cluster.paused():
            elapsed += time.monotonic() - started
            cluster.catch_up()
            # The handshakes of two pauses lie between the clocks of the processes.
            assert cluster.clock.now == pytest.approx(elapsed, abs=0.1)
            for busy, idle in cluster.fleet.seconds.tolist():
                assert busy > 0
                assert busy + idle == pytest.approx(elapsed, abs=0.1)
            generator_idle, trainer_idle = cluster.idle_shares()
            clock = cluster.clock
            assert generator_idle == pytest.approx(1 - clock.generator_busy / generators / clock.now)
            assert trainer_idle == pytest.approx(1 - clock.trainer_busy / clock.now)
            assert 0 <= trainer_idle < 1
        assert compute == pytest.approx((generators + 1) * free / 3600, rel=1e-12)
        assert free == pytest.approx(elapsed, abs=0.1)


def test_generators_of_ppo_idle_while_the_trainer_works_and_the_other_way_round():
    recipe = schedule_recipe("ppo_off_policy", 8, batch={"prompts": 8, "generations": 8})
    with running(recipe, random_policy(recipe)) as cluster:
        take_steps(cluster, 24)
        generator_idle, trainer_idle = cluster.idle_shares()
        # Taking turns, each works at most when the other does not.
        assert generator_idle + trainer_idle > 0.8


def test_nothing_is_decoded_and_no_time_passes_during_a_pause():
    recipe = schedule_recipe("pipeline", 8)
    with running(recipe, random_policy(recipe)) as cluster:
        take_steps(cluster, 3)
        with cluster.paused():
            cluster.catch_up()
            before = copy.copy(vars(cluster.clock))
            time.sleep(0.3)
            cluster.catch_up()
            assert vars(cluster.clock) == before
        take_steps(cluster, 1)
        assert cluster.clock.now > before["now"]


# --- shared weights -------------------------------------------------------------------------------------------------


def test_a_publication_leaves_the_one_before_as_it_is_and_keeps_types_and_shapes():
    first = {"a": torch.randn(3, 5), "b": torch.randn(7, dtype=torch.bfloat16), "c": torch.tensor(2.5)}
    second = {name: tensor + 1 for name, tensor in first.items()}
    shared = SharedMemoryChannel(first)
    shared.publish(4, 40, first)
    shared.publish(5, 41, second)
    for publication, version, state in ((4, 40, first), (5, 41, second)):
        stamped, read = shared.receive(publication)
        assert stamped == version
        assert all(torch.equal(read[name], tensor) for name, tensor in state.items())
        assert {name: tensor.dtype for name, tensor in read.items()} == {n: t.dtype for n, t in state.items()}


def test_the_trainer_waits_before_it_writes_where_a_generator_may_still_read():
    recipe = schedule_recipe("pipeline", 8)
    with running(recipe, random_policy(recipe)) as cluster, cluster.paused():
        process = cluster.fleet.process_ids[0]
        os.kill(process, signal.SIGSTOP)  # it takes nothing any more
        cluster.push_weights()
        cluster.push_weights()
        waited = []

        def answers(*, wait):
            waited.append(wait)
            raise TimeoutError

        cluster.fleet.answers = answers
        with pytest.raises(TimeoutError):
            cluster.push_weights()
        assert waited == [True]


# --- state ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("schedule", "generators"), [("pipeline", 2), ("ppo_off_policy", 1)])
def test_a_cluster_that_takes_over_a_state_goes_on_with_every_rollout_in_flight(tmp_path, schedule, generators):
    recipe = schedule_recipe(schedule, 3, generators)
    with running(recipe, random_policy(recipe)) as cluster:
        steps = take_steps(cluster, 7)
        with cluster.paused():
            torch.save(cluster.state_dict(), tmp_path / "state.pt")
        drawn, clock = cluster.drawn, cluster.clock
    state = torch.load(tmp_path / "state.pt", weights_only=False)
    if schedule == "pipeline":  # else there would be nothing to lose
        assert sum(len(generator["requests"]) for generator in state["generators"]) > 0
    with running(recipe, new_policy(recipe), state=copy.deepcopy(state)) as again:
        assert again.clock.flops >= clock.flops > 0
        with again.paused():
            kept = again.state_dict()["generators"]
        assert [one["version"] for one in kept] >= [one["version"] for one in state["generators"]]
        steps += take_steps(again, 7)
        assert [step.version for step in steps] == list(range(14))
        assert max(step.version - versions_of(step).min() for step in steps) <= 3
        assert_no_group_is_lost_or_used_twice(again, steps, drawn + again.drawn)
        assert again.clock.trainer_free > clock.trainer_free


# --- death ----------------------------------------------------------------------------------------------------------


def test_a_generator_that_is_killed_is_noticed_and_named():
    recipe = schedule_recipe("pipeline", 8, generators=2)
    with running(recipe, random_policy(recipe)) as cluster:
        take_steps(cluster, 2)
        os.kill(cluster.fleet.process_ids[1], signal.SIGKILL)
        with pytest.raises(GeneratorDied, match=r"^generator process 1 died \(signal 9\)$"):
            take_steps(cluster, 100_000)


def test_generators_end_with_the_cluster():
    recipe = schedule_recipe("pipeline", 8, generators=2)
    with running(recipe, random_policy(recipe)) as cluster:
        processes = cluster.fleet.process_ids
        assert all(is_alive(process) for process in processes)
    assert not any(is_alive(process) for process in processes)


def is_alive(process):
    """Whether a process is there and not merely waiting to be buried."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


def generators_of(learner):
    """Process ids of the generators of a learner's process."""
    children = Path(f"/proc/{learner}/task/{learner}/children").read_text().split()
    return [int(child) for child in children if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


BUDGET = 0.0015
"""Device-hours: 2.7 seconds of two processes, hundreds of steps."""


def new_run(path, schedule):
    recipe = schedule_recipe(schedule, 2, checkpoint_every_s=0, evaluation={"every": BUDGET / 3, "samples": 2})
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
    process.join(60)
    assert process.exitcode == 0
    rows = list(read_rows(folder.metrics))
    steps = [row for row in rows if row["kind"] == "train"]
    assert [row["step"] for row in steps] == list(range(1, len(steps) + 1))
    assert all(int(lag) <= 2 for row in steps for lag in row["staleness"])
    for column in ("compute_gpu_hours", "flops", "tokens"):
        values = [row[column] for row in rows]
        assert values == sorted(values)
    assert steps[-2]["compute_gpu_hours"] < budget <= steps[-1]["compute_gpu_hours"]
    assert folder.read_status().state == "done"
    return rows


@pytest.fixture(scope="module")
def warm_starts(tmp_path_factory):
    return tmp_path_factory.mktemp("warm_starts")


def in_the_middle(folder, process):
    """Wait until the run has taken some steps; the process ids of its generators."""
    wait_until(
        lambda: folder.read_status().step >= 3 and checkpoint_exists(folder.checkpoint),
        "step 3 and a checkpoint",
    )
    generators = generators_of(process.pid)
    assert len(generators) == 1
    return generators


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["pipeline", "ppo_off_policy"])
def test_a_run_leaves_a_curve(tmp_path, warm_starts, schedule):
    rows = finish(new_run(tmp_path / "run", schedule), warm_starts)
    evaluations = [row for row in rows if row["kind"] == "eval"]
    assert len(evaluations) >= 3
    assert [row["weight_version"] for row in evaluations] == [row["step"] for row in evaluations]


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["pipeline", "ppo_off_policy"])
def test_a_run_whose_generator_is_killed_fails_with_the_reason_and_can_be_resumed(tmp_path, warm_starts, schedule):
    folder = new_run(tmp_path / "run", schedule)
    process = start(folder, warm_starts, budget=1.0)
    (generator,) = in_the_middle(folder, process)
    os.kill(generator, signal.SIGKILL)
    wait_until(lambda: folder.read_status().state == "failed", "the run to fail")
    assert folder.read_status().message == "GeneratorDied: generator process 0 died (signal 9)"
    process.join(10)
    assert process.exitcode == 1
    step = folder.read_status().step
    rows = finish(folder, warm_starts, budget=folder.read_status().compute_gpu_hours + BUDGET)
    assert rows[-1]["step"] > step


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["pipeline", "ppo_off_policy"])
def test_generators_of_a_killed_trainer_end_and_the_run_can_be_resumed(tmp_path, warm_starts, schedule):
    folder = new_run(tmp_path / "run", schedule)
    process = start(folder, warm_starts, budget=1.0)
    (generator,) = in_the_middle(folder, process)
    process.kill()
    wait_until(lambda: not is_alive(generator), "the generator's end")
    process.join(10)
    step = folder.read_status().step
    rows = finish(folder, warm_starts, budget=folder.read_status().compute_gpu_hours + BUDGET)
    assert rows[-1]["step"] > step


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_asked_to_stop_checkpoints_first_even_if_its_generators_are_asked_too(tmp_path, warm_starts, number):
    folder = new_run(tmp_path / "run", "pipeline")
    process = start(folder, warm_starts, budget=1.0)
    (generator,) = in_the_middle(folder, process)
    os.kill(generator, number)  # as Ctrl-C in a terminal and a batch system do
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join(20)
    assert process.exitcode == 7
    assert not is_alive(generator)
    status = folder.read_status()
    assert (status.state, status.message) == ("cancelled", "asked to stop")
    finish(folder, warm_starts, budget=status.compute_gpu_hours + BUDGET)


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["device", "parameters_stand_for", "tokens_stand_for", "trainers"])
def test_what_only_a_modelled_cluster_has_is_refused(setting):
    value = {"device": {}, "trainers": 1}.get(setting, 2.0)
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        ResolvedRecipe.model_validate({"cluster": {"type": "wall", setting: value}})


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
