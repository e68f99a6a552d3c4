"""What is held out or downstream anywhere is trained on and demonstrated nowhere; what is taken out is named."""

import hashlib
import json
from collections import Counter

import numpy as np
import pytest

from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import TaskError, all_tasks
from scalerl.tasks.split import position
from scalerl.tokens import CharacterTokenizer

TOKENIZER = CharacterTokenizer()
SUMS = [{"question": f"What is {a} + {b}?", "answer": str(a + b), "solution": "so"} for a in range(9) for b in range(9)]


def changed(row):
    """A variant of the same problem."""
    return row | {"question": f" {row['question'].upper().replace('?', ' ?!').replace(' + ', '+')}"}


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"type": "math", "path": str(path)}


def made(tasks, downstream=()):
    recipe = ResolvedRecipe.model_validate({"tasks": tasks, "evaluation": {"downstream": downstream}})
    return all_tasks(recipe.tasks, recipe.evaluation.downstream, TOKENIZER)


def test_data_without_repetitions_is_used_whole(tmp_path):
    tasks = made([write(tmp_path / "a.jsonl", SUMS[:60])], [write(tmp_path / "b.jsonl", SUMS[60:]) | {"name": "later"}])
    assert len(tasks.trained.train) + len(tasks.trained.validation) == 60
    assert len(tasks.downstream[0].validation) == 21
    assert tasks.left_out == {"math": [], "later": []}
    assert tasks.trained.newly_left_out == ()
    assert list(tasks.lines()) == [
        f"task math: warning: only {len(tasks.trained.validation)} prompts are measured, so a pass rate of 0.5 has a "
        f"standard error of up to {0.5 / len(tasks.trained.validation) ** 0.5:.2f}; measure at least 30",
        "task later: warning: only 21 prompts are measured, so a pass rate of 0.5 has a standard error of up to 0.11; "
        "measure at least 30",
    ]


def test_variants_in_one_file_are_one_problem(tmp_path):
    tasks = made([write(tmp_path / "a.jsonl", [*SUMS, *map(changed, SUMS[:10])])])
    rows = tasks.left_out["math"]
    assert [(row.where, row.reason, row.same_as) for row in rows] == [
        (f"a.jsonl:{82 + i}", "duplicate", f"a.jsonl:{1 + i}") for i in range(10)
    ]
    assert len(tasks.trained.newly_left_out) == 10
    assert len(tasks.trained.train) + len(tasks.trained.validation) == 81


def test_a_variant_with_another_answer_is_left_out_with_both(tmp_path):
    tasks = made([write(tmp_path / "a.jsonl", [*SUMS, changed(SUMS[3]) | {"answer": "77"}])])
    (row,) = tasks.left_out["math"]
    assert row.detail == "a variant of a.jsonl:4, whose answer is '3', here '77'"


def test_variants_of_a_held_out_file_are_not_trained_on(tmp_path):
    held = write(tmp_path / "held.jsonl", [changed(row) for row in SUMS[:12]])["path"]
    tasks = made([write(tmp_path / "a.jsonl", SUMS) | {"validation_path": held}])
    assert (len(tasks.trained.train), len(tasks.trained.validation)) == (69, 12)
    assert [(row.where, row.reason, row.same_as) for row in tasks.left_out["math"]] == [
        (f"a.jsonl:{i}", "held out", f"held.jsonl:{i}") for i in range(1, 13)
    ]
    said = "12 of a.jsonl are left out as held out: the same as in held.jsonl, first a.jsonl:1 = held.jsonl:1"
    assert f"task math: {said}" in tasks.lines()


def test_an_instruction_that_all_questions_of_a_file_share_hides_no_problem(tmp_path):
    def within(before, rows, after):
        return [row | {"question": f"{before}{row['question']}{after}"} for row in rows]

    dapo = within("Solve this problem. The last line is Answer: $Answer.\n\n", SUMS, "\n\nWrite it after Answer:.")
    verl = within("", SUMS[:9], " Let's think step by step and write the answer at the end.")
    for trained, measured in ((dapo, SUMS[:9]), (SUMS, verl)):
        held = {"name": "later"}
        tasks = made([write(tmp_path / "a.jsonl", trained)], [write(tmp_path / "b.jsonl", measured) | held])
        rows = tasks.left_out["math"]
        measured_here = {int(row.where.partition(":")[2]) for row in rows}
        held_out_too = {int(tasks.trained.written(one).where.partition(":")[2]) for one in tasks.trained.validation}
        assert measured_here | held_out_too >= {*range(1, 10)}
        assert all(row.same_as == row.where.replace("a.jsonl", "b.jsonl") for row in rows)
    # What a short way of asking shares is part of each problem.
    products = [row | {"question": row["question"].replace("+", "*")} for row in SUMS]
    assert not made([write(tmp_path / "a.jsonl", products)], [write(tmp_path / "b.jsonl", SUMS) | held]).left_out[
        "math"
    ]


