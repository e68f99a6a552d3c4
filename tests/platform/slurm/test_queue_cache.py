"""The controller is everybody's: what the platform asks of it does not grow with runs, users or impatience."""

import json
import threading
from itertools import pairwise

from ablations.home.home import Home
from ablations.slurm import queue_cache
from ablations.slurm.commands import Job, SlurmSilent
from ablations.slurm.queue_cache import GONE, QueueAnswer, queue_answer, vanished

KEY = ("loo.1f0c9ad2", "17_3")
JOB = Job(id="17_3", name="loo.1f0c9ad2", state="RUNNING")


def test_slurm_is_asked_once_in_a_while_whoever_asks(tmp_path, monkeypatch):
    calls: list[tuple[Job, ...]] = []
    times: set[float] = set()

    def queue():
        calls.append((JOB,))
        return calls[-1]

    assert queue_cache.ASK_EVERY_S == 10.0
    monkeypatch.setattr(queue_cache, "ASK_EVERY_S", 0.3)
    monkeypatch.setattr(queue_cache, "queue", queue)

    def impatient():
        while len(calls) < 3:
            answer = queue_answer(Home(tmp_path), {KEY}, since=0.0)
            assert answer.job(KEY) == JOB
            times.add(answer.asked)

    users = [threading.Thread(target=impatient) for _ in range(3)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert len(times) == len(calls)
    assert all(later - earlier >= 0.3 for earlier, later in pairwise(sorted(times)))
    before = len(calls)
    queue_answer(Home(tmp_path), {KEY}, since=0.0, fresh=True)  # newer than the call
    assert len(calls) == before + 1


def test_while_slurm_is_silent_the_last_answer_holds(tmp_path, monkeypatch):
    def silent():
        raise SlurmSilent("squeue: no answer within 60 s")

    (tmp_path / "slurm.json").write_text(json.dumps({"asked": 1.0, "problem": "", "jobs": [vars(JOB)]}))
    monkeypatch.setattr(queue_cache, "queue", silent)
    answer = queue_answer(Home(tmp_path), {KEY}, since=0.0)
    assert answer.job(KEY) == JOB
    assert answer.problem == "squeue: no answer within 60 s"


def test_a_waiting_task_that_is_gone_from_an_array_that_is_there_was_cancelled():
    waited = Job(id="17_3", name="loo.1f0c9ad2", state="PENDING")
    assert vanished(KEY, waited, is_array_there=True).state == "CANCELLED"
    assert vanished(KEY, waited, is_array_there=False).state == GONE
    assert vanished(KEY, JOB, is_array_there=True).state == GONE


def test_a_job_that_was_submitted_after_the_last_question_waits():
    assert QueueAnswer().job(KEY).state == "PENDING"
