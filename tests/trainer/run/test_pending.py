"""Evaluations on published weights: in order, exactly once, whatever dies, and by the weights of their step."""

import multiprocessing
import re
import shutil
import threading
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from trainer.engines import ListGenerator, ThreadBody
from trainer.tiny import tiny_recipe
from waiting import wait_until

from scalerl.cluster.placement import PlacedUnit
from scalerl.errors import CannotResume, Interrupted
from scalerl.evaluation.meter import Meter
from scalerl.generator.request import Request
from scalerl.processes.accounts import Accounts
from scalerl.processes.evaluator_process import EvaluatorProcess, EvaluatorWork
from scalerl.processes.remote_evaluator import RemoteEvaluator
from scalerl.processes.time_sheet import ReportedAccount
from scalerl.prompts.judge import VerifierFailed
from scalerl.rollout import Prompt
from scalerl.run.pending import Due, PendingEvaluations
from scalerl.run.run_log import Progress
from scalerl.weights.folder import KeptStore

PROMPT = Prompt(task="t", id="one", tokens=(3, 4), answer="a", difficulty=1)
UNIT = PlacedUnit(role="evaluator", index=0, node=0, devices=())


class GatedEvaluator:
    """Its pass rate is the sum of the generator's weights; it waits, decoding, until the gate opens."""

    def __init__(self, generator, gate):
        self.generator, self.gate, self.kept, self.faults = generator, gate, [], []

    def measure(self, sampler, index):
        while True:
            finished = sampler.sample([Request(prompt=PROMPT, group=0, index=0, seed=index, cut=9)])
            if self.gate.wait(0.01):
                break
        versions = sorted(set(finished[0].rollout.versions.tolist()))
        yield {"task": "t", "pass_rate": self.generator.weights["w"], "index": index, "versions": versions}


class FailingEvaluator:
    def __init__(self, generator, gate):
        """Neither is used."""

    def measure(self, sampler, index):
        raise VerifierFailed("no answer can be judged")


class EvaluatorThread(ThreadBody):
    orders: Any

    def work(self):
        with suppress(EOFError, OSError):
            EvaluatorProcess(self.orders, self.theirs).work()
        self.theirs.close()


class EvaluatorThreads:
    """A launcher whose evaluator is a thread of this process."""

    def __init__(self, work):
        self.work, self.bodies, self.is_reached = work, [], True

    def start(self, unit, work):
        ours, theirs = multiprocessing.Pipe()
        self.bodies.append(EvaluatorThread(self.work, ours, theirs, None))
        return self.bodies[-1]

    def reaches(self, node):
        return self.is_reached

    def node_name(self, node):
        return "fake"


class CountingLearner:
    """Whose only weight is its version, published by two ranks."""

    def __init__(self):
        self.version, self.published = 0, []

    def weights(self):
        return {"w": torch.tensor([float(self.version)]), "model.layers.0.w": torch.zeros(2)}

    def publish(self, store, publication):
        self.published.append(publication)
        for rank, name in enumerate(("w", "model.layers.0.w")):
            store.publish(publication, self.version, {name: self.weights()[name]}, rank=rank, ranks=2)


class Scene:
    """What a run has of evaluations: a learner, a store, an evaluator behind a gate."""

    def __init__(self, folder, evaluator=GatedEvaluator):
        self.gate, self.learner, self.news = threading.Event(), CountingLearner(), []
        self.store = KeptStore(folder / "evaluations", self.learner.weights())
        generator = ListGenerator([(5, 6)])
        measured: Any = evaluator(generator, self.gate)
        nothing: Any = SimpleNamespace(measure=lambda sampler, index: [{"reading": index}], kept=(), faults=())
        meter = generator, Meter(held_out=measured, downstream=nothing)
        self.launcher: Any = EvaluatorThreads(EvaluatorWork(maker=lambda: meter, store=self.store, threads=1))
        self.accounts = Accounts(1, has_evaluator=True)
        unused: Any = dict
        work = EvaluatorWork(maker=unused, store=self.store, threads=1)
        self.evaluator = RemoteEvaluator(self.launcher, UNIT, work, self.accounts, self.news)
        cluster: Any = SimpleNamespace(
            learner=self.learner, news=self.news, recipe=tiny_recipe(), probe_of_present=lambda: None
        )
        self.pending = PendingEvaluations(cluster, self.evaluator, self.store)
        self.rows = []

    def due(self, index, step):
        self.learner.version = step
        progress = Progress(step=step, compute_gpu_hours=step / 10, flops=0, tokens=0)
        self.pending.add(Due(index=index, reading=index, progress=progress, wall_s=float(step)))

    def collect(self):
        self.evaluator.look()
        self.rows += self.pending.take_measured()
        return self.rows

    def until(self, count):
        wait_until(lambda: len(self.collect()) >= count, f"{count} rows", every_s=0.005)

    def found(self):
        return [
            (due.index, due.progress.step, measured.held_out[0]["pass_rate"], measured.held_out[0]["versions"])
            for due, measured in self.rows
        ]

    def kept(self):
        folder = self.store.folder
        return sorted(int(path.name) for path in folder.iterdir()) if folder.exists() else []


