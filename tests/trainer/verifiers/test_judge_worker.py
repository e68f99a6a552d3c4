"""Who is to blame when there is no verdict: the answer, which is then wrong, or the machinery, which judged nothing."""

import multiprocessing
import os
import resource
import signal
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from trainer.verifiers.outcomes import verify_math
from waiting import wait_until

from scalerl.rollout import Judgement
from scalerl.signals import TO_ALL_PROCESSES
from scalerl.verifiers import judge_worker
from scalerl.verifiers.mathematics import equality

LIMIT_S = 5.0
NEVER_ENDS = ["\\binom{99999999}{49999999}", "[9^{9^9},9^{9^{9^9}}]"]
"""math-verify works these out while it parses them."""


@pytest.mark.parametrize("answer", NEVER_ENDS)
def test_what_never_ends_is_wrong_and_the_next_answer_does_not_wait(answer):
    for limit in (0.5, 1.0):
        start = time.monotonic()
        assert verify_math(f"\\boxed{{{answer}}}", "42", time_limit_s=limit) == "wrong"
        assert time.monotonic() - start >= limit
    assert verify_math("\\boxed{42}", "42", time_limit_s=LIMIT_S) == "right"


def test_the_limit_holds_in_threads_and_every_thread_gets_its_own_verdict():
    answers = [("\\boxed{42}", "right"), ("\\boxed{41}", "wrong"), ("\\boxed{?}", "unparsable")] * 8
    answers += [(f"\\boxed{{{NEVER_ENDS[0]}}}", "wrong")]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda one: verify_math(one[0], "42", time_limit_s=1.0), answers))
    assert outcomes == [outcome for _, outcome in answers]


def keepers():
    return [keeper for keeper in judge_worker._pools["mathematics.equality"].queue if keeper]


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_an_answer_whose_engine_is_killed_from_outside_is_judged_by_the_next():
    verify_math("1", "1", time_limit_s=LIMIT_S)
    keeper = keepers()[-1].process.pid
    outcomes = []
    hanging = threading.Thread(
        target=lambda: outcomes.append(verify_math(f"\\boxed{{{NEVER_ENDS[0]}}}", "42", time_limit_s=2.0))
    )
    hanging.start()
    wait_until(lambda: len(keepers()) < judge_worker.MAX_KEEPERS and children(keeper), "an engine at work")
    (engine,) = children(keeper)
    os.kill(engine, signal.SIGKILL)
    hanging.join()
    assert outcomes == ["wrong"]
    assert children(keeper) != [engine]
    assert verify_math("\\boxed{42}", "42", time_limit_s=LIMIT_S) == "right"
    assert keepers()[-1].process.pid == keeper


def test_a_keeper_that_dies_is_crashed_and_replaced():
    verify_math("1", "1", time_limit_s=LIMIT_S)
    lost = keepers()[-1].process
    lost.kill()
    lost.wait()
    assert verify_math("\\boxed{42}", "42", time_limit_s=LIMIT_S) == "crashed"
    assert verify_math("\\boxed{42}", "42", time_limit_s=LIMIT_S) == "right"


def judge_in_a_child(connection):
    connection.send([verify_math("\\boxed{42}", gold, time_limit_s=LIMIT_S) for gold in ("42", "41")])


# Python 3.12 and later warn of every fork of a process with threads, which is what is tried here.
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_its_own_keeper_and_the_parents_goes_on():
    verify_math("1", "1", time_limit_s=LIMIT_S)
    before = keepers()[-1].process.pid
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=judge_in_a_child, args=(theirs,))
    child.start()
    assert ours.recv() == ["right", "wrong"]
    child.join()
    assert child.exitcode == 0
    assert verify_math("\\boxed{42}", "42", time_limit_s=LIMIT_S) == "right"
    assert keepers()[-1].process.pid == before


def test_a_signal_to_all_processes_of_a_run_is_left_to_the_trainer():
    """`timeout`, a terminal and Slurm signal everything, also a keeper whose Python is only starting."""
    others, ready = set(children(os.getpid())), threading.Event()

    def signal_new_children():
        while not ready.wait(0.005):
            for child in set(children(os.getpid())) - others:
                for number in TO_ALL_PROCESSES:
                    with suppress(ProcessLookupError):
                        os.kill(child, number)

    sender = threading.Thread(target=signal_new_children)
    sender.start()
    try:
        keeper = judge_worker.Keeper("mathematics.equality")
    finally:
        ready.set()
        sender.join()
    assert keeper.ask({"asked": {"answer": "1", "gold": "1", "place": "marked"}, "limit_s": 5.0}) == Judgement("right")
    keeper.close()


