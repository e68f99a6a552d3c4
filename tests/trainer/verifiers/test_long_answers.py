"""Answers of 100,000 characters are read in a moment where no time limit holds: beside the trainer, not in a worker."""

import contextlib
import time

import pytest
from trainer.verifiers.outcomes import verify_choice, verify_qa

from scalerl.tasks.program_text import program_in
from scalerl.verifiers.mathematics.answer import final_answer, gold_answer
from scalerl.verifiers.mathematics.prose import statements
from scalerl.verifiers.mathematics.reading import read

NUM_CHARS = 100_000
MOST_S = 5.0
"""Quadratic time takes minutes; what is linear takes well under a second, on a busy machine a few."""
PIECES = [
    "_", "*", "** a", "`a", "$", "$$ a", "\\[ a", "<answer>", "<answer>a ", "answer is ", "\\boxed{", "\\boxed{1}, ",
    "\\text{a}", "a ", "1 ", "1/", "(", "~~a", "not ", "no, ", "A or ", "A.\n", "\n", "- ", "```\n", "```python\nx=1\n",
    "```python\nf()\n```\n", "~~~\n", "def f(): pass\n", "because ", "\\", "{", "'", "½", "x = ", "1:2:", "é", "1.",
    "10^", "\r\n", "B ", "(B)", "option: ", "\\text{", "\n*",
]  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_no_repeated_piece_takes_long(piece):
    for before, after in (("", ""), ("answer is ", ""), ("B", "}\nThe answer is B."), ("It is ", " !x")):
        assert seconds_of(before + piece * (NUM_CHARS // len(piece)) + after) < MOST_S, before + after


def seconds_of(text):
    """The processor time of this thread for all that reads an answer beside the trainer."""
    start = time.thread_time()
    final_answer(text)
    verify_choice(text, "B", num_choices=4, texts=("a", "b", "c", "d"))
    verify_qa(text, ["Lima"])
    program_in(text)
    read(text[:1000])
    list(statements(text[:2000], "prose"))
    with contextlib.suppress(ValueError):  # too long, or empty
        gold_answer(text[:20_000])
    return time.thread_time() - start


@pytest.mark.parametrize("text", ["B " * 50_000, "(" * 100_000, "answer is " * 10_000, "*" * 100_000, "\n" * 300_000])
def test_long_answers_end_in_their_letter(text):
    assert verify_choice(text + "\nThe answer is B.", "B", num_choices=4) == "right"
