"""Letters and short answers in every way that models are known to write them, judged as a careful person would.

Rows are {"kind", "gold", "answer", "expected", "source"}; of choices the prompt shows
copper, iron, zinc and lead, or those of "choices".
"""

import json
import random
from functools import partial

from places import DATA
from trainer.verifiers.outcomes import verify_choice, verify_qa

TEXTS = ("copper", "iron", "zinc", "lead")


def rows(name):
    return [json.loads(line) for line in (DATA / "answers" / f"{name}.jsonl").read_text().splitlines()]


def off(rows, judged):
    """Rows that are judged otherwise than a careful person would."""
    found = [(row["gold"], row["answer"], row["expected"], judged(row)) for row in rows]
    return [one for one in found if (one[3] == "right") != (one[2] == "right")]


def test_a_letter_is_judged_as_a_careful_person_would():
    judged = partial(verify_choice, num_choices=4)
    assert off(rows("choice"), lambda row: judged(row["answer"], row["gold"], texts=row.get("choices", TEXTS))) == []


def test_a_short_answer_is_judged_as_a_careful_person_would():
    assert off(rows("qa"), lambda row: verify_qa(row["answer"], row["gold"])) == []


STATED = ["The answer is {}.", "**Answer:** {}", "\\boxed{{{}}}", "Option {} is correct.", "({})", "I choose {}.", "{}"]
SAID_OF_OTHERS = [
    "{} is wrong.",
    "It is not {}.",
    "I would exclude {}.",
    "{} is too small.",
    "Not {}.",
    "Why not {}?",
    "",
]


def test_of_10_000_generated_answers_the_stated_letter_counts_and_no_other():
    rng = random.Random(0)
    for _ in range(10_000):
        letter, *others = rng.sample("ABCD", 4)
        before = [rng.choice(SAID_OF_OTHERS).format(other) for other in others[: rng.randrange(3)]]
        text = "\n".join([*before, rng.choice(STATED).format(letter)])
        assert verify_choice(text, letter, num_choices=4) == "right", text
        assert verify_choice(text, rng.choice(others), num_choices=4) != "right", text


def test_of_10_000_generated_answers_to_questions_no_other_one_is_right():
    rng = random.Random(1)
    words = ["lima", "quito", "harbour", "green", "river", "1859", "3.5", "35", "c++", "c", "-5", "5", "treaty",
             "ghent"]  # fmt: skip
    for _ in range(10_000):
        gold = " ".join(rng.sample(words, rng.randint(1, 3)))
        other = " ".join(rng.sample(words, rng.randint(1, 3)))
        says = rng.choice(["{}", "The answer is {}.", "It is {}.", "<answer>{}</answer>"])
        assert verify_qa(says.format(gold), [gold]) == "right", (gold, says)
        if other != gold:
            assert verify_qa(says.format(other), [gold]) != "right", (gold, other)
        assert verify_qa(says.format(f"{gold} or {other}"), [gold]) != "right" or gold == other, (gold, other)
