"""Mathematical answers against verdicts written down before the verifier was run, and time limits that hold.

A pair of `math_pairs.jsonl` is {"kind", "gold", "answer", "outcome"}; an answer of 10^5 characters is written as
{"before", "repeat", "times", "after"}. The verdict is the one that mathematics gives, with the conventions listed in
`math_equal` (what a missing unit or percent sign means, how far decimals may be off) and the bounds on length in
`math_answer`.
"""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from places import DATA
from waiting import wait_until

from scalerl.verifiers import strip_thinking, worker
from scalerl.verifiers.math_answer import final_answer, gold_answer, last_boxed, verify_math
from scalerl.verifiers.math_reading import COUNTS, UNITS, read

PAIRS = [json.loads(line) for line in (DATA / "math_pairs.jsonl").read_text().splitlines()]
LIMIT_S = 5.0
NEVER_ENDS = ["\\binom{99999999}{49999999}", "[9^{9^9},9^{9^{9^9}}]"]
"""math-verify works these out while it parses them."""


def written_out(answer):
    return (
        answer if isinstance(answer, str) else answer["before"] + answer["repeat"] * answer["times"] + answer["after"]
    )


@pytest.fixture(scope="module", autouse=True)
def started():
    verify_math("1", "1", time_limit_s=LIMIT_S)


@pytest.mark.parametrize("kind", sorted({pair["kind"] for pair in PAIRS}))
def test_every_verdict_is_the_one_that_mathematics_gives_within_the_limit(kind):
    disagree = []
    for pair in PAIRS:
        if pair["kind"] != kind:
            continue
        answer = written_out(pair["answer"])
        outcome = verify_math(answer, pair["gold"], time_limit_s=LIMIT_S)  # beyond the limit: timed_out
        if outcome != pair["outcome"]:
            disagree.append({**pair, "got": outcome})
    assert disagree == []


def test_the_list_holds_every_kind_of_answer_and_verdict():
    assert len(PAIRS) >= 300
    assert {pair["outcome"] for pair in PAIRS} == {"right", "wrong", "unparsable"}
    assert sum(len(written_out(pair["answer"])) >= 99_000 for pair in PAIRS) >= 30


@pytest.mark.parametrize("answer", NEVER_ENDS)
def test_what_never_ends_is_timed_out_and_the_next_answer_does_not_wait(answer):
    for limit in (0.5, 1.0):
        start = time.monotonic()
        assert verify_math(f"\\boxed{{{answer}}}", "42", time_limit_s=limit) == "timed_out"
        assert time.monotonic() - start >= limit
    assert verify_math("\\boxed{42}", "42", time_limit_s=LIMIT_S) == "right"


def test_the_limit_holds_in_threads_and_every_thread_gets_its_own_verdict():
    answers = [("\\boxed{42}", "right"), ("\\boxed{41}", "wrong"), ("\\boxed{?}", "unparsable")] * 8
    answers += [(f"\\boxed{{{NEVER_ENDS[0]}}}", "timed_out")]
    with ThreadPoolExecutor(8) as threads:
        outcomes = list(threads.map(lambda one: verify_math(one[0], "42", time_limit_s=1.0), answers))
    assert outcomes == [outcome for _, outcome in answers]


def keepers():
    return [keeper for keeper in worker._pool.keepers.queue if keeper]


def children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_an_engine_that_dies_is_crashed_and_replaced():
    verify_math("1", "1", time_limit_s=LIMIT_S)
    keeper = keepers()[-1].process.pid
    outcomes = []
    hanging = threading.Thread(
        target=lambda: outcomes.append(verify_math(f"\\boxed{{{NEVER_ENDS[0]}}}", "42", time_limit_s=20.0))
    )
    hanging.start()
    wait_until(lambda: len(keepers()) < worker.MAX_KEEPERS and children(keeper), "an engine at work")
    time.sleep(0.2)
    for engine in children(keeper):
        os.kill(engine, signal.SIGKILL)
    hanging.join()
    assert outcomes == ["crashed"]
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


def test_a_keeper_and_its_engine_end_with_their_trainer():
    keeper = worker.Keeper()
    assert keeper.ask({"answer": "1", "gold": "1", "place": "marked", "limit_s": 5.0}) == "right"
    (engine,) = children(keeper.process.pid)
    keeper._stdin.close()
    keeper.process.wait(timeout=20)
    wait_until(lambda: not Path(f"/proc/{engine}").exists(), "the engine's end")
    keeper.close()


def test_neither_torch_nor_sympy_is_loaded_by_the_judges():
    code = (
        "import sys, scalerl.verifiers.math_answer, scalerl.verifiers.choice, scalerl.verifiers.qa\n"
        "sys.exit(' '.join({'torch', 'sympy', 'math_verify'} & set(sys.modules)) or 0)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(worker.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("She sold 48/2 = <<48/2=24>>24 clips.\n#### 72", "72"),
        ("#### 1,234 ", "1,234"),
        ("So $x=\\boxed{\\frac{1}{2}}$.", "\\frac{1}{2}"),
        ("First \\boxed{3}; after all that is not what was asked for, so \\boxed{4}.", "4"),
        ("\\boxed{1} and \\boxed{2}", "1,2"),
        ("\\boxed{\\left\\{x \\mid x > 0\\right.}", "\\left\\{x \\mid x > 0\\right."),
        ("204", "204"),
    ],
)
def test_gold_answers_are_read_from_gsm8k_math_and_plain_columns(text, answer):
    assert gold_answer(text) == answer


@pytest.mark.parametrize("text", ["", "####", "#### ", "\\boxed{}", "\\boxed{1", "\\boxed{" + "1" * 1001 + "}"])
def test_an_empty_or_endless_gold_answer_is_refused(text):
    with pytest.raises(ValueError, match="gold answer: "):
        verify_math("1", text, time_limit_s=1.0)


def test_a_limit_of_no_time_is_refused():
    with pytest.raises(ValueError, match="time_limit_s is 0"):
        verify_math("\\boxed{1}", "1", time_limit_s=0)


@pytest.mark.parametrize(
    ("text", "answer"),
    [("a", "a"), ("<think>a</think>b", "b"), ("a</think>b</think>c", "c"), ("<think>a", ""), ("</think>b<think>c", "")],
)
def test_the_answer_follows_the_last_end_of_thinking(text, answer):
    assert strip_thinking(text) == answer


def test_a_box_that_never_closes_is_no_answer():
    assert last_boxed("no box") is None
    assert last_boxed("\\boxed{1} then \\boxed{2") == ""
    assert last_boxed("\\boxed{{1}") == ""
    assert final_answer("\\boxed{2") == ("", "marked")


def test_units_have_their_defined_sizes():
    # The international inch is 25.4 mm and the avoirdupois pound 453.59237 g, both exactly (agreement of 1959).
    assert float(read("1 inch").size) == 0.0254
    assert float(read("1 mile").size) == 1609.344
    assert float(read("16 oz").size * 16) == 453.59237
    assert read("3\\text{ square feet}").size == read("1 ft").size ** 2
    assert len({name for units in UNITS.values() for names in units for name in names.split()} & COUNTS.keys()) == 0