@pytest.fixture
def scenes(tmp_path):
    made = []

    def make(**settings):
        made.append(Scene(tmp_path, **settings))
        return made[-1]

    yield make
    for scene in made:
        scene.gate.set()
        scene.evaluator.close()


def test_what_is_pending_is_measured_in_order_by_the_weights_of_its_step_while_the_learner_goes_on(scenes):
    scene = scenes()
    scene.due(0, 0)
    scene.due(1, 7)
    scene.learner.version = 9
    assert scene.collect() == []
    assert len(scene.pending) == 2
    scene.gate.set()
    scene.until(2)
    scene.due(2, 11)
    scene.until(3)
    assert scene.found() == [(0, 0, 0.0, [0]), (1, 7, 7.0, [7]), (2, 11, 11.0, [11])]
    assert [measured.downstream for _, measured in scene.rows] == [[{"reading": n}] for n in range(3)]
    assert [due.wall_s for due, _ in scene.rows] == [0.0, 7.0, 11.0]
    assert len(scene.pending) == 0


def test_weights_stay_until_two_checkpoints_do_not_name_them_and_none_at_the_end(scenes):
    scene = scenes()
    scene.due(0, 0)
    scene.due(1, 7)
    scene.pending.saved()
    scene.gate.set()
    scene.until(2)
    scene.due(2, 11)
    scene.until(3)
    scene.pending.saved()  # the checkpoint before names 0 and 1, none names 2
    assert scene.kept() == [0, 1]
    scene.pending.saved()
    assert scene.kept() == []
    scene.due(3, 12)
    scene.until(4)
    scene.pending.clear()
    assert not scene.store.folder.exists()


def test_a_killed_evaluator_is_started_again_and_measures_from_the_start(scenes):
    scene = scenes()
    scene.due(0, 5)
    wait_until(lambda: scene.collect() == [] and scene.accounts.evaluator.doing == "evaluate", "its order")
    scene.due(1, 6)
    scene.launcher.bodies[0].kill()
    wait_until(lambda: scene.collect() == [] and scene.news, "word of its death")
    assert scene.news == [
        "the evaluator died (signal 9). Restarting (attempt 1 of 3). Its current evaluation starts over"
    ]
    assert scene.evaluator.unit_state().deaths == 1
    scene.gate.set()
    scene.until(2)
    assert scene.found() == [(0, 5, 5.0, [5]), (1, 6, 6.0, [6])]
    assert len(scene.launcher.bodies) == 2


def test_an_evaluator_that_dies_too_often_or_with_its_node_ends_the_run(scenes):
    scene = scenes()
    scene.due(0, 5)

    def kill():
        scene.collect()
        scene.launcher.bodies[-1].kill()

    for death in range(1, 4):
        kill()
        wait_until(lambda: scene.collect() == [] and len(scene.news) == death, f"death {death}")  # noqa: B023  asked at once
    kill()
    with pytest.raises(Interrupted, match=r"died \(signal 9\)\. Not restarting: all 3 restarts are used"):
        wait_until(scene.collect, "the end")
    other = scenes()
    other.launcher.is_reached = False
    other.launcher.bodies[0].kill()
    with pytest.raises(Interrupted, match="Not restarting: its node is gone"):
        wait_until(other.collect, "the end")


def test_a_silent_evaluator_is_ended_and_started_again(scenes, monkeypatch):
    monkeypatch.setattr("scalerl.processes.remote_evaluator.SILENCE_LIMIT_S", 0.0)
    monkeypatch.setattr("scalerl.processes.remote_evaluator.JUDGE_LIMIT_S", 0.0)
    scene = scenes()
    scene.due(3, 5)
    wait_until(lambda: scene.collect() == [] and scene.news, "its end")
    assert re.match(r"the evaluator was killed: silent for 0 s while (decoding|judging) evaluation 3\.", scene.news[0])


