"""Runs whose evaluations are measured by a process of their own: the numbers are those of an evaluation on the spot."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import threading
from contextlib import suppress
from functools import partial

import pytest
from trainer.attempts import attempt
from trainer.gated_meter import GATE, gated_attempt
from trainer.processes.agents import is_alive, unit_processes
from trainer.runs import PROCESSES
from trainer.tiny import PolicySampler, tiny_recipe
from waiting import wait_until

from scalerl.evaluation.drift import policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.model.build import new_policy
from scalerl.processes import fleet
from scalerl.processes.evaluator_process import EvaluatorProcess, EvaluatorWork
from scalerl.processes.messages import Measure, MeasuredWeights, Measuring, Paused, from_bytes, to_bytes
from scalerl.recipe import ResolvedRecipe
from scalerl.run.assemble import assemble
from scalerl.run.meter import make_meter
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows
from scalerl.schedules import SCHEDULES
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer
from scalerl.weights.folder import KeptStore

BUDGET = 0.003
"""Device-hours: 5.4 seconds of two processes."""


def answers_of(work, orders):
    """What an evaluator in a thread of this process answers, without its signs of life."""
    ours, theirs = multiprocessing.Pipe()

    def measure():
        with suppress(EOFError):
            EvaluatorProcess(work, theirs).work()

    thread = threading.Thread(target=measure)
    thread.start()
    answers = [from_bytes(ours.recv_bytes())]
    for order in orders:
        ours.send_bytes(to_bytes(order))
        while isinstance(answer := from_bytes(ours.recv_bytes()), Measuring):
            pass
        answers.append(answer)
    ours.close()
    thread.join()
    return answers


def test_published_weights_have_the_row_of_an_evaluation_on_the_spot_to_the_bit(tmp_path):
    recipe = tiny_recipe(zero_variance="keep", optimiser={"learning_rate": 0.02})
    parts = assemble(recipe, 0, tmp_path / "warm_starts")
    cluster, learner = parts.cluster, parts.cluster.learner
    store = KeptStore(tmp_path / "evaluations", learner.weights())
    on_the_spot, orders = [], []
    cluster.start()
    for index in range(3):
        SCHEDULES[recipe.off_policy.type](cluster)
        store.begin(index)
        learner.publish(store, index)
        on_the_spot.append(list(parts.meter.held_out.measure(cluster, index)))
        orders.append(Measure(publication=index, version=learner.version, reading=index))
    cluster.close()
    work = EvaluatorWork(maker=partial(make_meter, recipe, 0, parts.start), store=store, threads=1)
    first, *answers = answers_of(work, [*reversed(orders), *orders])
    assert isinstance(first, Paused)
    assert all(isinstance(answer, MeasuredWeights) for answer in answers)
    assert [answer.publication for answer in answers] == [2, 1, 0, 0, 1, 2]
    assert [answer.held_out for answer in answers] == [on_the_spot[answer.publication] for answer in answers]
    assert len({rows[0]["kl_start"] for rows in on_the_spot}) == 3
    assert all(answer.seconds.keys() == {"sync", "evaluate"} for answer in answers)


def evaluated_recipe(every=BUDGET / 6):
    recipe = tiny_recipe(
        off_policy={"type": "pipeline", "k": 2},
        zero_variance="keep",
        checkpoint_every_s=0.0,
        evaluation={"every": 1.0, "samples": 2},
    ).model_dump()
    cluster = {"type": "wall", "generators": 1, "slots": 12, "evaluator": True}
    return ResolvedRecipe.model_validate(recipe | {"cluster": cluster, "compute_unit_gpu_hours": every})


def pending_in_checkpoint(folder):
    """The evaluations that the checkpoint names; none while it is being replaced."""
    with suppress(OSError, ValueError, KeyError):
        manifest = json.loads((folder.checkpoint / "manifest.json").read_bytes())
        state = json.loads((folder.checkpoint / manifest["parts"]["state"]["file"]).read_bytes())
        return len(state["pending_evaluations"])
    return 0


def evaluator_state(folder):
    return next((unit for unit in folder.read_status().units if unit.unit == "evaluator"), None)


@pytest.mark.slow
def test_a_run_whose_evaluator_and_then_whose_coordinator_is_killed_has_every_evaluation_once_and_in_order(tmp_path):
    folder, recipe = RunFolder(tmp_path / "run"), evaluated_recipe()
    folder.create(recipe, seed=0)
    process = PROCESSES.Process(target=gated_attempt, args=(folder.path, BUDGET, tmp_path / "warm_starts"))
    process.start()
    units = []
    try:
        wait_until(lambda: pending_in_checkpoint(folder) == 2, "two pending evaluations", limit_s=200)
        waiting = "waiting for the evaluator: 2 evaluations are not measured yet"
        wait_until(lambda: folder.read_status().message == waiting, "the wait for the evaluator", limit_s=100)
        units = unit_processes(process.pid)
        assert len(units) == 2  # the evaluator, and the generator after it
        os.kill(units[0], signal.SIGKILL)
        wait_until(lambda: (unit := evaluator_state(folder)) and unit.deaths == 1, "word of its death", limit_s=100)
        wait_until(lambda: evaluator_state(folder).doing == "evaluate", "another evaluator at work", limit_s=100)
        units = sorted({*units, *unit_processes(process.pid)})
        assert len(units) == 3
        kept = shutil.copytree(folder.evaluations, tmp_path / "kept")
    finally:
        process.kill()
        process.join()
    wait_until(lambda: not any(map(is_alive, units)), "the end of all units", limit_s=60)
    assert list(read_rows(folder.metrics, kind="eval")) == []
    (tmp_path / GATE).touch()
    budget, measured = 0.0, []
    while len(measured) < 3:  # on a busy machine one step may take more than one budget
        budget += BUDGET
        process = PROCESSES.Process(target=gated_attempt, args=(folder.path, budget, tmp_path / "warm_starts"))
        process.start()
        try:
            process.join(200)
            assert process.exitcode == 0
        finally:
            process.kill()
            process.join()
        measured = list(read_rows(folder.metrics, kind="eval"))
    assert folder.read_status().state == "done"
    assert not folder.evaluations.exists()
    trained = list(read_rows(folder.metrics, kind="train"))
    assert [row["step"] for row in trained] == list(range(1, len(trained) + 1))
    steps = [row["step"] for row in measured]
    assert steps == sorted(set(steps))
    assert [row["weight_version"] for row in measured] == steps
    by_step = {row["step"]: row["compute_gpu_hours"] for row in trained} | {0: 0.0}
    assert [row["compute_gpu_hours"] for row in measured] == [by_step[step] for step in steps]
    assert folder.read_status().pass_rate == measured[-1]["pass_rate"]
    held_out = list(read_rows(folder.rollouts, kind="held_out"))
    assert [row["step"] for row in held_out] == [step for step in steps for _ in range(4)]
    assert all(span["version"] == row["step"] for row in held_out for span in row["thinking"])
    assert_the_weights_give_the_rows(recipe, kept, measured[:2], next((tmp_path / "warm_starts").glob("*/")))
    assert_device_seconds_add_up(trained)


def impatient_attempt(path, budget, warm_starts):
    fleet.LIFELESS_LIMIT_S = fleet.MISSING_S + 1.0
    attempt(path, budget, warm_starts, None)


@pytest.mark.slow
def test_the_wait_for_a_stopped_evaluator_is_no_compute(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create(evaluated_recipe(BUDGET / 60), seed=0)  # each step is evaluated, so that the next but one waits
    process = PROCESSES.Process(target=impatient_attempt, args=(folder.path, 1.0, tmp_path / "warm_starts"))
    process.start()

    def seconds_waited():
        told = "\n".join(folder.read_status().warnings)
        return [*map(int, re.findall(r"training waited (\d+) s for the evaluator, dead or silent, which is not", told))]

    def rows(kind):
        return list(read_rows(folder.metrics, kind=kind))

    try:
        wait_until(lambda: folder.read_status().step >= 3 and len(rows("eval")) >= 3, "some evaluations", limit_s=200)
        os.kill(unit_processes(process.pid)[0], signal.SIGSTOP)
        wait_until(seconds_waited, "word of the wait", limit_s=200)
        num_steps = len(rows("train"))
        wait_until(lambda: len(rows("train")) > num_steps, "a step after it", limit_s=200)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        process.join(200)
        assert process.exitcode == 7
    finally:
        process.kill()
        process.join()
    trained, measured = rows("train"), rows("eval")
    steps = [row["step"] for row in measured]
    assert steps == sorted(set(steps))
    assert any("the evaluator was killed: silent for" in text for text in folder.read_status().warnings)
    # What was on the clock, what was not, and the wait make up the seconds of work; one process decodes and one trains.
    waited, last = sum(seconds_waited()), trained[-1]
    assert waited > 1
    counted = last["compute_gpu_hours"] * 3600 / 2 + sum(last["off_clock_s"].values())
    assert counted + waited == pytest.approx(last["wall_s"], rel=0.01, abs=0.6)
    assert_device_seconds_add_up(trained)


def assert_the_weights_give_the_rows(recipe, kept, rows, start):
    """The weights that were pending when the coordinator was killed, measured here."""
    policy, origin = new_policy(recipe), new_policy(recipe)
    origin.load_weights(start)
    store = KeptStore(kept, policy.exported_weights())
    task = make_task(recipe.tasks[0], make_tokenizer(recipe.model))
    evaluator = HeldOutEvaluator(recipe=recipe, task=task, seed=0, drift=partial(policy_drift, start=origin))
    numbers = sorted(int(path.name) for path in kept.iterdir())
    assert len(numbers) == 2
    for number, row in zip(numbers, rows, strict=True):
        policy.import_weights(store.fetch(number, row["step"]))
        (found,) = evaluator.measure(PolicySampler(recipe, task, policy), number)
        assert found["kl_start"] == pytest.approx(row["kl_start"], abs=1e-5)
        assert {name: row[name] for name in found if name != "kl_start"} == {
            name: value for name, value in found.items() if name != "kl_start"
        }


def assert_device_seconds_add_up(trained):
    """Of generators and trainers to compute, of the evaluator to the time that has passed; each process reports by its
    own clock, between two readings of which it may be kept from its core."""
    for row in trained:
        spent = {role: sum(seconds.values()) for role, seconds in row["device_s"].items()}
        compute_s = 3600 * row["compute_gpu_hours"]
        assert spent["generator"] + spent["trainer"] == pytest.approx(compute_s, rel=0.01, abs=0.5)
        assert spent["evaluator"] == pytest.approx(compute_s / 2, rel=0.01, abs=0.5)
    assert trained[-1]["device_s"]["evaluator"]["evaluate"] > 0