def test_what_one_task_holds_out_no_other_trains_on(tmp_path):
    one = write(tmp_path / "a.jsonl", SUMS) | {"name": "one", "validation": 0.3}
    own = [{"question": f"What is {i} times 7?", "answer": str(7 * i)} for i in range(12)]
    other = write(tmp_path / "b.jsonl", [*own, *(changed(row) for row in SUMS)]) | {"name": "other", "validation": 0.3}
    tasks = made([one, other])

    def texts(prompts, name):
        said = [TOKENIZER.decode(prompt.tokens).lower() for prompt in prompts if prompt.task == name]
        return {text.replace(" ", "").replace("?!", "?") for text in said}

    trained, measured = tasks.trained.train, tasks.trained.validation
    assert not texts(trained, "one") & texts(measured, "other")
    assert not texts(trained, "other") & texts(measured, "one")
    reasons = {name: Counter(row.reason for row in rows) for name, rows in tasks.left_out.items()}
    # Ids are hashes of the text as it is written, so the two splits are independent.
    held = {
        row["question"]: [
            position(prompt_id(one_row)) < 0.3 for one_row in (row, changed(row))
        ]
        for row in SUMS
    }  # fmt: skip
    assert reasons == {
        "one": {"held out": sum(second and not first for first, second in held.values())},
        "other": {
            "held out": sum(first and not second for first, second in held.values()),
            "duplicate": sum(not first and not second for first, second in held.values()),
        },
    }
    repeated = next(row for row in tasks.left_out["other"] if row.reason == "duplicate")
    assert repeated.detail == f"the same problem as {repeated.same_as}, which task 'one' trains on"


def prompt_id(row):
    return hashlib.sha256(row["question"].encode()).hexdigest()[:16]


def test_problems_of_a_downstream_file_are_neither_trained_on_nor_demonstrated(tmp_path):
    bench = write(tmp_path / "bench.jsonl", [changed(row) for row in SUMS[:40]]) | {"name": "bench"}
    tasks = made([write(tmp_path / "a.jsonl", SUMS)], [bench])
    assert len(tasks.downstream[0].validation) == 40
    rows = tasks.left_out["math"]
    lines = {int(row.where.removeprefix("a.jsonl:")) for row in rows}
    assert lines <= set(range(1, 41))
    assert {row.same_as for row in rows} == {f"bench.jsonl:{line}" for line in lines}
    # The rest of those forty are held out by the task itself: a tenth or so.
    assert len(rows) == 40 - sum(position(prompt_id(row)) < 0.1 for row in SUMS[:40])
    rng = np.random.default_rng(0)
    asked = {TOKENIZER.decode(tasks.trained.demonstrate(rng, 0.0)[0].tokens).split("\n")[0] for _ in range(400)}
    assert not asked & {row["question"] for row in SUMS[:40]}
    assert "measured by the downstream file of task 'bench'" in rows[0].detail


def test_nothing_left_to_train_on_is_refused_with_the_reason(tmp_path):
    bench = write(tmp_path / "bench.jsonl", SUMS) | {"name": "bench"}
    with pytest.raises(TaskError, match=r"task 'math': 0 problems to train on .* left out: \d+ downstream"):
        made([write(tmp_path / "a.jsonl", SUMS)], [bench])


def test_shuffled_choices_ask_the_same_question_and_other_choices_another(tmp_path):
    choices = ["iron", "salt", "wood", "a+b"]
    rows = [{"question": f"Which of {i}?", "choices": choices, "answer": "A"} for i in range(40)]
    rows.append({"question": "Which of 0?", "choices": ["Salt", "iron", "a+b", "wood"], "answer": "B"})
    rows.append({"question": "Which of 0?", "choices": ["iron", "salt", "wood", "a-b"], "answer": "A"})
    tasks = made([write(tmp_path / "c.jsonl", rows) | {"type": "choice"}])
    assert [(row.where, row.same_as) for row in tasks.left_out["choice"]] == [("c.jsonl:41", "c.jsonl:1")]


def test_generated_tasks_hold_the_same_prompts_out_in_every_mix():
    sort = {"type": "k_smallest", "symbols": 8, "min_length": 2, "train_prompts": 300, "validation_prompts": 40}
    tasks = made([sort | {"name": "a", "max_length": 3}, sort | {"name": "b", "max_length": 4}, {"type": "modular"}])
    assert not {p.id for p in tasks.trained.train} & {p.id for p in tasks.trained.validation}


def test_two_tasks_may_ask_for_the_same_problem_in_different_words(tmp_path):
    file = write(tmp_path / "a.jsonl", SUMS)
    tasks = made([file | {"name": "one"}, file | {"name": "other", "template": "Think twice.\n{question}"}])
    assert not any(tasks.left_out.values())
    assert len(tasks.trained.train) + len(tasks.trained.validation) == 2 * len(SUMS)