def test_after_a_resume_two_pending_are_measured_again_from_what_was_kept_and_the_rest_is_deleted(scenes):
    first = scenes()
    first.due(0, 0)
    first.due(1, 7)
    state = first.pending.state_dict()
    first.due(2, 9)  # after the checkpoint
    assert first.kept() == [0, 1, 2]
    first.evaluator.close()
    second = scenes()
    second.learner.version = 7
    second.pending.load_state_dict(state)
    assert second.kept() == [0, 1]
    second.gate.set()
    second.until(2)
    assert second.found() == [(0, 0, 0.0, [0]), (1, 7, 7.0, [7])]
    assert [due.progress.compute_gpu_hours for due, _ in second.rows] == [0.0, 0.7]
    assert second.learner.published == []


def tear(store, publication):
    path = store.folder / str(publication) / "0-of-2.safetensors"
    path.write_bytes(path.read_bytes()[:-4])


def test_torn_weights_are_published_again_while_the_learner_has_them(scenes):
    first = scenes()
    first.due(0, 4)
    state = first.pending.state_dict()
    first.evaluator.close()
    tear(first.store, 0)
    second = scenes()
    second.learner.version = 4
    second.gate.set()
    second.pending.load_state_dict(state)
    second.until(1)
    assert second.found() == [(0, 4, 4.0, [4])]
    assert len(second.news) == 1
    assert "the weights of the evaluation at step 4 cannot be measured: " in second.news[0]
    assert "bytes instead of" in second.news[0]
    assert second.news[0].endswith(". Publishing them again")


def test_weights_that_are_torn_or_missing_end_the_run_where_the_learner_has_others(scenes):
    scene = scenes()
    scene.due(0, 4)
    scene.due(1, 5)
    state = scene.pending.state_dict()
    tear(scene.store, 1)
    scene.learner.version = 6
    scene.gate.set()
    with pytest.raises(Interrupted, match=r"at step 5 cannot be measured: .*the learner is at step 6"):
        wait_until(lambda: scene.collect() and None, "the end")
    assert scene.found() == [(0, 4, 4.0, [4])]
    scene.evaluator.close()
    resumed = scenes()
    shutil.rmtree(resumed.store.folder / "1")
    resumed.learner.version = 6
    resumed.gate.set()
    resumed.pending.load_state_dict(state)
    with pytest.raises(CannotResume, match=r"at step 5 cannot be measured: publication 1 .*delete the checkpoint"):
        wait_until(lambda: resumed.collect() and None, "the end")


def test_weights_of_another_version_are_refused(scenes):
    scene = scenes()
    scene.store.begin(0)
    scene.learner.version = 3
    scene.learner.publish(scene.store, 0)
    progress = Progress(step=2, compute_gpu_hours=0.2, flops=0, tokens=0)
    due = {"index": 0, "reading": 0, "progress": vars(progress), "wall_s": 2.0}
    scene.pending.load_state_dict([due])
    with pytest.raises(CannotResume, match="holds version 3 of the weights, not 2"):
        wait_until(scene.collect, "the end")


def test_a_verifier_that_fails_in_the_evaluator_ends_the_run_with_its_reason(scenes):
    scene = scenes(evaluator=FailingEvaluator)
    scene.due(0, 0)
    with pytest.raises(VerifierFailed, match="no answer can be judged"):
        wait_until(scene.collect, "the end")


def test_the_evaluator_s_account_by_hand():
    account = ReportedAccount(earlier={"evaluate": 4.0, "wait_weights": 6.0}, doing="wait_weights")
    account.switch("evaluate", 12.0)
    assert account.at(15.0) == {"evaluate": 7.0, "wait_weights": 8.0}
    account.measured({"sync": 1.0, "evaluate": 5.0}, 20.0)  # of eight seconds it took six, then it was not heard
    assert account.at(20.0) == {"sync": 1.0, "evaluate": 9.0, "wait_weights": 10.0}
    account.switch("evaluate", 21.0)
    account.measured({"sync": 2.0, "evaluate": 8.0}, 26.0)  # the clock stood still for half of it
    assert account.at(26.0) == {"sync": 2.0, "evaluate": 13.0, "wait_weights": 11.0}
    account.switch("dead", 27.0)
    assert account.at(30.0) == {"sync": 2.0, "evaluate": 13.0, "wait_weights": 12.0, "dead": 3.0}
