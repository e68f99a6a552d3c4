"""Answers of every kind that public reports describe, judged as a careful person would judge them.

A row of `tests/data/answers` is {"kind", "gold", "answer", "expected", "source"}. Golds have the forms of published
data (a bare value, "#### 84", a solution with a box), answers have the forms of models. `source` says who gave the
verdict: "hand" is a person, "sympy" is a value that SymPy worked out. Each kind holds right answers and near misses.
`constructed.jsonl` has right answers beside near misses that graders are known to accept, made from a seed, and the
cases of the written rules; "judge" names who judges them. Of choices the prompt shows copper, iron, zinc and lead, or
those of "choices".

A pair of `math_pairs.jsonl` is {"kind", "gold", "answer", "outcome"}; an answer of 10^5 characters is written as
{"before", "repeat", "times", "after"}. Its verdict is the one that mathematics gives, with the conventions listed in
docs/judges.md (what a missing unit or percent sign means, how far decimals may be off, how long answers may be).
"""

import json
from collections import defaultdict

import pytest
from places import DATA
from trainer.verifiers.outcomes import verify_choice, verify_math, verify_qa

TEXTS = ("copper", "iron", "zinc", "lead")
JUDGES = {
    "math": lambda row: verify_math(row["answer"], row["gold"], time_limit_s=5.0),
    "choice": lambda row: verify_choice(row["answer"], row["gold"], num_choices=4, texts=row.get("choices", TEXTS)),
    "qa": lambda row: verify_qa(row["answer"], row["gold"]),
}


def rows_of(name):
    return [json.loads(line) for line in (DATA / "answers" / f"{name}.jsonl").read_text().splitlines()]


def off(rows, judge):
    """Rows that are judged otherwise than a careful person would, one after the other: a second engine would learn
    the parser's forms anew, a fifth of the processor time."""
    return [
        f"{row['kind']}: gold {row['gold']!r}, answer {row['answer']!r}: expected {row['expected']}, seen {outcome}"
        for row in rows
        if ((outcome := JUDGES[row.get("judge", judge)](row)) == "right") != (row["expected"] == "right")
    ]


@pytest.mark.timeout(900)  # 7,300 answers: a minute on a quiet machine
@pytest.mark.parametrize(("name", "judge"), [("math", "math"), ("choice", "choice"), ("qa", "qa"), ("constructed", "")])
def test_a_careful_person_would_judge_each_answer_so(name, judge):
    assert off(rows_of(name), judge) == []


def test_every_kind_has_right_answers_and_wrong_ones():
    kinds = defaultdict(set)
    for row in rows_of("math"):
        kinds[row["kind"]].add(row["expected"] == "right")
    assert [kind for kind, expected in kinds.items() if len(expected) < 2] == []


def test_what_is_known_to_be_missed_is_still_missed_and_little():
    missed = rows_of("math_missed")
    assert len(off(missed, "math")) == len(missed), "move the rows that are judged well to math.jsonl"
    assert len(missed) <= 0.005 * len(rows_of("math"))
    assert sum(row["expected"] == "wrong" for row in missed) <= 1


PAIRS = [json.loads(line) for line in (DATA / "math_pairs.jsonl").read_text().splitlines()]


def written_out(answer):
    return (
        answer if isinstance(answer, str) else answer["before"] + answer["repeat"] * answer["times"] + answer["after"]
    )


def test_every_verdict_is_the_one_that_mathematics_gives_within_the_limit():
    seen = [verify_math(written_out(one["answer"]), one["gold"], time_limit_s=5.0) for one in PAIRS]
    assert [
        {**pair, "got": outcome} for pair, outcome in zip(PAIRS, seen, strict=True) if outcome != pair["outcome"]
    ] == []


def test_the_list_holds_every_kind_of_answer_and_verdict():
    assert {pair["outcome"] for pair in PAIRS} == {"right", "wrong", "unparsable"}
    assert sum(len(written_out(pair["answer"])) >= 99_000 for pair in PAIRS) >= 30