def test_a_keeper_and_its_engine_end_with_their_trainer():
    keeper = judge_worker.Keeper("mathematics.equality")
    assert keeper.ask({"asked": {"answer": "1", "gold": "1", "place": "marked"}, "limit_s": 5.0}) == Judgement("right")
    (engine,) = children(keeper.process.pid)
    keeper.stdin.close()
    keeper.process.wait(timeout=20)
    wait_until(lambda: not Path(f"/proc/{engine}").exists(), "the engine's end")
    keeper.close()


# Python 3.12 and later warn of every fork of a process with threads.
FORKS_HERE = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
RIGHT = {"asked": {"answer": "2", "gold": "2", "place": "marked"}, "limit_s": LIMIT_S}


@pytest.fixture
def engines(monkeypatch):
    """Engines forked from this process, whose judge does what the answer says, and knows the known pair."""
    do = {}

    def judge(answer, gold, place):
        return Judgement(do[answer]() if answer in do else "right")

    monkeypatch.setattr(equality, "judge", judge)
    made = judge_worker.Engines(equality)

    def outcome(act, **request):
        if do.get("x") is not act:
            made.close()  # the next engine is forked with it
        do["x"] = act
        return made.outcome({**RIGHT, "asked": {**RIGHT["asked"], "answer": "x"}, **request})

    yield outcome
    made.close()


@pytest.fixture
def no_core_files():
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, limits)


def fails(error):
    def act():
        raise error

    return act


def spins():
    while True:
        pass


@FORKS_HERE
@pytest.mark.parametrize(
    "act",
    [
        fails(ValueError("no")),
        fails(RecursionError()),
        fails(MemoryError()),
        fails(SystemExit(0)),
        fails(KeyboardInterrupt()),
        lambda: os._exit(0),
        lambda: os.kill(os.getpid(), signal.SIGSEGV),
        os.abort,
    ],
)
@pytest.mark.usefixtures("no_core_files", "capfd")
def test_what_the_answer_does_to_its_engine_makes_it_wrong(engines, act):
    assert engines(act) == "wrong"
    assert engines(lambda: "right") == "right"


@FORKS_HERE
def test_an_engine_that_dies_once_at_an_answer_does_not_decide_its_verdict(engines, tmp_path):
    def dies_once():
        if not (tmp_path / "died").exists():
            (tmp_path / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return "right"

    assert engines(dies_once) == "right"


@FORKS_HERE
def test_where_the_known_pair_is_not_judged_either_the_machinery_has_failed(monkeypatch):
    monkeypatch.setattr(equality, "judge", lambda **_: os._exit(1))
    made = judge_worker.Engines(equality)
    assert made.outcome(RIGHT) == "crashed"
    made.close()


@FORKS_HERE
def test_the_limit_counts_processor_time_so_a_busy_machine_changes_no_verdict(engines):
    def waits():
        time.sleep(0.6)
        return "right"

    assert engines(waits, limit_s=0.2) == "right"
    assert engines(spins, limit_s=0.2) == "wrong"


@FORKS_HERE
def test_an_engine_that_waits_for_ever_is_timed_out(engines, monkeypatch):
    monkeypatch.setattr(judge_worker, "WALL_GRACE_S", 0.5)
    assert engines(lambda: time.sleep(60), limit_s=0.01) == "timed_out"


@FORKS_HERE
def test_an_engine_that_has_grown_is_replaced_before_its_memory_decides_a_verdict(engines):
    kept = []

    def grows():
        kept.append(bytearray(judge_worker.SPENT_BYTES // 2 + (1 << 20)))
        return "right" if len(kept) <= 2 else "wrong"

    assert [engines(grows) for _ in range(6)] == ["right"] * 6


def test_where_no_process_is_to_be_had_nothing_is_judged(monkeypatch):
    monkeypatch.setattr(judge_worker, "_pools", defaultdict(judge_worker.idle_keepers))

    def refuse(*_, **__):
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(judge_worker.subprocess, "Popen", refuse)
    assert verify_math("\\boxed{1}", "1", time_limit_s=LIMIT_S) == "crashed"
